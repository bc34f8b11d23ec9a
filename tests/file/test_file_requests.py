"""Golden numbers: how many requests a column costs in each version and encoding, and what a writer of many columns holds.

A file whose end (64 KiB) does not hold all of it: one request for the end, which has the tables and the column's metadata;
then one for each range of pages, ranges that are together being one. No column takes a second request before its pages.
"""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.file.open import ContainerFile, OpenFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.layout import ConstantLayout, FullZipLayout, MiniBlockLayout
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.cache import LruCache
from lance_core.io.memory import MemoryStore
from lance_core.io.wrapped import CountingStore

ROWS = 20_000
RNG = np.random.default_rng(1)
COLUMNS = {
    "flat": (pa.array(RNG.integers(-(2**62), 2**62, ROWS)), {}),
    "nulls": (pa.array(RNG.integers(-(2**62), 2**62, ROWS), mask=RNG.random(ROWS) < 0.1), {}),
    "dictionary": (pa.array([f"value {number}" for number in RNG.integers(0, 50, ROWS)]), {}),
    "lists": (pa.array([[number, 1] for number in range(ROWS)], pa.list_(pa.int32())), {}),
    "struct": (pa.array([{"x": number, "y": str(number)} for number in range(ROWS)]), {}),
    "repeated": (pa.array([f"{number:0>300}" for number in range(2000)] * 10), {}),
    "long": (pa.array([f"{number:0>300}" for number in range(ROWS)]), {}),
    "vectors": (pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(ROWS * 96, np.float32)), 96), {}),
    "zipped": (pa.array(RNG.integers(0, 2**62, ROWS)), {"lance-encoding:structural-encoding": "fullzip"}),
    "constant": (pa.array([7] * ROWS), {}),
    "nothing": (pa.nulls(ROWS, pa.int64()), {}),
}
LAYOUTS = {
    "flat": MiniBlockLayout,
    "nulls": MiniBlockLayout,
    "dictionary": MiniBlockLayout,
    "lists": MiniBlockLayout,
    "repeated": MiniBlockLayout,
    "long": FullZipLayout,
    "vectors": FullZipLayout,
    "zipped": FullZipLayout,
    "constant": ConstantLayout,
    "nothing": ConstantLayout,
}
SINCE_2_1 = {
    "flat": (1, 2, 1),
    "nulls": (1, 2, 1),
    "dictionary": (1, 3, 1),
    "lists": (1, 3, 1),
    "struct": (1, 4, 2),
    "repeated": (1, 3, 1),
    "long": (1, 2, 2),
    "vectors": (1, 1, 1),
    "zipped": (1, 1, 1),
    "nothing": (0, 0, 0),
}
# Whole column; one row with an empty cache; another with a warm one. The end of the file is one more, once.
# 0.1: 20 batches are between those of other columns; offsets are read before what they point at (2.0 too). From 2.1 on a
# first row costs the chunk table (with the dictionary or the repetition index: two ranges at once), then its chunk; a
# struct is two columns. Values of a full-zip page that vary in length are found by offsets, nulls cost nothing.
GOLDEN = {
    "0.1": {"flat": (20, 1, 1), "vectors": (20, 1, 1), "long": (40, 2, 2), "lists": (40, 2, 2), "struct": (50, 3, 3)},
    "2.0": {
        "flat": (1, 1, 1),
        "nulls": (1, 2, 1),
        "dictionary": (2, 3, 3),
        "long": (2, 2, 2),
        "lists": (2, 2, 2),
        "struct": (2, 3, 3),
        "vectors": (1, 1, 1),
        "nothing": (0, 0, 0),
    },
    "2.1": {**SINCE_2_1, "constant": (1, 2, 1)},
    "2.2": {**SINCE_2_1, "constant": (0, 0, 0)},
}


def written(name: str, version: str) -> tuple[CountingStore, pa.Table]:
    """A file with the column between two others, so that neither its end nor its beginning is the file's."""
    array, metadata = COLUMNS[name]
    noise = pa.array(RNG.random(ROWS))
    fields = [pa.field("a", noise.type), pa.field("c", array.type, metadata=metadata), pa.field("z", noise.type)]
    table = pa.table([noise, array, noise], schema=pa.schema(fields))
    root = f"requests-{version}-{name}-{uuid.uuid4()}"
    store, parsed = MemoryStore(root), parse_storage_version(version)
    with FileWriter(store, "data/a.lance", schema_from_arrow(table.schema, version=parsed), version=parsed) as writer:
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()
    return CountingStore(store), table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", list(COLUMNS))
def test_one_column_costs_the_end_and_its_ranges(name: str, version: str) -> None:
    store, table = written(name, version)
    size = store.size("data/a.lance")
    store.reset()
    opened = open_file(store, "data/a.lance", size=size, cache=LruCache(max_bytes=1 << 24))
    assert (store.counts.calls, store.counts.requests) == (1, 1)
    assert isinstance(opened, ContainerFile)
    full = opened.schema
    schema = full.project([full.find("c").id])
    got = pa.Table.from_batches(list(opened.read(schema, batch_size=ROWS)), schema_to_arrow(schema))
    assert got.column("c").to_pylist() == table.column("c").to_pylist()
    # Pages of a column are one behind the other, a struct's columns too: one range each, joined where they touch.
    most = 2 if version == "2.0" and name in ("dictionary", "lists", "struct", "long", "repeated") else 1
    assert store.counts.requests <= 1 + most
    if version == "2.2" and name in LAYOUTS:
        column = opened.columns([1])[0]
        assert {type(page.layout) for page in column.pages} == {LAYOUTS[name]}


@pytest.mark.parametrize(("version", "name"), [(version, name) for version, names in GOLDEN.items() for name in names])
def test_golden_numbers(version: str, name: str) -> None:
    store, table = written(name, version)
    size = store.size("data/a.lance")

    def fresh() -> tuple[OpenFile, Schema]:
        opened = open_file(store, "data/a.lance", size=size, cache=LruCache(max_bytes=1 << 24))
        schema = opened.schema.project([opened.schema.find("c").id])
        store.reset()
        return opened, schema

    opened, schema = fresh()
    list(opened.read(schema, batch_size=ROWS))
    whole = store.counts.requests
    opened, schema = fresh()
    counts = []
    for row in (11_111, 4):
        store.reset()
        taken = opened.take(schema, [row])
        assert taken.column(0).to_pylist() == table.column("c").slice(row, 1).to_pylist()
        counts.append(store.counts.requests)
    assert (whole, *counts) == GOLDEN[version][name]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_one_of_many_columns_costs_two_requests_and_its_range(version: str) -> None:
    """The end does not hold the metadata of 2,000 columns: the wanted one's is the second request."""
    names = [f"c{number}" for number in range(2000)]
    table = pa.table([pa.array([number, -number, 2 * number]) for number in range(2000)], names=names)
    parsed, root = parse_storage_version(version), f"requests-many-{version}-{uuid.uuid4()}"
    memory = MemoryStore(root)
    schema = schema_from_arrow(table.schema, version=parsed)
    with FileWriter(memory, "data/a.lance", schema, version=parsed) as writer:
        writer.write(table.to_batches()[0])
        written_file = writer.finish()
    store, data_file = CountingStore(memory), written_file.data_file
    opened = open_file(store, "data/a.lance", data_file=data_file, cache=LruCache(max_bytes=1 << 24))
    one = schema.project([schema.find("c7").id])
    got = next(iter(opened.read(one)))
    assert got.column(0).to_pylist() == [7, -7, 14]
    assert store.counts.requests == 3


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_writer_of_a_thousand_columns_holds_a_few_pages_of_each(version: str) -> None:
    columns, rows, page = 1000, 500, 4 << 10
    names = [f"c{number}" for number in range(columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    parsed = parse_storage_version(version)
    root = f"thousand-{version}-{uuid.uuid4()}"
    values = pa.array(RNG.random(rows))
    batch = pa.record_batch([values] * columns, schema=schema)
    for limit in (columns * page * 4, 1 << 20):
        store = MemoryStore(root)
        lance_schema = schema_from_arrow(schema, version=parsed)
        with FileWriter(
            store, "data/a.lance", lance_schema, version=parsed, max_page_bytes=page, max_buffered_bytes=limit
        ) as writer:
            most = 0
            for _ in range(4):
                writer.write(batch)
                most = max(most, writer.num_waiting_bytes)
            writer.finish()
        # Two pages of each column, and never more than the limit and a batch that has just come.
        assert most <= min(columns * page * 2, limit + batch.nbytes)
        opened = open_file(store, "data/a.lance")
        one = opened.schema.project([opened.schema.find("c999").id])
        assert pa.Table.from_batches(list(opened.read(one))).column(0).to_pylist() == values.to_pylist() * 4
