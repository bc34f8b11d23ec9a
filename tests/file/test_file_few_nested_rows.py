"""A few rows of nested columns take short ways (one chunk, few pages): they must give what a scan gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import LanceError
from lance_core.file.v2 import columns21
from lance_core.pages import group
from lance_core.pages.read import few_lists, miniblock
from tests.file.small_pages import opened_small_pages

ROWS = 6_000
VERSIONS = ("2.0", "2.1", "2.2", "2.3")


def _lists(values: pa.Array, lengths: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    taken = values.take(pa.array(np.arange(int(offsets[-1])) % len(values)))
    return pa.ListArray.from_arrays(pa.array(offsets), taken, mask=None if mask is None else pa.array(mask))


def _columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(12)
    nulls, lengths = rng.random(ROWS) < 0.1, rng.integers(0, 9, ROWS)
    lengths[rng.random(ROWS) < 0.2] = 0
    some = rng.random(7_001) < 0.1
    wide, small = pa.array(rng.integers(0, 1 << 40, 7_001)), pa.array(rng.integers(0, 9, 7_001), mask=some)
    words = pa.array([f"w{number:x}" * (number % 7) for number in rng.integers(0, 1 << 30, 7_001).tolist()], mask=some)
    kinds = pa.array(["red", "green", None, "blue"]).take(pa.array(rng.integers(0, 4, 7_001)))
    point = pa.StructArray.from_arrays([pa.array(rng.normal(size=7_001)), words, kinds], ["x", "word", "kind"])
    maybe = pa.StructArray.from_arrays([small, words], ["n", "word"], mask=pa.array(some))
    inner = _lists(wide, lengths, nulls)
    flags = pa.array(rng.random(7_001) < 0.5, mask=some)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * 1_000).astype(np.float32)), 4)
    pairs = [None if number % 11 == 0 else [(f"k{at}", number) for at in range(number % 4)] for number in range(ROWS)]
    entries = pa.StructArray.from_arrays([_lists(maybe, lengths, nulls), words.slice(0, ROWS)], ["list", "word"])
    large = _lists(pa.array(words, pa.large_string()), lengths, nulls)
    long = np.where(np.arange(ROWS) % 500 == 7, 2_500, 1)
    return {
        "numbers": _lists(wide, lengths, nulls),
        "small": _lists(small, lengths),
        "full": _lists(wide, lengths + 1),
        "words": _lists(words, lengths, nulls),
        "kinds": _lists(kinds, lengths),
        "points": _lists(point, lengths),
        "maybes": _lists(maybe, lengths, nulls),
        "deep": _lists(inner, rng.integers(0, 4, ROWS), nulls),
        "flags": _lists(flags, lengths),
        "vectors": _lists(vectors, lengths),
        "long": _lists(wide, long),
        "large": large.cast(pa.large_list(pa.large_string())),
        "map": pa.array(pairs, pa.map_(pa.string(), pa.int64())),
        "nested": pa.StructArray.from_arrays(entries.flatten(), ["list", "word"], mask=pa.array(nulls)),
        "decimals": _lists(small.cast(pa.decimal128(30, 2)), lengths, nulls),
        "empty": _lists(wide, np.zeros(ROWS, np.int64), nulls),
        "point": point.slice(0, ROWS),
        "maybe": maybe.slice(0, ROWS),
        "holder": pa.StructArray.from_arrays(
            [_lists(small, lengths), vectors.take(pa.array(np.arange(ROWS) % 1_000))], ["a", "b"]
        ),
    }


def _table(version: str) -> pa.Table:
    """The columns that files of a version keep: 2.0 no structs that are null themselves, those before 2.2 no maps."""
    dropped = {"2.0": ["maybes", "maybe", "nested", "map"], "2.1": ["map"]}
    return pa.table(_columns()).drop_columns(dropped.get(version, []))


def _picks() -> list[list[int]]:
    rng = np.random.default_rng(13)
    single = [
        [row]
        for row in (0, 1, 6, 7, 8, 506, 507, 508, 1023, 1024, 4095, 4096, ROWS - 1, *rng.integers(0, ROWS, 12).tolist())
    ]
    runs = [[*range(start, start + size)] for start, size in ((0, 2), (5, 4), (500, 16), (1_020, 9), (ROWS - 40, 40))]
    some = [sorted(rng.choice(ROWS, size, replace=False).tolist()) for size in (2, 3, 4, 5, 15, 16, 17, 40)]
    return [*single, *runs, *some, [9, 3, 3, 5_000, 9]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("writer", ["official", "own"])
def test_few_rows_equal_those_of_a_scan(version: str, writer: str, tmp_path: Path) -> None:
    """Every shape of nesting, rows at the edges of chunks and of rows longer than a chunk, neighbours and single ones."""
    table = _table(version)
    uri = str(tmp_path / "t.lance")
    write = lance.write_dataset if writer == "official" else lance_core.write_dataset
    write(table, uri, data_storage_version=version)
    ours = lance_core.dataset(uri)
    whole = ours.to_table()
    for _ in range(2):  # cold, then with every chunk table known
        for rows in _picks():
            assert ours.take(rows).equals(whole.take(rows)), rows
    theirs = lance.dataset(uri)
    for rows in _picks()[::6]:
        assert ours.take(rows).to_pylist() == theirs.take(rows).to_pylist(), rows


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_few_entries_become_the_same_array(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of entries is put together by plain Python, more of them by numpy: nobody sees which."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(_table(version), uri, data_storage_version=version)
    ours = lance_core.dataset(uri)
    rows = [*range(0, ROWS, 61), *range(500, 520)]
    real, made = columns21.few_entries, 0

    def spy(*arguments: Any) -> Any:
        nonlocal made
        found = real(*arguments)
        made += found is not None
        return found

    monkeypatch.setattr(columns21, "few_entries", spy)
    short = [ours.take([row]) for row in rows]
    monkeypatch.setattr(columns21, "few_entries", lambda *_: None)
    for row, found in zip(rows, short, strict=True):
        found.validate(full=True)
        assert found.equals(ours.take([row])), row
    assert made > 5 * len(rows) or version == "2.3"


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_lists(compression: str, tmp_path: Path) -> None:
    """Encodings without a short way take the codec's."""
    columns = {name: column for name, column in _columns().items() if name in ("numbers", "words", "flags", "deep")}
    metadata = {"lance-encoding:compression": compression}
    schema = pa.schema([pa.field(name, column.type, metadata=metadata) for name, column in columns.items()])
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table(columns, schema=schema), uri, data_storage_version="2.2")
    ours = lance_core.dataset(uri)
    whole = ours.to_table()
    for rows in _picks():
        assert ours.take(rows).equals(whole.take(rows)), rows


def test_rows_of_one_chunk_take_the_short_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single row of lists does not go through the reader of many pages."""
    uri = str(tmp_path / "t.lance")
    columns = {name: column for name, column in _columns().items() if name in ("numbers", "points", "deep")}
    lance.write_dataset(pa.table(columns), uri, data_storage_version="2.1")
    ours = lance_core.dataset(uri)
    whole, taken = ours.to_table(), 0
    real = miniblock.read_list_rows

    def spy(layout: Any, page: Any, table: Any, chunk: int, rows: tuple[int, int], codecs: Any) -> Any:
        nonlocal taken
        taken += 1
        return real(layout, page, table, chunk, rows, codecs)

    monkeypatch.setattr(miniblock, "read_list_rows", spy)
    for row in range(3, ROWS, 601):
        assert ours.take([row]).equals(whole.slice(row, 1))
    assert taken >= 40


@pytest.mark.parametrize("rows", [[100], [100, 101, 102], [7, 900]])
def test_damage_is_noticed(rows: Sequence[int], tmp_path: Path) -> None:
    """Bytes that are flipped anywhere give an error of the library or rows, never anything else."""
    uri = str(tmp_path / "t.lance")
    columns = {name: column.slice(0, 1_500) for name, column in _columns().items() if name in ("numbers", "maybes", "point")}
    lance.write_dataset(pa.table(columns), uri, data_storage_version="2.1")
    (path,) = (tmp_path / "t.lance" / "data").iterdir()
    good, rng = path.read_bytes(), np.random.default_rng(14)
    refused = 0
    for place in rng.integers(0, len(good) * 9 // 10, 120).tolist():
        damaged = bytearray(good)
        damaged[place : place + 8] = b"\xff" * 8
        path.write_bytes(bytes(damaged))
        try:
            lance_core.dataset(uri).take(rows)
        except LanceError:
            refused += 1
    assert refused


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
@pytest.mark.filterwarnings("ignore:file version 2.3")
def test_rows_of_many_small_pages(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all pages are known, rows here and there are found in one table of all of their chunks."""
    fixed = pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([pa.array(range(2 * ROWS))], ["n"]), 2)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, ROWS + 1, 2, dtype=np.int32)), fixed)
    columns = _columns()
    if version == "2.3":
        columns["fixed"] = lists.take(pa.array(np.arange(ROWS) % (ROWS // 2)))
    if version == "2.1":
        del columns["map"]
    table = pa.table(columns)
    opened, schema, _ = opened_small_pages(table, version, max_page_bytes=20_000, batch_rows=700)
    whole = opened.project(schema).table()
    opened.take(schema, [*range(0, ROWS, 9)])
    sizes: list[int] = []
    real = group.read_column

    def spy(column: Any, rows: Any, codecs: Any) -> Any:
        sizes.append(len(column.items.counts) if column.items is not None else 0)
        return real(column, rows, codecs)

    monkeypatch.setattr(group, "read_column", spy)
    short: list[int] = []
    few = few_lists.read_few_lists

    def spy_few(layout: Any, rows: Any, owners: Any, chunks: Any, *rest: Any) -> Any:
        short.append(len(chunks))
        return few(layout, rows, owners, chunks, *rest)

    monkeypatch.setattr(few_lists, "read_few_lists", spy_few)
    rng = np.random.default_rng(15)
    for size in (4, 5, 20, 31, 32, 33, 200, 700, *[8] * 20):
        rows = sorted(rng.choice(ROWS, size, replace=False).tolist())
        found = pa.Table.from_batches([opened.take(schema, rows)])
        assert found.equals(whole.take(rows).combine_chunks()), size
    assert len(sizes) >= 5 * 8
    assert max(sizes) > 3, "the dictionaries of several pages are joined"
    assert max(short) > 16
    rows = sorted({row for start in range(0, ROWS, 700) for row in (start - 1, start, start + 1) if 0 <= row < ROWS})
    assert pa.Table.from_batches([opened.take(schema, rows)]).equals(whole.take(rows).combine_chunks())


def test_damage_of_small_pages_is_noticed() -> None:
    """Chunks found in the table of all pages are checked as others are."""
    columns = {name: column for name, column in _columns().items() if name in ("numbers", "maybes", "deep")}
    opened, schema, store = opened_small_pages(pa.table(columns), "2.1", max_page_bytes=20_000, batch_rows=700)
    rows = [*range(3, ROWS, ROWS // 9)]
    opened.take(schema, [*range(0, ROWS, 9)])
    opened.take(schema, rows)
    good, rng, refused = bytes(store.get("data/x.lance")), np.random.default_rng(16), 0
    for place in rng.integers(0, len(good) * 9 // 10, 200).tolist():
        damaged = bytearray(good)
        damaged[place : place + 600] = b"\xff" * 600
        store.put("data/x.lance", bytes(damaged))
        try:
            opened.take(schema, rows)
        except LanceError:
            refused += 1
    assert refused
