"""Rows with lists out of many pages: the same read together, page by page, and by the official library."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.errors import FormatError
from lance_core.file.open import open_file
from lance_core.io.local.store import LocalStore
from lance_core.pages.rows import RowSelection

ROWS = 60_000


def lists(kind: str) -> pa.Array:
    rng = np.random.default_rng(8)
    lengths = rng.integers(0, 9, ROWS)
    lengths[[0, -1, 500]] = [3000, 2500, 1800]  # rows that go on over several chunks
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    count = int(lengths.sum())
    numbers = pa.array(rng.integers(0, 10**6, count), mask=rng.random(count) < 0.1)
    words = pa.array([f"word {number}" for number in range(500)]).take(pa.array(rng.integers(0, 500, count)))
    if kind == "numbers":
        return pa.ListArray.from_arrays(offsets, numbers, mask=pa.array(rng.random(ROWS) < 0.1))
    if kind == "words":
        return pa.ListArray.from_arrays(offsets, words)
    if kind == "texts":
        return pa.ListArray.from_arrays(offsets, pa.array([f"{number:x}-{number * 7919:x}" for number in range(count)]))
    if kind == "structs":
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([numbers, words], ["n", "w"]))
    inner = pa.ListArray.from_arrays(offsets, numbers.slice(0, count))
    outer = np.append(0, np.cumsum(np.minimum(rng.integers(0, 4, ROWS), 1)))
    return pa.ListArray.from_arrays(pa.array(outer.astype(np.int32)), inner.slice(0, int(outer[-1])))


@pytest.mark.parametrize("writer", ["ours", "official"])
@pytest.mark.parametrize("kind", ["numbers", "words", "texts", "structs", "lists"])
def test_takes_of_rows_with_lists(kind: str, writer: str, tmp_path: Path) -> None:
    table = pa.table({"a": lists(kind), "id": pa.array(range(ROWS))})
    uri = str(tmp_path / "t.lance")
    if writer == "ours":
        lance_core.write_dataset(table, uri)
    else:
        lance.write_dataset(table, uri)
    ours = lance_core.dataset(uri)
    rng = np.random.default_rng(1)
    for rows in (rng.choice(ROWS, 300, replace=False), [0, 1, 499, 500, 501, ROWS - 1], [7], np.arange(40_000, 41_000)):
        wanted = [int(row) for row in rows]
        for _ in range(2):  # cold, page by page; then with every index known, together
            found = ours.take(wanted)
            assert found.combine_chunks().equals(table.take(pa.array(wanted)).combine_chunks())
    reader = reader_of(ours.snapshot, ours.snapshot.manifest.fragments[0])
    batches = reader.read(
        ours.snapshot.manifest.schema, RowSelection.ranges([(3, 9), (495, 520), (59_000, 60_000)]), batch_size=200
    )
    expected = pa.concat_tables([table.slice(3, 6), table.slice(495, 25), table.slice(59_000, 1000)])
    assert pa.Table.from_batches(list(batches)).equals(expected)


def test_pages_together_notice_damage(tmp_path: Path) -> None:
    table = pa.table({"a": lists("structs")})
    uri = tmp_path / "t.lance"
    lance_core.write_dataset(table, str(uri))
    (path,) = (uri / "data").iterdir()
    data = path.read_bytes()
    rng = np.random.default_rng(2)
    rows = sorted(int(row) for row in rng.choice(ROWS, 100, replace=False))
    store = LocalStore(uri)
    for _ in range(60):
        opened = open_file(store, f"data/{path.name}")
        schema = opened.schema
        path.write_bytes(data)
        opened.take(schema, rows)
        broken = bytearray(data)
        for _ in range(40):
            broken[int(rng.integers(0, len(data) * 9 // 10))] = int(rng.integers(0, 256))
        path.write_bytes(bytes(broken))
        try:
            assert opened.take(schema, rows).num_rows == len(rows)
        except FormatError as error:
            assert path.name in str(error)
    path.write_bytes(data)
