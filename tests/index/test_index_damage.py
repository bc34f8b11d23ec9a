"""Missing, damaged, unknown and newer indices: a scan with a warning or a log line, or an error where that is asked for."""

from __future__ import annotations

import json
import logging
import random
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.query
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lance_core
from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.scalar_search import usable_segments
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError, InputError
from lance_core.format.index import IndexDetails
from lance_core.index.scalar import bloom, zone_map
from lance_core.io.cache import shared_cache
from tests.index.index_tables import CASES, rows


@pytest.fixture(autouse=True)
def _cold() -> None:
    shared_cache().clear()


@pytest.mark.parametrize("kind", CASES)
def test_missing_files(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(300), uri)
    column, questions = next(iter(CASES[kind].items()))
    dataset(uri).create_scalar_index(column, kind)
    for path in (tmp_path / "t.lance" / "_indices").glob("*/*"):
        path.unlink()
    shared_cache().clear()
    where = questions[0]
    expected = dataset(uri).to_table(["x"], filter=where, use_scalar_index=False)
    with pytest.warns(RuntimeWarning, match="not used"):
        assert dataset(uri).to_table(["x"], filter=where).equals(expected)
    with pytest.raises(CorruptFileError, match="cannot be searched"):
        dataset(uri).to_table(["x"], filter=where, strict_index=True)


@pytest.mark.parametrize("kind", CASES)
def test_damaged_files_never_crash(tmp_path: Path, kind: str) -> None:
    """Cut and overwritten files: an answer or a warning, no other error."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(300), uri)
    column, questions = next(iter(CASES[kind].items()))
    dataset(uri).create_scalar_index(column, kind)
    rng = random.Random(kind)
    files = sorted((tmp_path / "t.lance" / "_indices").glob("*/*"))
    whole = {path: path.read_bytes() for path in files}
    for _ in range(25):
        path = rng.choice(files)
        data = bytearray(whole[path])
        if rng.random() < 0.3:
            data = data[: rng.randrange(len(data))]
        else:
            for _ in range(rng.randint(1, 20)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data))
        shared_cache().clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            dataset(uri).to_table(["x"], filter=questions[0])
        path.write_bytes(whole[path])


def test_unknown_and_newer_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(100), uri)
    table = dataset(uri)
    table.create_scalar_index("i", "BTREE")
    (index,) = table.snapshot.manifest.indices
    for odd in (replace(index, index_version=99), replace(index, details=IndexDetails("/x.FutureIndexDetails", b""))):
        manifest = replace(table.snapshot.manifest, indices=(odd,))
        with caplog.at_level(logging.INFO, logger="lance_core.index"):
            assert usable_segments(Snapshot(table.snapshot.store, manifest)) == {}
        assert "is not used" in caplog.text
        caplog.clear()


def test_refusals(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(100), uri)
    table = dataset(uri)
    for column, kind in (
        ("i", "NGRAM"),
        ("tags", "BTREE"),
        ("n", "BTREE"),
        ("f", "BLOOMFILTER"),
        ("i", "NOTHING"),
        ("no", "BTREE"),
    ):
        with pytest.raises(InputError):
            table.create_scalar_index(column, kind)
    with pytest.raises(InputError):
        table.drop_index("nothing")
    with pytest.raises(TypeError):
        table.create_scalar_index("i", "BTREE", colour="red")
    assert not table.has_index
    table.create_scalar_index("i", "BTREE")
    with pytest.raises(InputError):
        table.create_scalar_index("i", "BTREE", replace=False)
    with pytest.raises(InputError):
        table.create_scalar_index("x", "BTREE", name="i_idx")
    assert [item["name"] for item in table.list_indices()] == ["i_idx"]
    table.prewarm_index("i_idx")
    table.drop_index("i_idx")
    assert not table.has_index
    assert not lance.dataset(uri).has_index
    table.create_scalar_index("i", "BTREE", train=False)
    assert table.index_statistics("i_idx")["num_indexed_rows"] == 0
    assert table.count_rows("i = 7") == lance.dataset(uri).count_rows("i = 7")


def test_list_elements_as_documents_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = str(tmp_path / "t.lance")
    lists = [["fox dog", "dog"], None, ["zebra"], [], ["fox", None, "dog fox"]]
    theirs = lance.write_dataset(pa.table({"x": range(5), "l": pa.array(lists, pa.list_(pa.string()))}), uri)
    granularity = lance.query.DocumentGranularity.LIST_ELEMENT
    theirs.create_scalar_index("l", "INVERTED", document_granularity=granularity)
    with caplog.at_level(logging.INFO, logger="lance_core.index"), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dataset(uri).to_table(["x"], full_text_query={"query": "fox", "columns": ["l"]})
    assert sorted(found["x"].to_pylist()) == [0, 4] and "elements of lists" in caplog.text


def test_a_rewrite_does_not_turn_list_elements_into_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    texts = pa.array([["fox dog", f"w{number % 5}"] for number in range(40)], pa.list_(pa.string()))
    for part in range(2):
        half = pa.table({"x": range(part * 20, part * 20 + 20), "l": texts[part * 20 : part * 20 + 20]})
        theirs = lance.write_dataset(half, uri, mode="append")
    granularity = lance.query.DocumentGranularity.LIST_ELEMENT
    theirs.create_scalar_index("l", "INVERTED", document_granularity=granularity)
    asked = {"full_text_query": {"query": "w3", "columns": ["l"]}, "limit": 100}
    before = lance.dataset(uri).to_table(["x"], **asked)
    ours = dataset(uri)
    ours.optimize.compact_files()
    ours.optimize.optimize_indices()
    after = lance.dataset(uri).to_table(["x"], **asked)
    assert "_doc_index" in after.column_names and len(before) == 8
    assert sorted(after["x"].to_pylist()) == sorted(before["x"].to_pylist())


def test_json_over_a_bloom_filter_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = str(tmp_path / "t.lance")
    documents = pa.array([json.dumps({"a": f"x{n % 7}"}) for n in range(100)], pa.json_())
    theirs = lance.write_dataset(pa.table({"x": range(100), "j": documents}), uri)
    config = IndexConfig(index_type="json", parameters={"path": "a", "target_index_type": "bloomfilter"})
    theirs.create_scalar_index("j", config)
    with caplog.at_level(logging.INFO, logger="lance_core.index"):
        found = dataset(uri).to_table(["x"], filter="json_get_string(j, 'a') = 'x3'", strict_index=True)
    assert found["x"].to_pylist() == [*range(3, 100, 7)] and "over JSON" in caplog.text


@pytest.mark.parametrize(
    ("kind", "column"),
    [(kind, column) for kind in ("ZONEMAP", "BLOOMFILTER") for column in ("fragment_id", "zone_start", "zone_length")]
    + [("ZONEMAP", "null_count"), ("BLOOMFILTER", "has_null")],
)
def test_a_zone_that_says_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, column: str) -> None:
    """A file says of itself which columns may be null; what each zone has to say must be there all the same."""
    uri = str(tmp_path / "t")
    ds = lance_core.write_dataset(pa.table({"a": [*range(300)]}), uri)
    ds.create_scalar_index("a", kind)
    room = {"ZONEMAP": zone_map, "BLOOMFILTER": bloom}[kind]
    read_all = room.read_all

    def forged(opened: Any, names: Any) -> pa.RecordBatch:
        rows = read_all(opened, names)
        at = rows.schema.get_field_index(column)
        values = [None, *rows.column(at).to_pylist()[1:]]
        return rows.set_column(at, rows.schema.field(at).with_nullable(True), pa.array(values, rows.column(at).type))

    monkeypatch.setattr(room, "read_all", forged)
    shared_cache().clear()
    again = lance_core.dataset(uri)
    with pytest.raises(CorruptFileError, match=f"{column} of a zone is null"):
        again.stats.index_stats("a_idx")
    with pytest.warns(RuntimeWarning, match="is not used"):
        assert again.to_table(filter="a = 7")["a"].to_pylist() == [7]
