"""Change feed, merge of columns, files, batches of appends, names of manifests: beside the official library."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.handle.write_fragments import write_fragments
from lance_core.errors import InputError
from lance_core.format.manifest import BasePath
from lance_core.table.operations import Append, Delete
from lance_core.table.transaction import Transaction


def sorted_rows(reader: pa.RecordBatchReader) -> list[dict[str, object]]:
    return sorted(reader.read_all().to_pylist(), key=lambda row: row["_rowid"])


def changing(path: Path) -> None:
    """Five versions of changes, by both libraries."""
    lance_core.write_dataset(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), path, enable_stable_row_ids=True)
    lance.dataset(path).delete("a = 3")
    lance_core.write_dataset(pa.table({"a": [4, 5], "b": ["p", "q"]}), path, mode="append")
    lance_core.dataset(path).update({"a": "a * 10"}, where="a = 2")
    lance.dataset(path).update({"a": "a * 10"}, where="a = 4")
    lance_core.dataset(path).delete("a = 1")


def test_delta_says_what_the_official_one_says(tmp_path: Path) -> None:
    changing(tmp_path / "t")
    ours, theirs = lance_core.dataset(tmp_path / "t"), lance.dataset(tmp_path / "t")
    for begin in range(1, 6):
        for end in range(begin, 7):
            mine, other = (item.delta(begin_version=begin, end_version=end) for item in (ours, theirs))
            assert [item.uuid for item in mine.list_transactions()] == [item.uuid for item in other.list_transactions()]
            if end == ours.version:
                assert sorted_rows(mine.get_inserted_rows()) == sorted_rows(other.get_inserted_rows())
                assert sorted_rows(mine.get_updated_rows()) == sorted_rows(other.get_updated_rows())
                gone = other.get_deleted_row_ids().read_all().column("_rowid").to_pylist()
                assert mine.get_deleted_row_ids().read_all().column("_rowid").to_pylist() == sorted(gone)
    shorthand = ours.delta(compared_against=3)
    assert sorted_rows(shorthand.get_updated_rows()) == sorted_rows(theirs.delta(compared_against=3).get_updated_rows())
    for options in ({}, {"begin_version": 1}, {"end_version": 2}):
        with pytest.raises(InputError, match="needs two versions"):
            ours.delta(**options)


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_merge_of_columns(tmp_path: Path, version: str) -> None:
    table = pa.table({"a": pa.array([1, None, 3, 4, 5], pa.int64()), "b": ["x", "y", "z", "u", "v"]})
    other = pa.table({"k": pa.array([4, None, 1, 9], pa.int64()), "z": [1.5, 2.5, None, 4.0], "w": ["ä", None, "c", "d"]})
    for name in ("ours", "theirs"):
        lance.write_dataset(table, tmp_path / name, max_rows_per_file=2, data_storage_version=version)
        lance.dataset(tmp_path / name).delete("b = 'u'")
    ours, theirs = lance_core.dataset(tmp_path / "ours"), lance.dataset(tmp_path / "theirs")
    ours.merge(other, "a", "k")
    theirs.merge(other, "a", "k")
    assert ours.to_table().equals(theirs.to_table())
    assert lance.dataset(tmp_path / "ours").to_table().equals(theirs.to_table())
    ours.merge(pa.table({"b": ["x", "v"], "last": [1, 2]}), "b")
    theirs.merge(pa.table({"b": ["x", "v"], "last": [1, 2]}), "b")
    assert ours.to_table().equals(theirs.to_table())
    ours.validate()


@pytest.mark.parametrize(
    ("other", "left", "right", "text"),
    [
        (pa.table({"a": [1, 1], "w": [1, 2]}), "a", None, "more than once"),
        (pa.table({"a": ["1"], "w": [1]}), "a", None, "cannot merge"),
        (pa.table({"a": [1], "b": ["1"]}), "a", None, "in both tables"),
        (pa.table({"a": [1], "w": [1]}), "nope", "a", "this table"),
        (pa.table({"a": [1], "w": [1]}), "a", "nope", "the other table"),
        (pa.table({"a": [1]}), "a", None, "no columns besides"),
    ],
)
def test_merges_that_are_refused(tmp_path: Path, other: pa.Table, left: str, right: str | None, text: str) -> None:
    ours = lance_core.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "t")
    with pytest.raises(InputError, match=text):
        ours.merge(other, left, right)
    assert ours.latest_version == 1


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    changing(path)
    theirs = lance.dataset(path)
    theirs.create_scalar_index("a", "BTREE")
    ours, theirs = lance_core.dataset(path), lance.dataset(path)

    def plain(reader: pa.RecordBatchReader) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in reader.read_all().to_pylist())

    assert ours.all_files().schema.equals(theirs.all_files().schema)
    assert [row[:3] for row in plain(ours.all_files())] == [row[:3] for row in plain(theirs.all_files())]
    assert ours.tracked_files().schema.equals(theirs.tracked_files().schema)
    assert plain(ours.tracked_files()) == plain(theirs.tracked_files())
    assert plain(ours.tracked_files(min_version=5)) == plain(theirs.tracked_files(min_version=5))
    assert ours.version_refs() == sorted(theirs.version_refs(), key=lambda item: item["version"])


def test_manifest_names_are_migrated(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"a": [1]}), path, enable_v2_manifest_paths=False)
    for value in (2, 3):
        lance_core.write_dataset(pa.table({"a": [value]}), path, mode="append")
    assert (path / "_versions/3.manifest").exists()
    ours = lance_core.dataset(path)
    ours.migrate_manifest_paths_v2()
    ours.migrate_manifest_paths_v2()
    names = [item.name for item in (path / "_versions").glob("*.manifest")]
    assert len(names) == 3 and all(len(name) == len("18446744073709551612.manifest") for name in names)
    lance_core.write_dataset(pa.table({"a": [4]}), path, mode="append")
    lance.write_dataset(pa.table({"a": [5]}), path, mode="append")
    assert lance.dataset(path).version == 5
    assert lance_core.dataset(path, version=2).count_rows() == 2


def test_a_batch_of_appends_is_one_version(tmp_path: Path) -> None:
    path = tmp_path / "t"
    ours = lance_core.write_dataset(pa.table({"a": [1]}), path)
    staged = [write_fragments(pa.table({"a": [value]}), path) for value in (2, 3)]
    batch = [Transaction(1, f"u{n}", Append(tuple(item)), properties={f"k{n}": "v"}) for n, item in enumerate(staged)]
    lance_core.write_dataset(pa.table({"a": [9]}), path, mode="append")
    result = LanceDataset.commit_batch(ours, batch)
    assert result["dataset"].version == 3
    assert result["merged"].properties == {"k0": "v", "k1": "v"}
    assert sorted(lance.dataset(path).to_table().column("a").to_pylist()) == [1, 2, 3, 9]
    with pytest.raises(InputError, match="only Append"):
        LanceDataset.commit_batch(ours, [Transaction(1, "d", Delete((), (), "true"))])


def test_bases_are_registered(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    ours.add_bases([BasePath(id=0, path=str(tmp_path / "more"), name="more", is_dataset_root=True)])
    (base,) = ours.base_paths().values()
    assert (base.name, base.is_dataset_root) == ("more", True)
    assert lance.dataset(tmp_path / "t").count_rows() == 1
    with pytest.raises(InputError, match="already registered"):
        ours.add_bases([BasePath(id=0, path=str(tmp_path / "more"))])


def test_sorted(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(pa.table({"a": [3, 1, 2]}), tmp_path / "t")
    assert ours.sort_by("a").column("a").to_pylist() == [1, 2, 3]
    assert ours.sort_by([("a", "descending")]).column("a").to_pylist() == [3, 2, 1]


def test_sql(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    ours = lance_core.write_dataset(pa.table({"a": [3, 1, 2], "b": ["x", "y", "z"]}), tmp_path / "t")

    def run(text: str, name: str = "dataset") -> list[dict[str, object]]:
        batches = ours.sql(text).table_name(name).with_row_id(True).build().to_batch_records()
        return [row for batch in batches for row in batch.to_pylist()]

    assert run("SELECT count(*) AS n FROM dataset") == [{"n": 3}]
    assert run("SELECT a FROM t WHERE b <> 'x' ORDER BY A", "t") == [{"a": 1}, {"a": 2}]
    assert run("SELECT x.a FROM dataset x JOIN dataset y ON x.a = y.a + 1 ORDER BY 1") == [{"a": 2}, {"a": 3}]
    assert run("SELECT _rowid FROM dataset WHERE a = 2") == [{"_rowid": 2}]
    with pytest.raises(InputError, match="query failed"):
        run("SELECT nope FROM dataset")


def test_sql_without_duckdb_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    ours = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    with pytest.raises(InputError, match="DuckDB"):
        ours.sql("SELECT 1").build().to_batch_records()
    with pytest.raises(InputError, match="not a valid table name"):
        ours.sql("SELECT 1").table_name("a b")


def test_duckdb_and_polars_scan_a_table(tmp_path: Path) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    rows = pa.table({"a": range(10), "s": [str(number) for number in range(10)], "v": [[1.0, float(n)] for n in range(10)]})
    ds = lance_core.write_dataset(rows, tmp_path / "t", max_rows_per_file=3)
    ds.delete("a = 9")
    assert duckdb.sql("SELECT sum(a), max(s) FROM ds WHERE s > '3'").fetchall() == [(4 + 5 + 6 + 7 + 8, "8")]
    assert polars.DataFrame(ds).equals(polars.from_arrow(rows).head(9))
    assert polars.DataFrame(ds.scanner(columns=["s"], filter="a > 6"))["s"].to_list() == ["7", "8"]
    lazy = polars.scan_pyarrow_dataset(ds).filter(polars.col("a") > 5).select("s", "a")
    assert lazy.collect().to_dict(as_series=False) == {"s": ["6", "7", "8"], "a": [6, 7, 8]}


def test_a_detached_batch_stands_beside_the_history(tmp_path: Path) -> None:
    path = tmp_path / "t"
    ours = lance_core.write_dataset(pa.table({"a": [1]}), path)
    staged = [write_fragments(pa.table({"a": [value]}), path) for value in (2, 3)]
    batch = (Transaction(1, f"u{n}", Append(tuple(item))) for n, item in enumerate(staged))
    made = LanceDataset.commit_batch(path, batch, None, None, True, detached=True)["dataset"]
    assert made.version >= 1 << 63 and made.latest_version == 1
    for handle in (ours.checkout_version(made.version), lance.dataset(path).checkout_version(made.version)):
        assert handle.to_table().column("a").to_pylist() == [1, 2, 3]
    with pytest.raises(InputError, match="at least one transaction"):
        LanceDataset.commit_batch(path, [], detached=True)
