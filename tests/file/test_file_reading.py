"""Projection, order of rows, batches, missing columns, and how many requests it all takes."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.errors import InputError, SchemaMismatchError
from lance_core.file.open import open_file
from lance_core.file.writer import FileWriter
from lance_core.format.schema import Schema
from lance_core.io.memory import MemoryStore
from lance_core.io.wrapped import CountingStore
from tests.file import file_columns as columns
from tests.file import file_tables as tables


@pytest.fixture
def table() -> pa.Table:
    names = ["int64", "string", "struct", "list_struct", "fsl"]
    return pa.table({name: columns.column(name, 3000, "some") for name in names})


def test_projection_of_nested_fields(tmp_path: Path, table: pa.Table) -> None:
    opened = tables.open_ours(tmp_path, tables.write_ours(tmp_path, table))
    schema = opened.schema
    part = schema.project([schema.find("struct.y").id, schema.find("int64").id])
    got = pa.Table.from_batches(list(opened.read(part)))
    assert got.schema.names == ["int64", "struct"]
    expected = [None if row is None else {"y": row["y"]} for row in table.column("struct").to_pylist()]
    assert got.column("struct").to_pylist() == expected


def test_order_and_repeats(tmp_path: Path, table: pa.Table) -> None:
    opened = tables.open_ours(tmp_path, tables.write_ours(tmp_path, table, max_page_bytes=4000))
    rows = [2999, 0, 0, 1500, 7, 2998, 1500]
    got = opened.take(opened.schema, rows)
    assert pa.Table.from_batches([got]).to_pylist() == table.take(rows).to_pylist()
    assert opened.take(opened.schema, []).num_rows == 0


def test_batch_sizes(tmp_path: Path, table: pa.Table) -> None:
    opened = tables.open_ours(tmp_path, tables.write_ours(tmp_path, table))
    sizes = [batch.num_rows for batch in opened.read(opened.schema, batch_size=999)]
    assert sizes == [999, 999, 999, 3]
    assert [batch.num_rows for batch in opened.read(Schema(()), batch_size=2000)] == [2000, 1000]
    assert opened.take(Schema(()), [1, 1]).num_rows == 2


def test_rows_the_file_does_not_have(tmp_path: Path, table: pa.Table) -> None:
    opened = tables.open_ours(tmp_path, tables.write_ours(tmp_path, table))
    schema = opened.schema
    for rows in ([3000], [-1]):
        with pytest.raises(InputError):
            opened.take(schema, rows)
    for ranges in ([(0, 3001)], [(5, 7), (6, 8)], [(-1, 2)]):
        with pytest.raises(InputError):
            opened.read(schema, ranges=ranges)
    with pytest.raises(InputError):
        opened.read(schema, batch_size=0)


def test_columns_the_file_lacks_read_as_null(tmp_path: Path) -> None:
    table = pa.table({"s": columns.column("struct", 100)})
    opened = tables.open_ours(tmp_path, tables.write_ours(tmp_path, table))
    wider = schema_from_arrow(
        pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.int8())])), ("t", pa.list_(pa.int8()))])
    )
    got = pa.Table.from_batches(list(opened.read(wider)))
    assert got.column("t").null_count == 100
    assert got.column("s").to_pylist()[:2] == [{"x": 0, "y": "0", "z": None}, {"x": 1, "y": None, "z": None}]


def test_requests(table: pa.Table) -> None:
    inner = MemoryStore(f"requests-{uuid.uuid4()}")
    wide = pa.table({f"c{i}": columns.column("float64", 2000) for i in range(40)})
    schema = schema_from_arrow(wide.schema)
    writer = FileWriter(inner, "data/a.lance", schema)
    for batch in wide.to_batches():
        writer.write(batch)
    written = writer.finish()
    store = CountingStore(inner)
    opened = open_file(store, "data/a.lance", data_file=written.data_file)
    assert (store.counts.calls, store.counts.requests) == (1, 1)
    one = schema.project([schema.find("c3").id])
    (batch,) = opened.read(one)
    assert batch.column(0).equals(wide.column("c3").chunk(0))
    assert (store.counts.calls, store.counts.requests) == (2, 2)
    opened.take(one, [5])
    assert store.counts.calls <= 4


def test_small_files_are_read_with_one_request() -> None:
    inner = MemoryStore(f"small-{uuid.uuid4()}")
    table = columns.table("string", 100)
    writer = FileWriter(inner, "data/a.lance", schema_from_arrow(table.schema))
    writer.write(table.to_batches()[0])
    written = writer.finish()
    store = CountingStore(inner)
    opened = open_file(store, "data/a.lance", data_file=written.data_file)
    (batch,) = opened.read(opened.schema)
    assert batch.column(0).equals(table.column(0).chunk(0))
    assert store.counts.requests == 1


def test_writer_names_what_does_not_fit() -> None:
    schema = schema_from_arrow(pa.schema([pa.field("c", pa.int64(), nullable=False)]))
    store = MemoryStore(f"misfit-{uuid.uuid4()}")
    writer = FileWriter(store, "data/a.lance", schema)
    writer.write(pa.record_batch([pa.array([1, 2])], names=["c"]))
    with pytest.raises(SchemaMismatchError, match=r"'c'.*row 3"):
        writer.write(pa.record_batch([pa.array([1, None])], names=["c"]))
    with pytest.raises(SchemaMismatchError, match="int32"):
        writer.write(pa.record_batch([pa.array([1], pa.int32())], names=["c"]))
    writer.abort()
    assert list(store.list("")) == []
    with pytest.raises(InputError):
        writer.finish()


def test_sliced_batches_and_hidden_values(tmp_path: Path) -> None:
    names = [name for name in columns.VALUES if name != "null"]
    for name in names:
        array = columns.column(name, 300, "some").slice(13, 250)
        table = pa.table({"c": array})
        written = tables.write_ours(tmp_path / name, table, batch_size=77)
        tables.assert_same(tables.read_all(tables.open_ours(tmp_path / name, written)), table)


def test_values_under_nulls_are_not_stored(tmp_path: Path) -> None:
    values = pa.array(["secret", "b", "c"] * 1000)
    hidden = pa.Array.from_buffers(
        pa.string(), 3000, [pa.array([False, True, True] * 1000).buffers()[1], *values.buffers()[1:]]
    )
    written = tables.write_ours(tmp_path, pa.table({"c": hidden}))
    assert b"secret" not in (tmp_path / "data/a.lance").read_bytes()
    assert tables.read_all(tables.open_ours(tmp_path, written)).column(0).to_pylist() == [None, "b", "c"] * 1000


def test_extension_types(tmp_path: Path) -> None:
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"b": 1, "a": [1.5, null]}', None, "42"]))
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16)))
    table = pa.table({"j": json, "u": uuid})
    written = tables.write_ours(tmp_path, table)
    ours = tables.read_all(tables.open_ours(tmp_path, written))
    theirs = tables.official(tmp_path, table, written).to_table()
    for got in (ours, theirs):
        assert got.column("u").type == pa.uuid()
        assert got.column("u").to_pylist() == table.column("u").to_pylist()
        assert got.column("j").to_pylist() == ['{"a":[1.5,null],"b":1}', None, "42"]
