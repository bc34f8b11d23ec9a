"""Blob columns of every version, both ways; descriptors, and values that are beside the file."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.errors import InputError
from lance_core.file.blob.external import KEEP
from lance_core.file.open import open_file
from lance_core.file.writer import FileWriter
from lance_core.format.version import FileVersion
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from tests.file import file_tables as tables

VALUES = [None if i % 7 == 3 else bytes([i % 256]) * (0 if i % 5 == 0 else i * 37 % 5000) for i in range(300)]
METADATA = {"lance-encoding:blob": "true"}
VERSIONS = ["2.0", "2.1", "2.2"]


def blob_table(values: list[bytes | None]) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), pa.field("c", pa.large_binary(), metadata=METADATA)])
    return pa.table({"id": list(range(len(values))), "c": pa.array(values, pa.large_binary())}, schema=schema)


def contents(array: pa.ChunkedArray | pa.Array) -> list[bytes | None]:
    return [value["data"] if isinstance(value, dict) else value for value in array.to_pylist()]


@pytest.mark.parametrize("version", VERSIONS)
def test_official_blobs_are_read(tmp_path: Path, version: str) -> None:
    values = [*VALUES, b"p" * 100_000, b"q" * 200_000, b"r" * 4_500_000]
    opened = tables.write_official(tmp_path, blob_table(values), version)
    assert contents(tables.read_all(opened, batch_size=70).column("c")) == values
    rows = [302, 3, 3, 0, 301]
    assert contents(opened.take(opened.schema, rows).column("c")) == [values[row] for row in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_our_blobs_are_read_by_both(tmp_path: Path, version: str) -> None:
    table = blob_table(VALUES)
    written = tables.write_ours(tmp_path, table, version, batch_size=70)
    assert contents(tables.read_all(tables.open_ours(tmp_path, written)).column("c")) == VALUES
    dataset = tables.official(tmp_path, table, written, version)
    got = dataset.scanner(columns=["c"], blob_handling="all_binary").to_table()
    assert contents(got.column("c")) == VALUES
    files = dataset.take_blobs("c", indices=[1, 3, 4])
    assert [None if file is None else file.read() for file in files] == [VALUES[1], None, VALUES[4]]


@pytest.mark.parametrize("version", VERSIONS)
def test_descriptors(tmp_path: Path, version: str) -> None:
    opened = tables.write_official(tmp_path, blob_table(VALUES), version)
    got = opened.project(opened.schema, blobs="descriptions").table()
    expected = lance.dataset(tmp_path).to_table()
    assert got.column("c").type == expected.column("c").type
    assert got.column("c").to_pylist() == expected.column("c").to_pylist()


def test_table_schemas_with_ids(tmp_path: Path) -> None:
    opened = tables.write_official(tmp_path, blob_table(VALUES))
    schema = schema_from_arrow(blob_table(VALUES).schema)
    got = opened.project(schema.project([schema.find("c").id])).table()
    assert contents(got.column("c")) == VALUES


def test_external_blobs_keep_their_uri() -> None:
    arrow = pa.schema([pa.field("c", pa.struct([("data", pa.large_binary()), ("uri", pa.string())]),
                                metadata={"ARROW:extension:name": "lance.blob.v2"})])  # fmt: skip
    schema = schema_from_arrow(arrow)
    rows = [{"data": b"x", "uri": None}, {"data": None, "uri": "s3://bucket/x"}, None]
    store = MemoryStore("external-blobs")
    writer = FileWriter(store, "data/a.lance", schema, external=KEEP)
    writer.write(pa.RecordBatch.from_arrays([pa.array(rows, arrow.field(0).type)], schema=arrow))
    written = writer.finish()
    opened = open_file(store, "data/a.lance", data_file=written.data_file)
    assert opened.take(schema, [0, 1, 2]).column(0).to_pylist() == rows


def test_blobs_inside_other_columns_are_refused(tmp_path: Path) -> None:
    inner = pa.field("b", pa.large_binary(), metadata=METADATA)
    schema = schema_from_arrow(pa.schema([("s", pa.struct([inner]))]), version=FileVersion.V2_1)
    with pytest.raises(InputError, match=r"'s\.b'"):
        FileWriter(LocalStore(tmp_path), "data/a.lance", schema, version=FileVersion.V2_1)
    assert not list(tmp_path.rglob("*.lance"))
