"""Tables written by us: the official library opens, validates, reads and changes them; bad input changes nothing."""

from __future__ import annotations

import pickle
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lance_core
from lance_core.errors import InputError, SchemaMismatchError, StoreError
from lance_core.io.resolve import resolve_store
from tests.dataset.dataset_tables import flat, mixed, same, snapshot_of_files


@pytest.mark.parametrize("version", [None, "2.1", "2.2", "2.0"])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_written_table_is_opened_by_the_official_library(tmp_path: Path, version: str | None, rows: int) -> None:
    table = mixed(rows)
    if version == "2.0":
        table = table.drop_columns(["point"])
    uri = str(tmp_path / "t.lance")
    ours = lance_core.write_dataset(table, uri, max_rows_per_file=300, data_storage_version=version)
    theirs = lance.dataset(uri)
    theirs.validate()
    assert theirs.count_rows() == rows == ours.count_rows()
    assert theirs.data_storage_version == (version or "2.2")
    assert len(theirs.get_fragments()) == -(-rows // 300)
    same(theirs.to_table(), table)
    same(ours.to_table(), table)
    ours.validate()


def test_taking_turns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(mixed(400), uri, max_rows_per_file=150)
    lance.write_dataset(mixed(100, first=400), uri, mode="append")
    lance_core.write_dataset(mixed(100, first=500), uri, mode="append")
    theirs = lance.dataset(uri)
    theirs.delete("id % 4 = 0")
    theirs.update({"name": "'u'"}, where="id % 5 = 0")
    theirs.optimize.compact_files()
    ours = lance_core.write_dataset(mixed(50, first=600), uri, mode="append")
    theirs = lance.dataset(uri)
    theirs.validate()
    assert ours.version == theirs.version
    same(ours.to_table(), theirs.to_table())
    ours = lance_core.write_dataset(flat(5), uri, mode="overwrite")
    theirs = lance.dataset(uri)
    theirs.validate()
    same(ours.to_table(), theirs.to_table())
    for mine, other in zip(ours.versions(), theirs.versions(), strict=True):
        assert {**mine, "timestamp": 0} == {**other, "timestamp": 0}
        # The official library computes the microseconds with floats.
        assert abs(mine["timestamp"] - other["timestamp"]).total_seconds() < 1e-5


def test_stable_row_ids(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(flat(10), uri, enable_stable_row_ids=True)
    ours = lance_core.write_dataset(flat(10, first=10), uri, mode="append")
    theirs = lance.dataset(uri)
    assert ours.has_stable_row_ids
    assert theirs.has_stable_row_ids
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version", "id"]
    same(ours.to_table(columns=columns), theirs.to_table(columns=columns))
    assert ours.to_table(columns=["_rowid"])["_rowid"].to_pylist() == list(range(20))


SOURCES = {
    "table": lambda table, path: table,
    "batch": lambda table, path: table.combine_chunks().to_batches()[0],
    "reader": lambda table, path: table.to_reader(),
    "pandas": lambda table, path: table.to_pandas(),
    "dict": lambda table, path: table.to_pydict(),
    "records": lambda table, path: table.to_pylist(),
    "arrow dataset": lambda table, path: pads.dataset(table),
    "arrow scanner": lambda table, path: pads.dataset(table).scanner(),
    "our dataset": lambda table, path: lance_core.write_dataset(table, path / "source.lance"),
    "our scanner": lambda table, path: lance_core.write_dataset(table, path / "source.lance").scanner(),
    "official dataset": lambda table, path: lance.write_dataset(table, path / "source.lance"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_data(tmp_path: Path, kind: str) -> None:
    table = flat(25)
    ours = lance_core.write_dataset(SOURCES[kind](table, tmp_path), tmp_path / "t.lance", max_rows_per_file=10)
    same(ours.to_table(), table)
    assert [fragment.count_rows() for fragment in ours.get_fragments()] == [10, 10, 5]


def test_batches_need_a_schema_and_are_streamed(tmp_path: Path) -> None:
    table = flat(30)
    batches = table.to_batches(max_chunksize=4)
    with pytest.raises(InputError, match="schema"):
        lance_core.write_dataset(iter(batches), tmp_path / "t.lance")
    ours = lance_core.write_dataset((batch for batch in batches), tmp_path / "t.lance", schema=table.schema)
    same(ours.to_table(), table)
    narrow = pa.schema([("name", pa.large_string()), ("id", pa.int64())])
    cast = lance_core.write_dataset(table, tmp_path / "u.lance", schema=narrow)
    assert cast.schema.equals(narrow)


def test_appending_part_of_the_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(mixed(10), uri)
    part = mixed(10, first=10).select(["name", "id"])
    ours = lance_core.write_dataset(part, uri, mode="append")
    theirs = lance.dataset(uri)
    theirs.validate()
    same(ours.to_table(), theirs.to_table())
    assert ours.to_table(filter="x is null and id >= 10").num_rows == 10


def test_options(tmp_path: Path) -> None:
    seen = []
    ours = lance_core.write_dataset(
        flat(100),
        tmp_path / "t.lance",
        max_bytes_per_file=1,
        commit_message="first",
        transaction_properties={"who": "me"},
        auto_cleanup_options={"interval": 20, "older_than_seconds": 3600},
        progress=seen.append,
    )
    theirs = lance.dataset(ours.uri)
    assert theirs.read_transaction(1).transaction_properties == {"who": "me", "__lance_commit_message": "first"}
    assert (
        theirs.config()
        == ours.config()
        == {
            "lance.auto_cleanup.interval": "20",
            "lance.auto_cleanup.older_than": "3600s",
        }
    )
    assert seen[-1].rows == 100
    assert seen[-1].fragments == len(ours.get_fragments())
    assert seen[-1].bytes > 0


def test_every_option_of_the_official_writer_is_known(tmp_path: Path) -> None:
    import inspect

    for name, parameter in inspect.signature(lance.write_dataset).parameters.items():
        if name not in ("data_obj", "uri", "schema", "mode"):
            default = {name: parameter.default}
            lance_core.write_dataset(flat(1), tmp_path / f"{name}.lance", **default)


def _nullable(table: pa.Table, *, nullable: bool) -> pa.Table:
    return table.cast(pa.schema([pa.field(field.name, field.type, nullable) for field in table.schema]))


@pytest.mark.parametrize(
    ("data", "options", "error"),
    [
        (flat(3), {"mode": "create"}, InputError),
        (flat(3), {"mode": "wat"}, InputError),
        (flat(3), {"mode": "append", "max_rows_per_file": 0}, InputError),
        (flat(3), {"mode": "append", "data_storage_version": "9.9"}, InputError),
        (flat(3), {"mode": "append", "data_storage_version": "legacy"}, InputError),
        (flat(3), {"mode": "append", "commit_lock": print}, InputError),
        (flat(3), {"mode": "append", "target_bases": ["a"]}, InputError),
        (flat(3), {"mode": "append", "maks_rows": 3}, TypeError),
        (flat(3), {"mode": "append", "storage_options": {"no_such_option": "1"}}, InputError),
        (pa.table({"id": ["1"], "name": ["a"]}), {"mode": "append"}, SchemaMismatchError),
        (pa.table({"id": [1], "name": ["a"], "more": [1]}), {"mode": "append"}, SchemaMismatchError),
        (pa.table({"name": ["a"]}), {"mode": "append"}, SchemaMismatchError),
        (pa.table({"id": pa.array([1, None]), "name": ["a", "b"]}), {"mode": "append"}, SchemaMismatchError),
        ("text", {"mode": "append"}, InputError),
        (7, {"mode": "append"}, InputError),
        ([], {"mode": "append"}, InputError),
        ([1, 2], {"mode": "append", "schema": flat(1).schema}, InputError),
        ({"id": [1, 2], "name": ["a"]}, {"mode": "append"}, SchemaMismatchError),
    ],
    ids=str,
)
def test_bad_input_leaves_the_table_as_it_was(tmp_path: Path, data, options, error) -> None:
    uri = tmp_path / "t.lance"
    lance_core.write_dataset(_nullable(flat(3), nullable=False), uri)
    before = snapshot_of_files(uri)
    with pytest.raises(error):
        lance_core.write_dataset(data, uri, **options)
    assert snapshot_of_files(uri) == before


def test_a_failing_stream_leaves_no_files(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    lance_core.write_dataset(flat(3), uri)
    before = snapshot_of_files(uri)

    def batches():
        yield from flat(50).to_batches(max_chunksize=5)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        lance_core.write_dataset(batches(), uri, schema=flat(1).schema, mode="append", max_rows_per_file=7)
    assert snapshot_of_files(uri) == before


def test_a_lost_commit_leaves_no_data_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = tmp_path / "t.lance"
    lance_core.write_dataset(flat(3), uri)
    before = snapshot_of_files(uri)

    def fail(*args: object, **kwargs: object) -> None:
        raise StoreError("no")

    monkeypatch.setattr("lance_core.dataset.edit.insert.commit_transaction", fail)
    with pytest.raises(StoreError):
        lance_core.write_dataset(flat(3), uri, mode="append")
    assert snapshot_of_files(uri) == before


def test_memory_store_and_handles() -> None:
    uri = "memory://writes/t.lance"
    ours = lance_core.write_dataset(flat(10), uri)
    other = lance_core.dataset(uri)
    ours.insert(flat(5, first=10))
    assert (ours.version, other.version, other.latest_version) == (2, 1, 2)
    other.checkout_latest()
    assert len(other) == 15
    assert other.sample(4)["id"].to_pylist() != []
    assert other.slice(3, 6, columns=["id"])["id"].to_pylist() == [3, 4, 5]
    with pytest.raises(InputError):
        other.sample(16)
    assert resolve_store(uri).list_names("data/")


def test_handles_pickle(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(flat(10), tmp_path / "t.lance")
    lance_core.write_dataset(flat(10), ours, mode="append")
    copy = pickle.loads(pickle.dumps(ours))
    assert (copy.version, copy.count_rows()) == (1, 10)
    fragment = pickle.loads(pickle.dumps(ours.get_fragments()[0]))
    assert fragment.count_rows() == 10


def test_arrow_streams(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(flat(10), tmp_path / "t.lance")
    assert pa.table(ours).num_rows == 10
    assert pa.RecordBatchReader.from_stream(ours.scanner(filter="id > 5")).read_all().num_rows == 4
    assert ours.to_pandas(columns=["id"])["id"].sum() == 45


def test_numpy_blocks_survive(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(1000, 16)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 16)
    ours = lance_core.write_dataset(pa.table({"v": vectors}), tmp_path / "t.lance")
    found = ours.to_table()["v"].combine_chunks().flatten().to_numpy().reshape(-1, 16)
    assert (found == values).all()
