"""Wide files: columns whose pages are described alike are read together, and give what each gives by itself."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.errors import CorruptFileError
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.v2.columns21 import alike_columns
from lance_core.file.writer import FileWriter
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.memory import MemoryStore
from lance_core.io.wrapped import CountingStore

_ROWS = 700


def _table() -> pa.Table:
    rng = np.random.default_rng(3)
    columns: dict[str, pa.Array] = {}
    for number in range(24):
        mask = rng.random(_ROWS) < 0.2 if number % 3 == 1 else None
        columns[f"float{number}"] = pa.array(rng.normal(size=_ROWS).astype(np.float32), mask=mask)
        columns[f"long{number}"] = pa.array(rng.integers(0, 1 << 62, _ROWS), mask=mask)
        columns[f"flag{number}"] = pa.array(rng.random(_ROWS) < 0.5, mask=mask)
        columns[f"small{number}"] = pa.array(rng.integers(0, 1 << number, _ROWS), pa.int32())
        columns[f"when{number}"] = pa.array(rng.integers(0, 1 << 50, _ROWS), pa.timestamp("us"))
        columns[f"text{number}"] = pa.array([f"{value:x}" for value in rng.integers(0, 1 << 40, _ROWS)], mask=mask)
    columns["list"] = pa.array([[row] * (row % 4) for row in range(_ROWS)])
    return pa.table(columns)


def _written(table: pa.Table, version: str) -> tuple[bytes, Schema]:
    parsed = parse_storage_version(version)
    schema = schema_from_arrow(table.schema, version=parsed)
    store = MemoryStore(f"wide-{uuid.uuid4()}")
    writer = FileWriter(store, "x", schema, version=parsed)
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    return bytes(store.get("x")), schema


def _open(data: bytes) -> ContainerFile:
    store = MemoryStore(f"wide-{uuid.uuid4()}")
    store.put("data/x.lance", data)
    opened = open_file(CountingStore(store), "data/x.lance")
    assert isinstance(opened, ContainerFile)
    return opened


def _groups(opened: ContainerFile, schema: Schema) -> list[tuple[int, ...]]:
    projection = opened.project(schema)
    return [group.numbers for group in alike_columns(projection._readers, projection.num_rows)]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_read_together_are_what_each_is_alone(version: str) -> None:
    table = _table()
    data, schema = _written(table, version)
    opened = _open(data)
    groups = _groups(opened, schema)
    assert sum(map(len, groups)) > table.num_columns // 3
    assert len({number for group in groups for number in group}) == sum(map(len, groups))
    read = opened.project(schema).table()
    read.validate(full=True)
    assert read.equals(table)
    for name in table.column_names:
        alone = opened.project(schema.project([schema.find(name).id])).table()
        assert alone.column(0).equals(read.column(name)), name


def test_a_part_of_the_rows_is_what_it_was() -> None:
    table = _table()
    data, schema = _written(table, "2.1")
    opened = _open(data)
    batches = list(opened.read(schema, ranges=[(10, 500), (501, 699)], batch_size=100))
    assert pa.Table.from_batches(batches).equals(pa.concat_tables([table.slice(10, 490), table.slice(501, 198)]))
    assert opened.take(schema, [3, 3, 699]).to_pylist() == table.take([3, 3, 699]).to_pylist()


def test_slices_of_a_group_can_be_computed_with_and_written() -> None:
    table = _table()
    data, schema = _written(table, "2.1")
    read = _open(data).project(schema).table()
    again, _ = _written(read, "2.1")
    assert _open(again).project(schema).table().equals(table)
    assert read.column("float7").null_count == table.column("float7").null_count


def test_damage_names_the_column_and_the_page() -> None:
    data, schema = _written(_table(), "2.1")
    opened = _open(data)
    group = max(_groups(opened, schema), key=len)
    victim = group[len(group) // 2]
    words = opened.columns([victim])[0].pages[0].buffers[0]
    damaged = bytearray(data)
    damaged[words.start : words.end] = b"\xff" * words.size
    name = schema.top_level[victim].name
    with pytest.raises(CorruptFileError, match=f"column '{name}', page 0"):
        _open(bytes(damaged)).project(schema).table()
