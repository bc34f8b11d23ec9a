"""Scans of columns with lists, whose many small pages are read several at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.errors import FormatError
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.version import parse_storage_version
from lance_core.io.cache import LruCache
from lance_core.io.local.store import LocalStore
from lance_core.pages.read.several_pages import MAX_ITEMS, groups

ROWS = 6000
RNG = np.random.default_rng(8)
LENGTHS = RNG.integers(0, 9, ROWS)
OFFSETS = pa.array(np.concatenate(([0], np.cumsum(LENGTHS))), pa.int32())
COUNT = int(LENGTHS.sum())
WORDS = pa.array([f"word {number}" for number in range(300)]).take(pa.array(RNG.integers(0, 300, COUNT)))
NUMBERS = pa.array(RNG.integers(0, 1000, COUNT), mask=RNG.random(COUNT) < 0.1)
ITEMS = {
    "numbers": NUMBERS,
    "words": WORDS,
    "structs": pa.StructArray.from_arrays([NUMBERS, WORDS], ["n", "w"], mask=pa.array(RNG.random(COUNT) < 0.1)),
    "vectors": pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(COUNT * 3, np.float32)), 3),
}


def table_of(name: str) -> pa.Table:
    return pa.table({"c": pa.ListArray.from_arrays(OFFSETS, ITEMS[name], mask=pa.array(RNG.random(ROWS) < 0.1))})


def written(root: Path, table: pa.Table, version: str) -> ContainerFile:
    """A file of many pages."""
    parsed = parse_storage_version(version)
    schema = schema_from_arrow(table.schema, version=parsed)
    with FileWriter(LocalStore(root), "a.lance", schema, version=parsed, max_page_bytes=16 << 10) as writer:
        for batch in table.to_batches(max_chunksize=500):
            writer.write(batch)
        writer.finish()
    opened = open_file(LocalStore(root), "a.lance", cache=LruCache(max_bytes=1 << 24))
    assert isinstance(opened, ContainerFile)
    assert min(len(column.pages) for column in opened.columns(range(opened.metadata.num_columns))) > 2
    return opened


def read(opened: ContainerFile, ranges: Sequence[tuple[int, int]] | None = None, *, batch_size: int = 8192) -> pa.Array:
    batches = list(opened.read(opened.schema, ranges=ranges, batch_size=batch_size))
    return pa.Table.from_batches(batches, schema_to_arrow(opened.schema)).column("c").combine_chunks()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", list(ITEMS))
def test_pages_are_scanned_together(tmp_path: Path, name: str, version: str) -> None:
    table = table_of(name)
    column = table.column("c").chunk(0)
    opened = written(tmp_path, table, version)
    assert read(opened).equals(column)
    assert read(opened, batch_size=700).equals(column)
    # Some pages whole and some in parts, before and after the tables of chunks are known.
    for _ in range(2):
        got = read(opened, [(7, 5000), (5010, 5990)])
        assert got.equals(pa.concat_arrays([column.slice(7, 4993), column.slice(5010, 980)]))
        opened.take(opened.schema, np.arange(0, ROWS, 150))


@pytest.mark.parametrize("name", list(ITEMS))
def test_damage_in_a_group_names_its_pages(tmp_path: Path, name: str) -> None:
    opened = written(tmp_path, table_of(name), "2.2")
    path = tmp_path / "a.lance"
    data, rng = path.read_bytes(), random.Random(name)
    places = [
        buffer for column in opened.columns([0]) for page in column.pages for buffer in page.buffers if buffer.size > 16
    ]
    refused = 0
    for _ in range(60):
        damaged, buffer = bytearray(data), rng.choice(places)
        damaged[rng.randrange(buffer.start, min(buffer.end, buffer.start + 40))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        again = open_file(LocalStore(tmp_path), "a.lance", cache=LruCache(max_bytes=1 << 20))
        assert isinstance(again, ContainerFile)
        try:
            read(again).validate()
        except FormatError as error:
            assert str(error).startswith("a.lance: column ")
            assert ", page " in str(error)
            refused += 1
    assert refused > 5


def test_groups() -> None:
    assert list(groups([])) == []
    assert list(groups([5, 5])) == [(0, 2)]
    assert list(groups([MAX_ITEMS, 1, MAX_ITEMS - 1, 7])) == [(0, 1), (1, 3), (3, 4)]
