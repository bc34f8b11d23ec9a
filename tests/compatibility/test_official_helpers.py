"""Small functions and classes under the official library's names give what that library gives."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from pathlib import Path
from typing import Any

import lance
import lance.file
import lance.schema
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.blob import BlobColumn
from lance_core.errors import InputError
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.indices import IndicesBuilder, IvfModel, PqModel
from lance_core.log import get_log_level, get_python_log_level
from lance_core.progress import FileSystemFragmentWriteProgress, FragmentWriteProgress, IndexProgress
from lance_core.schema import json_to_schema, schema_to_json
from lance_core.util import KMeans, sanitize_ts, td_to_micros, validate_vector_index
from lance_core.vector import vec_to_table

OFFICIAL_INDICES: Any = pytest.importorskip("lance.indices")

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.list_(pa.float32(), 4)),
        pa.field("s", pa.struct([pa.field("x", pa.utf8(), metadata={"k": "v"}), pa.field("y", pa.decimal128(10, 2))])),
        pa.field("l", pa.list_(pa.timestamp("us", "Europe/Rome"))),
        pa.field("ll", pa.large_list(pa.timestamp("ns"))),
        pa.field("d", pa.dictionary(pa.int32(), pa.utf8())),
        pa.field("b", pa.binary(5)),
        pa.field("t", pa.time32("s")),
        pa.field("u", pa.duration("ms")),
        pa.field("h", pa.float16()),
        pa.field("z", pa.null()),
        pa.field("w", pa.date64()),
    ],
    metadata={"a": "b"},
)


def test_a_schema_as_json_is_the_official_one() -> None:
    plain = schema_to_json(SCHEMA)
    assert plain == lance.schema.schema_to_json(SCHEMA)
    assert json_to_schema(json.loads(json.dumps(plain))).equals(SCHEMA, check_metadata=True)
    with pytest.raises(InputError, match="cannot be encoded as JSON"):
        schema_to_json(pa.schema([pa.field("m", pa.map_(pa.utf8(), pa.int8()))]))
    with pytest.raises(InputError, match="not describe a schema"):
        json_to_schema({"columns": []})


def test_vectors_become_tables_as_there() -> None:
    table = vec_to_table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert table.schema == pa.schema([pa.field("id", pa.utf8()), pa.field("vector", pa.list_(pa.float32(), 2))])
    assert table.column("vector").to_pylist() == [[1.0, 2.0], [3.0, 4.0]]
    assert vec_to_table(np.zeros((3, 8)), names="v").schema.field("v").type == pa.list_(pa.float32(), 8)
    with pytest.raises(ValueError, match="2 dimensions"):
        vec_to_table([[1.0, 2.0], [1.0]])
    with pytest.raises(ValueError, match="column names"):
        vec_to_table({"a": [1.0]}, names=["id"])


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_single_files_are_read_by_each_other(tmp_path: Path, version: str) -> None:
    table = pa.table({"id": range(3000), "name": [f"n{number}" for number in range(3000)]})
    theirs, ours = str(tmp_path / "theirs.lance"), str(tmp_path / "ours.lance")
    for kind, path in ((lance.file.LanceFileWriter, theirs), (LanceFileWriter, ours)):
        with kind(path, table.schema, version=version) as writer:
            writer.write_batch(table)
            assert writer.add_global_buffer(b"own") == 1
            writer.add_schema_metadata("k", "v")
    for reader in (LanceFileReader(theirs), LanceFileReader(ours), lance.file.LanceFileReader(ours)):
        assert reader.num_rows() == 3000
        assert reader.read_all(batch_size=1000).to_table().replace_schema_metadata(None) == table
        assert reader.read_range(10, 5).to_table().column("id").to_pylist() == [10, 11, 12, 13, 14]
        assert reader.take_rows([3, 2000]).to_table().column("name").to_pylist() == ["n3", "n2000"]
        assert reader.read_global_buffer(1) == b"own"
        assert reader.metadata().schema.metadata == {b"k": b"v"}
    expected, found = lance.file.LanceFileReader(theirs).metadata(), LanceFileReader(theirs).metadata()
    for name in ("num_rows", "num_data_bytes", "num_column_metadata_bytes", "num_global_buffer_bytes"):
        assert getattr(found, name) == getattr(expected, name), name
    where = [[(item.position, item.size) for item in side.global_buffers] for side in (expected, found)]
    assert where[0] == where[1]
    sizes = [
        [(item.num_pages, item.size_bytes) for item in reader.file_statistics().columns]
        for reader in (lance.file.LanceFileReader(theirs), LanceFileReader(theirs))
    ]
    assert sizes[0] == sizes[1]


def test_a_single_file_says_what_is_wrong(tmp_path: Path) -> None:
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path) as writer:
        with pytest.raises(InputError, match="no schema yet"):
            writer.add_schema_metadata("k", "v")
        writer.write_batch(pa.table({"id": [1, 2]}))
    with pytest.raises(InputError, match="no column other"):
        LanceFileReader(path, columns=["other"])
    reader = LanceFileReader(path)
    with pytest.raises(InputError, match="the file has 2"):
        reader.read_range(1, 2)
    with pytest.raises(InputError, match="the file has 2"):
        reader.take_rows([2])
    with pytest.raises(RuntimeError, match="stop"), LanceFileWriter(str(tmp_path / "b.lance")) as writer:
        writer.write_batch(pa.table({"id": [1]}))
        raise RuntimeError("stop")
    assert not (tmp_path / "b.lance").exists()


@pytest.mark.parametrize("options", [{}, {"stem": False}, {"base_tokenizer": "ngram"}, {"remove_stop_words": False}])
def test_tokens_are_the_official_ones(options: dict[str, Any]) -> None:
    text = "Running dogs: the Fox-trot of 12 naïve cafés"
    expected = [(token.text, token.position) for token in lance.tokenize(text, **options)]
    assert [(token.text, token.position) for token in lance_core.tokenize(text, **options)] == expected


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_kmeans_finds_clusters_that_are_far_apart(metric: str) -> None:
    centres = np.eye(2, 4, dtype=np.float32) * 10
    rows = np.repeat(centres, 50, axis=0) + np.random.default_rng(1).normal(0, 0.1, (100, 4)).astype(np.float32)
    model = KMeans(2, metric_type=metric)
    with pytest.raises(InputError, match="not trained"):
        model.predict(rows)
    model.fit(rows)
    found = model.predict(rows)
    assert found.type == pa.uint32()
    groups = found.to_numpy().reshape(2, 50)
    assert all(len(set(group)) == 1 for group in groups)
    assert len({group[0] for group in groups}) == 2
    assert len(model.centroids) == 2
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 4)
    assert model.predict(lists).equals(found)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = np.random.default_rng(7).random((600, 8)).astype(np.float32)
    return lance_core.write_dataset(vec_to_table(rows), str(tmp_path_factory.mktemp("v") / "t.lance"))


def test_trained_models_travel_to_the_official_library_and_back(vectors: Any, tmp_path: Path) -> None:
    builder = IndicesBuilder(vectors, "vector")
    ivf = builder.train_ivf(2)
    pq = builder.train_pq(ivf, 2)
    assert (ivf.num_partitions, pq.dimension, len(pq.codebook)) == (2, 8, 256)
    for model, theirs, name in ((ivf, OFFICIAL_INDICES.IvfModel, "ivf"), (pq, OFFICIAL_INDICES.PqModel, "pq")):
        path = str(tmp_path / f"{name}.lance")
        model.save(path)
        there = theirs.load(path)
        there.save(str(tmp_path / f"{name}_back.lance"))
        back = type(model).load(str(tmp_path / f"{name}_back.lance"))
        first, second = (vars(item) for item in (model, back))
        assert {key: value for key, value in first.items() if not isinstance(value, pa.Array)} == {
            key: value for key, value in second.items() if not isinstance(value, pa.Array)
        }
        assert [value for value in first.values() if isinstance(value, pa.Array)] == [
            value for value in second.values() if isinstance(value, pa.Array)
        ]
    loaded = (IvfModel.load(str(tmp_path / "ivf.lance")), PqModel.load(str(tmp_path / "pq.lance")))
    seen: list[IndexProgress] = []
    vectors.create_index(
        "vector", "IVF_PQ", replace=True, ivf_centroids=loaded[0].centroids, pq_codebook=loaded[1].codebook,
        num_sub_vectors=2, progress_callback=seen.append,
    )  # fmt: skip
    assert [item.event for item in seen] == ["start", "complete"]
    assert sum(item.num_rows_indexed for item in vectors.describe_indices()) == 600


def test_a_vector_index_finds_its_own_vectors(vectors: Any) -> None:
    vectors.create_index("vector", "IVF_FLAT", replace=True, name="vector_idx", num_partitions=2)
    validate_vector_index(vectors, "vector", sample_size=20)


def test_an_index_that_finds_too_little_is_told(vectors: Any) -> None:
    class Blind:
        def to_table(self, columns: Any = None, *, nearest: Any = None) -> pa.Table:
            return vectors.to_table(columns) if nearest is None else pa.table({"_distance": [1.0]})

        def sample(self, num_rows: int, columns: Any = None) -> pa.Table:
            return vectors.sample(num_rows, columns)

    with pytest.raises(ValueError, match="found 0 of 20"):
        validate_vector_index(Blind(), "vector", sample_size=20)


def test_a_write_tells_of_every_fragment(tmp_path: Path) -> None:
    class Notes(FragmentWriteProgress):
        def __init__(self) -> None:
            self.seen: list[tuple[str, int]] = []

        def begin(self, fragment: Any, **kwargs: Any) -> None:
            self.seen.append(("begin", len(fragment.files)))

        def complete(self, fragment: Any, **kwargs: Any) -> None:
            self.seen.append(("complete", fragment.physical_rows))

    notes = Notes()
    lance_core.write_dataset({"a": [1, 2, 3]}, str(tmp_path / "t.lance"), max_rows_per_file=2, progress=notes)
    assert sorted(notes.seen) == [("begin", 0), ("begin", 0), ("complete", 1), ("complete", 2)]
    folder = tmp_path / "progress"
    files = FileSystemFragmentWriteProgress(folder.as_uri(), {"worker": "1"})
    lance_core.write_dataset({"a": [1, 2, 3]}, str(tmp_path / "u.lance"), max_rows_per_file=2, progress=files)
    assert sorted(path.name for path in folder.iterdir()) == ["fragment_0.json", "fragment_1.json"]
    assert json.loads((folder / "fragment_0.json").read_text())["physical_rows"] == 2


def test_fractions_of_progress() -> None:
    assert IndexProgress("progress", "train", 1, 4).fraction == 0.25
    assert IndexProgress("progress", "train", 1).fraction is None
    assert IndexProgress("progress", "train", 5, 4).fraction == 1.0


def test_blobs_of_a_column_as_files() -> None:
    files = [*BlobColumn(pa.chunked_array([[b"abc", None], [b""]], pa.large_binary()))]
    assert [None if file is None else file.read() for file in files] == [b"abc", None, b""]
    with pytest.raises(InputError, match="binary column"):
        BlobColumn(pa.array([1]))


def test_the_log_goes_where_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lance.log"
    logger = logging.getLogger("lance_core.of_this_test")
    lance_core.set_logger(str(path), name=logger.name, level=logging.DEBUG)
    logger.debug("hello")
    logger.handlers.pop().close()
    assert "lance_core.of_this_test [DEBUG]" in path.read_text()
    for text, level in (("", "INFO"), ("debug", "DEBUG"), ("trace,lance=warn", "DEBUG"), ("lance=warn", "INFO")):
        monkeypatch.setenv("LANCE_LOG", text)
        assert get_log_level() == level
    assert get_python_log_level("warn") == "warn"


def test_times() -> None:
    assert sanitize_ts("2024-01-31 12:00:00") == dt.datetime(2024, 1, 31, 12)
    assert td_to_micros(dt.timedelta(milliseconds=3)) == 3000
    with pytest.raises(ValueError, match="is not a valid time"):
        sanitize_ts("yesterday")
    pandas = sys.modules.get("pandas") or pytest.importorskip("pandas")
    assert type(sanitize_ts(pandas.Timestamp("2024-01-31"))) is dt.datetime
