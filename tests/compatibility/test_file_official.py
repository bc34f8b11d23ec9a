"""Differential tests: what the official library writes we read, what we write it reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.file import file_columns as columns
from tests.file import file_tables as tables

SIZES = [1, 1023, 1024, 1025]
VERSIONS = ["2.0", "2.1", "2.2"]


def _nulls(name: str, version: str) -> list[str]:
    known = [nulls for nulls in columns.NULLS if columns.is_known(name, nulls, version)]
    if not known:
        pytest.skip("the official library has no such type in this version")
    return known


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", columns.VALUES)
def test_official_files_are_read(tmp_path: Path, name: str, version: str) -> None:
    for nulls in _nulls(name, version):
        for size in SIZES:
            table = columns.table(name, size, nulls)
            opened = tables.write_official(tmp_path / f"{nulls}{size}", table, version)
            tables.assert_same(tables.read_all(opened, batch_size=700), table)
            rows = [size - 1, 0, size // 2, 0]
            got = opened.take(opened.schema, rows)
            assert got.column(0).to_pylist() == table.take(rows).column(0).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", columns.VALUES)
def test_our_files_are_read_by_both(tmp_path: Path, name: str, version: str) -> None:
    for nulls in _nulls(name, version):
        for size in SIZES:
            root = tmp_path / f"{nulls}{size}"
            table = columns.table(name, size, nulls)
            written = tables.write_ours(root, table, version, batch_size=400)
            tables.assert_same(tables.read_all(tables.open_ours(root, written)), table)
            dataset = tables.official(root, table, written, version)
            tables.assert_same(dataset.to_table(), table)
            dataset.validate()


@pytest.mark.parametrize("name", ["int64", "string", "list", "list_struct", "fsl_wide", "long_string", "dictionary", "map"])
@pytest.mark.parametrize("nulls", ["none", "some"])
def test_many_pages(tmp_path: Path, name: str, nulls: str) -> None:
    table = columns.table(name, 9000, nulls)
    written = tables.write_ours(tmp_path, table, batch_size=1700, max_page_bytes=10_000)
    opened = tables.open_ours(tmp_path, written)
    tables.assert_same(tables.read_all(opened, batch_size=800), table)
    tables.assert_same(tables.official(tmp_path, table, written).to_table(), table)
    schema = opened.schema
    ranges = [(5, 6), (100, 2500), (8999, 9000)]
    got = pa.Table.from_batches(list(opened.read(schema, ranges=ranges, batch_size=1000)))
    rows = [row for start, end in ranges for row in range(start, end)]
    assert got.column(0).to_pylist() == table.take(rows).column(0).to_pylist()


@pytest.mark.parametrize("name", ["int64", "string", "list_struct", "fsl", "dictionary", "low_cardinality", "runs"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_large_files(tmp_path: Path, name: str, version: str) -> None:
    for nulls in _nulls(name, version):
        table = columns.table(name, 100_000, nulls)
        opened = tables.write_official(tmp_path / f"official{nulls}", table, version)
        tables.assert_same(tables.read_all(opened), table)
        root = tmp_path / f"ours{nulls}"
        written = tables.write_ours(root, table, version)
        tables.assert_same(tables.read_all(tables.open_ours(root, written)), table)
        tables.assert_same(tables.official(root, table, written, version).to_table(), table)


def test_empty_tables(tmp_path: Path) -> None:
    table = columns.table("int64", 0)
    written = tables.write_ours(tmp_path, table)
    assert written.num_rows == 0
    assert tables.open_ours(tmp_path, written).num_rows == 0
    tables.assert_same(tables.read_all(tables.open_ours(tmp_path, written)), table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("string", {"compression": "zstd"}),
        ("string", {"compression": "lz4"}),
        ("string", {"compression": "fsst"}),
        ("string", {"structural-encoding": "fullzip"}),
        ("float64", {"compression": "zstd", "bss": "on"}),
        ("list", {"structural-encoding": "fullzip"}),
        ("packed", {"packed": "true"}),
        ("blob", {"blob": "true"}),
    ],
)
def test_encoding_metadata(tmp_path: Path, name: str, metadata: dict[str, str], version: str) -> None:
    if (name, version) in (("packed", "2.1"), ("blob", "2.2")):
        pytest.skip("the official library refuses, or turns it into blob v2")
    array = {"packed": _packed, "blob": _blobs}.get(name, lambda: columns.column(name, 3000, "some"))()
    keys = {f"lance-encoding:{key}": value for key, value in metadata.items()}
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=keys)]))
    opened = tables.write_official(tmp_path, table, version)
    tables.assert_same(tables.read_all(opened, batch_size=700), table)
    rows = [len(array) - 1, 3, 3, 0]
    assert opened.take(opened.schema, rows).column(0).to_pylist() == array.take(pa.array(rows)).to_pylist()
    if (name, version) != ("packed", "2.0"):  # ours packs no fixed-size lists there
        written = tables.write_ours(tmp_path / "ours", table, version, batch_size=700)
        tables.assert_same(tables.read_all(tables.open_ours(tmp_path / "ours", written)), table)
        dataset = tables.official(tmp_path / "ours", table, written, version)
        tables.assert_same(dataset.scanner(blob_handling="all_binary").to_table(), table)


def _packed() -> pa.Array:
    rows = [{"x": i, "y": i / 2, "z": [1.0, 2.0 * i]} for i in range(3000)]
    return pa.array(rows, pa.struct([("x", pa.int32()), ("y", pa.float64()), ("z", pa.list_(pa.float32(), 2))]))


def _blobs() -> pa.Array:
    rows = [None if i % 7 == 3 else bytes([i % 256]) * (0 if i % 5 == 0 else i * 37 % 5000) for i in range(2000)]
    return pa.array(rows, pa.large_binary())
