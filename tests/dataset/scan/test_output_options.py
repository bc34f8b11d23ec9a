"""What shapes a scan's result: order, deleted rows, batches, blobs, statistics; beside the official library."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering as OfficialOrdering

import lance_core
from lance_core import ColumnOrdering
from lance_core.errors import InputError
from tests.dataset.dataset_tables import same


def rows(num_rows: int = 120) -> pa.Table:
    """Values with ties, nulls, both zeros, nan; `n` tells rows apart."""
    rng = random.Random(5)
    floats = [float("nan"), None, -0.0, 0.0, float("inf"), float("-inf"), 1.5, -2.25]
    return pa.table(
        {
            "n": range(num_rows),
            "a": pa.array([rng.choice([None, 1, 2, 3]) for _ in range(num_rows)], pa.int16()),
            "f": pa.array([rng.choice(floats) for _ in range(num_rows)], pa.float64()),
            "g": pa.array([rng.choice(floats) for _ in range(num_rows)], pa.float32()),
            "s": pa.array([rng.choice([None, "", "b", "Z", "é", "aa"]) for _ in range(num_rows)]),
            "t": pa.array([rng.choice([None, 1, 2]) for _ in range(num_rows)], pa.timestamp("us")),
            "flag": pa.array([rng.choice([None, True, False]) for _ in range(num_rows)]),
            "point": pa.array([{"x": rng.randrange(5)} for _ in range(num_rows)], pa.struct([("x", pa.int32())])),
        }
    )


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("shape") / "t.lance")
    ds = lance_core.write_dataset(rows(), path, max_rows_per_file=50)
    ds.delete("n % 7 = 3")
    return path


def orders(kind: Any, names: tuple[str, ...]) -> list[list[Any]]:
    ways = itertools.product(*[itertools.product([name], [True, False], [True, False]) for name in names])
    return [[kind(*way) for way in chosen] for chosen in ways]


@pytest.mark.parametrize("name", ["a", "f", "g", "s", "t", "flag"])
def test_order(uri: str, name: str) -> None:
    ours, theirs = lance_core.dataset(uri), lance.dataset(uri)
    for mine, other in zip(orders(ColumnOrdering, (name, "n")), orders(OfficialOrdering, (name, "n")), strict=True):
        wanted = theirs.to_table(columns=["n", name], order_by=other)
        same(ours.to_table(columns=["n", name], order_by=mine), wanted)
        same(ours.to_table(columns=["n", name], order_by=other), wanted)  # their orderings will do
        same(ours.to_table(columns=["n"], order_by=mine, limit=9, offset=4), wanted.select(["n"]).slice(4, 9))
        # Rows that are equal keep their order.
        plain = ours.to_table(columns=["n", name], order_by=mine[:1])
        assert plain.column(name).equals(wanted.column(name)) or name in "fg"


def test_order_with_other_options(uri: str) -> None:
    ours = lance_core.dataset(uri)
    wanted = ours.to_table(columns=["n", "a"], filter="a > 1").sort_by([("a", "descending"), ("n", "ascending")])
    order = [ColumnOrdering("a", ascending=False), "n"]
    same(ours.to_table(columns=["n", "a"], filter="a > 1", order_by=order), wanted)
    computed = ours.to_table(columns={"m": "n + 1"}, filter="a > 1", order_by=order)
    assert computed.column("m").to_pylist() == [n + 1 for n in wanted.column("n").to_pylist()]
    batches = [*ours.to_batches(columns=["n", "a"], filter="a > 1", order_by=order, batch_size=10)]
    same(pa.Table.from_batches(batches), wanted)
    assert max(batch.num_rows for batch in batches) == 10
    assert ours.to_table(columns=["n"], order_by="n", limit=2, offset=500).num_rows == 0
    by_field = ours.to_table(columns=["n", "point"], order_by=["point.x", "n"])
    keys = [(row["point"]["x"], row["n"]) for row in by_field.to_pylist()]
    assert keys == sorted(keys)
    fragment = ours.get_fragment(1)
    numbers = fragment.to_table(columns=["n"], order_by=[ColumnOrdering("n", False)], limit=3).column("n").to_pylist()
    assert numbers == [99, 98, 97]
    last = ours.to_table(columns=["n"], order_by=[ColumnOrdering("_rowaddr", False)], limit=1)
    assert last.column("n").to_pylist() == [119]
    assert ours.scanner(filter="a > 1", order_by=order).count_rows() == wanted.num_rows
    for wrong, match in ((["nope"], "nope"), (["point"], "cannot be sorted"), ([1], "order_by"), (1, "order_by")):
        with pytest.raises(InputError, match=match):
            ours.to_table(order_by=wrong)


def test_order_of_a_search(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40, dtype=np.float32)), 2)
    ds = lance_core.write_dataset(pa.table({"id": range(20), "v": vectors}), tmp_path / "t")
    nearest = {"column": "v", "q": [20.0, 21.0], "k": 5}
    found = ds.to_table(columns=["id"], nearest=nearest, order_by=["id"])
    assert found.column("id").to_pylist() == [8, 9, 10, 11, 12]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_deleted_rows(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t.lance")
    ours = lance_core.write_dataset(rows(), path, max_rows_per_file=50, enable_stable_row_ids=stable)
    ours.delete("n % 7 = 3")
    ours.create_scalar_index("n", "BTREE")
    theirs = lance.dataset(path)
    options: Any
    for options in (
        {"with_row_id": True},
        {"with_row_id": True, "with_row_address": True},
        {"columns": ["_rowid", "n"]},
        {"columns": ["n"], "with_row_id": True, "filter": "a = 2"},
        {"with_row_id": True, "limit": 30, "offset": 17},
    ):
        wanted = theirs.to_table(include_deleted_rows=True, **options)
        same(ours.to_table(include_deleted_rows=True, **options), wanted)
        same(pa.Table.from_batches(ours.to_batches(include_deleted_rows=True, batch_size=8, **options)), wanted)
        assert ours.scanner(include_deleted_rows=True, **options).count_rows() == wanted.num_rows
        assert ours.scanner(include_deleted_rows=True, **options).projected_schema.names == wanted.column_names
    # An index knows nothing of deleted rows, so it is not asked.
    assert ours.to_table(include_deleted_rows=True, with_row_id=True, filter="n = 3").num_rows == 1
    mine, other = (handle.get_fragment(1) for handle in (ours, theirs))
    same(*(item.to_table(include_deleted_rows=True, with_row_id=True) for item in (mine, other)))
    ordered = ours.to_table(
        columns=["n"], include_deleted_rows=True, with_row_id=True, order_by=[ColumnOrdering("n", False)]
    )
    assert ordered.column("n").to_pylist() == [*range(119, -1, -1)]
    with pytest.raises(InputError, match="with_row_id"):
        ours.to_table(include_deleted_rows=True)


def test_batches_of_exact_size(uri: str) -> None:
    ours, theirs = lance_core.dataset(uri), lance.dataset(uri)
    options: Any
    for options in (
        {"batch_size": 7},
        {},
        {"batch_size": 11, "filter": "a > 1"},
        {"batch_size": 7, "limit": 50, "offset": 5},
        {"batch_size": 9, "columns": ["n"], "order_by": ["n"]},
        {"batch_size": 500},
    ):
        batches = [*ours.to_batches(strict_batch_size=True, **options)]
        wanted = [batch.num_rows for batch in theirs.to_batches(strict_batch_size=True, **options)]
        assert [batch.num_rows for batch in batches] == wanted
        same(pa.Table.from_batches(batches), ours.to_table(**{**options, "batch_size": None}))
    bounded = [*ours.to_batches(batch_size_bytes=256, columns=["n"])]
    assert max(batch.nbytes for batch in bounded) <= 256 and sum(batch.num_rows for batch in bounded) == ours.count_rows()
    assert {batch.num_rows for batch in ours.to_batches(batch_size_bytes=1)} == {1}
    for wrong in ({"strict_batch_size": True, "batch_size_bytes": 9}, {"batch_size_bytes": 0}, {"batch_size": 0}):
        with pytest.raises(InputError, match="batch_size"):
            ours.to_batches(**wrong)


def test_statistics(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    ours = lance_core.dataset(uri)
    seen: list[Any] = []
    table = ours.to_table(columns=["n"], filter="a > 1", scan_stats_callback=seen.append)
    (figures,) = seen
    assert figures.all_counts == {"rows_returned": table.num_rows, "rows_scanned": ours.count_rows(), "fragments_scanned": 3}
    assert figures.iops >= 3 and figures.bytes_read > 0
    official: list[Any] = []
    lance.dataset(uri).scanner(columns=["n"], filter="a > 1", scan_stats_callback=official.append).to_table()
    assert {name for name in dir(official[0]) if not name.startswith("_")} <= {*dir(figures)}
    for _ in ours.to_batches(columns=["n"], order_by=["n"], scan_stats_callback=seen.append):
        assert len(seen) == 1, "it is not over"
    assert len(seen) == 2

    def broken(_: Any) -> None:
        raise ValueError("mine")

    assert ours.to_table(scan_stats_callback=broken).num_rows == ours.count_rows()
    assert "mine" in caplog.text


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "v2"])
def test_blobs(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "t.lance")
    values = [bytes([n]) * (n * 11) if n % 5 else None for n in range(30)]
    if version == "v2":
        outside = tmp_path / "outside.bin"
        outside.write_bytes(b"0123456789")
        values[7] = lance_core.Blob.from_uri(f"file://{outside}", 2, 5)  # type: ignore[call-overload]
        column, field = lance_core.blob_array(values), lance_core.blob_field("b")
        options: Any = {
            "data_storage_version": "2.2",
            "allow_external_blob_outside_bases": True,
            "storage_options": {"allow_external_blob_outside_bases": "true"},
        }
        values[7] = b"23456"
    else:
        column = pa.array(values, pa.large_binary())
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        options = {"data_storage_version": version}
    schema = pa.schema([pa.field("n", pa.int64()), field, pa.field("plain", pa.binary())])
    arrays = [pa.array(range(30)), column, pa.array([b"x"] * 30)]
    ours = lance_core.write_dataset(pa.Table.from_arrays(arrays, schema=schema), path, max_rows_per_file=12, **options)
    ours.delete("n = 3")
    kept = [value for n, value in enumerate(values) if n != 3]
    theirs = lance.dataset(path)
    for handling in ("all_binary", "blobs_descriptions", "all_descriptions"):
        for asked in ({}, {"columns": ["b", "n"]}, {"filter": "n > 10"}, {"limit": 5, "offset": 9}, {"columns": ["b"]}):
            if version == "v2" and handling == "all_binary":
                continue  # the official library asks for the place of outside objects to be registered
            wanted = theirs.to_table(blob_handling=handling, **asked)  # type: ignore[arg-type]
            made = ours.to_table(blob_handling=handling, **asked)  # type: ignore[arg-type]
            assert made.column_names == wanted.column_names
            assert [column.to_pylist() for column in made.columns] == [column.to_pylist() for column in wanted.columns]
            assert ours.scanner(blob_handling=handling, **asked).projected_schema.equals(made.schema)  # type: ignore[arg-type]
    assert ours.to_table(blob_handling="all_binary").column("b").to_pylist() == kept
    ordered = ours.to_table(blob_handling="all_binary", columns=["b"], order_by=[ColumnOrdering("n", False)], limit=4)
    assert ordered.column("b").to_pylist() == kept[:-5:-1]
    files = ours.to_pandas(blob_mode="lazy")
    assert list(files.columns) == ["n", "b", "plain"]
    assert [None if file is None else file.readall() for file in files["b"]] == kept
    assert ours.to_pandas(blob_mode="bytes")["b"].tolist() == kept
    assert [*ours.get_fragment(0).to_pandas(blob_mode="bytes")["b"]] == kept[:11]
    for wrong in ({"blob_handling": "bogus"}, {"blob_mode": "bogus"}):
        with pytest.raises(InputError, match="bogus"):
            ours.to_pandas(**wrong)
