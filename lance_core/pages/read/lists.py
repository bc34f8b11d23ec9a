"""Some rows of mini-block pages with lists: many pages of one column in one request and one pass over their levels.

::

    page 0   rows 3, 900       chunks 0, 7            \\
    page 1   rows 12           chunk  4                |  one request, one decode of the levels of 4 chunks, one walk that
    page 2   rows 0, 1         chunk  0               /   finds entries and slots of 5 rows; only their values are decoded

Writers cut columns with lists into pages of some ten thousand levels each, so rows far apart are in as many pages, and
what a page costs beside its bytes is what a read costs. Pages are read together when their descriptions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints, Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, Picks, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.kernels.levels import locate_rows
from lance_core.pages.buffers import check_part, request_ranges
from lance_core.pages.chunks import ChunkParts, ChunkTable, chunks_of_few, chunks_of_rows, read_headers
from lance_core.pages.leaf import Leaf, max_rep, max_visible_def
from lance_core.pages.rows import RowSelection, expand_ranges
from lance_core.pages.select import check_slots
from lance_core.pages.value_slots import take_slots

_MAX_ITEMS = 1 << 17
"""Dictionaries of more items in all are not joined."""
_MANY_SLOTS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class PageRows:
    """Some rows of one page, and the table of its chunks."""

    page: Page
    table: ChunkTable
    rows: RowSelection


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Chunks of several pages in order (int64, one entry per chunk), those that hold the rows of a read.

    `starts`: places in the file. `before`, `after`: rows that have started before and by the end of the chunk, counted over
    all pages. `part`: which page.
    """

    starts: Ints
    sizes: Ints
    counts: Ints
    before: Ints
    after: Ints
    part: Ints

    def pick(self, numbers: Ints) -> Chunks:
        """Some of them."""
        columns = (self.starts, self.sizes, self.counts, self.before, self.after, self.part)
        return Chunks(*(column[numbers] for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class JoinedItems:
    """The dictionaries of several pages joined: how many items each page has, how many are before them, all of them."""

    counts: Ints
    bases: Ints
    block: Block


def are_alike(layouts: Sequence[object]) -> bool:
    """Whether pages of these layouts may be read together: mini-block, with lists and a repetition index, all the same."""
    first = layouts[0] if layouts else None
    if not isinstance(first, MiniBlockLayout) or not first.repetition_index_depth or first.rep_compression is None:
        return False
    shape = _shape(first)
    return all(isinstance(item, MiniBlockLayout) and _shape(item) == shape for item in layouts)


def _shape(layout: MiniBlockLayout) -> MiniBlockLayout:
    return replace(layout, num_items=0, num_dictionary_items=0)


def can_join(tables: Sequence[ChunkTable]) -> bool:
    """Whether the dictionaries of the pages, if they have any, are small enough to be joined."""
    items = [table.dictionary for table in tables if table.dictionary is not None]
    plain = all(isinstance(item, VariableBlock) or (isinstance(item, FixedBlock) and item.bits % 8 == 0) for item in items)
    return len(tables) == 1 or (plain and sum(item.count for item in items) <= _MAX_ITEMS)


def read_lists(layout: MiniBlockLayout, parts: Sequence[PageRows], codecs: Codecs) -> Fetch[Leaf]:
    """The rows of all parts, in order. The pages are `are_alike`; each has a repetition index."""
    chunks = _chunks(layout, parts)
    bases = np.cumsum([0, *(part.page.num_rows for part in parts[:-1])])
    begins = np.concatenate([part.rows.starts + base for part, base in zip(parts, bases, strict=True)])
    ends = np.concatenate([part.rows.ends + base for part, base in zip(parts, bases, strict=True)])
    items = None if layout.dictionary is None else join_items([part.table.dictionary for part in parts])
    return (yield from read_chunks(layout, chunks, RowSelection(begins, ends), items, codecs))


def read_chunks(
    layout: MiniBlockLayout, chunks: Chunks, rows: RowSelection, items: JoinedItems | None, codecs: Codecs
) -> Fetch[Leaf]:
    """The rows, counted over all pages, that some chunks hold."""
    data, positions = yield from request_ranges(chunks.starts, chunks.starts + chunks.sizes)
    found = read_headers(layout, data, positions, positions + chunks.sizes)
    rep = decode_levels(codecs, layout.rep_compression, found.rep, found.num_levels)
    def_ = None if found.def_ is None else decode_levels(codecs, layout.def_compression, found.def_, found.num_levels)
    entries, slots = _locate(layout, rows, chunks, found, rep, def_)
    values = _values(layout, items, chunks, found, slots, codecs)
    leaf = Leaf(values, rep[entries], None if def_ is None else def_[entries], layout.layers, rows.num_rows)
    check_slots(leaf)
    return leaf


def _chunks(layout: MiniBlockLayout, parts: Sequence[PageRows]) -> Chunks:
    columns: tuple[list[int], ...] = ([], [], [], [], [], [])
    base = 0
    for number, part in enumerate(parts):
        few = chunks_of_few(part.table, part.rows)
        if few is None:
            _add_many(columns, layout, part, base)
        else:
            _add_few(columns, part, few, base)
        columns[-1].extend([number] * (len(columns[0]) - len(columns[-1])))
        base += part.page.num_rows
    return Chunks(*(np.array(column, np.int64) for column in columns))


def _add_few(columns: tuple[list[int], ...], part: PageRows, chunks: Sequence[int], base: int) -> None:
    """Starts, sizes, counts, rows before and after. A read of some rows has hundreds of pages with a chunk or two."""
    table, buffer = part.table, part.page.buffers[1]
    starts, sizes, counts, before, after = columns[:5]
    for chunk in chunks:
        start, end = table.bounds.item(chunk), table.bounds.item(chunk + 1)
        if not 0 <= start <= end <= buffer.size:
            check_part(part.page, 1, table.bounds[chunk : chunk + 1], table.bounds[chunk + 1 : chunk + 2])
        starts.append(start + buffer.start)
        sizes.append(end - start)
        counts.append(table.values.item(chunk + 1) - table.values.item(chunk))
        before.append(table.started(chunk) + base)
        after.append(table.started(chunk + 1) + base)


def _add_many(columns: tuple[list[int], ...], layout: MiniBlockLayout, part: PageRows, base: int) -> None:
    """The same of any number of chunks."""
    table = part.table
    chunks = chunks_of_rows(layout, table, part.rows)
    starts, ends = table.bounds[chunks], table.bounds[chunks + 1]
    check_part(part.page, 1, starts, ends)
    counts = table.values[chunks + 1] - table.values[chunks]
    before, after = table.rows_before(chunks) + base, table.rows_before(chunks + 1) + base
    found = (starts + part.page.buffers[1].start, ends - starts, counts, before, after)
    for column, numbers in zip(columns, found, strict=False):
        column += numbers.tolist()


def decode_levels(codecs: Codecs, encoding: object, pieces: object, counts: Ints) -> Levels:
    """Levels of many chunks."""
    block = codecs.decode_block(encoding, pieces, counts)  # type: ignore[arg-type]
    if not isinstance(block, FixedBlock) or block.bits != 16:
        raise CorruptFileError("levels are not 16-bit numbers")
    return words(block.data, np.uint16)


def _locate(
    layout: MiniBlockLayout, rows: RowSelection, chunks: Chunks, found: ChunkParts, rep: Levels, def_: Levels | None
) -> tuple[Ints, Ints]:
    """The entries of the rows, and the value slots they own, counted over all chunks."""
    begins, ends = np.ascontiguousarray(rows.starts), np.ascontiguousarray(rows.ends)
    places = np.empty((4, len(begins)), np.int64)
    # Without definition levels every entry owns a slot.
    visible = np.iinfo(np.uint16).max if def_ is None else max_visible_def(layout.layers)
    facts = np.array([max_rep(layout.layers), visible], np.int64)
    bounds = np.append(0, np.cumsum(found.num_levels))
    levels = np.ascontiguousarray(rep)
    defs = levels if def_ is None else np.ascontiguousarray(def_)
    bad = locate_rows(levels, defs, bounds, chunks.before, chunks.after, chunks.counts, begins, ends, facts, *places)
    if bad < 0:
        raise CorruptFileError(f"the repetition index does not match the levels of chunk {-1 - bad}, or its values do not")
    return expand_ranges(places[0], places[1]), expand_ranges(places[2], places[3])


def _values(
    layout: MiniBlockLayout, items: JoinedItems | None, chunks: Chunks, found: ChunkParts, slots: Ints, codecs: Codecs
) -> Block:
    ends = np.cumsum(chunks.counts)
    owners = np.searchsorted(ends, slots, "right").astype(np.int64)
    places = owners, slots - (ends - chunks.counts)[owners]
    return picked_values(layout, items, found.buffers, chunks.counts, places, chunks.part, codecs)


def picked_values(
    layout: MiniBlockLayout,
    items: JoinedItems | None,
    buffers: tuple[Pieces, ...],
    counts: Ints,
    places: tuple[Ints, Ints],
    parts: Ints,
    codecs: Codecs,
) -> Block:
    """Some values of chunks: `places` are the chunk of each and its place in it, `parts` the page of each chunk."""
    owners, positions = places
    values, total = None, int(counts.sum())
    # Picking costs many times what a value takes: where a good part of many is wanted, all are decoded.
    if len(owners) < _MANY_SLOTS or 8 * len(owners) < total:
        values = codecs.decode_picks(layout.value_compression, buffers, counts, Picks(owners, positions))
    if values is None:
        all_values = codecs.decode(layout.value_compression, buffers, counts)
        if all_values.count != total:
            raise CorruptFileError(f"found {all_values.count} values in chunks of {total}")
        values = take_slots(all_values, (np.cumsum(counts) - counts)[owners] + positions)  # type: ignore[assignment]
    assert values is not None
    if layout.dictionary is None:
        return values
    if items is None:
        raise CorruptFileError("a page with a dictionary has no items")
    return _spelled(values, items, parts[owners])


def join_items(dictionaries: Sequence[Block | None]) -> JoinedItems | None:
    """The dictionaries of some pages as one; None where a page has none."""
    items = [item for item in dictionaries if item is not None]
    if not items or len(items) != len(dictionaries):
        return None
    counts = np.array([item.count for item in items], np.int64)
    return JoinedItems(counts, np.cumsum(counts) - counts, items[0] if len(items) == 1 else _joined(items))


def _spelled(indices: Block, items: JoinedItems, owners: Ints) -> Block:
    """Numbers into the dictionary of each page as numbers into all of them joined."""
    if not isinstance(indices, FixedBlock) or indices.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    counts = items.counts
    numbers = words(indices.data, f"u{indices.bits // 8}")[: indices.count].astype(np.int64)
    if len(numbers) and ((numbers < 0) | (numbers >= counts[owners])).any():
        raise CorruptFileError(
            f"dictionary index {int(numbers.max())} is out of range, the dictionaries have {counts.tolist()[:5]} items"
        )
    if len(counts) > 1:
        numbers = numbers + items.bases[owners]
    stored = FixedBlock(32, numbers.astype(np.uint32).view(np.uint8), len(numbers))
    return DictionaryBlock(stored, items.block)


def _joined(items: Sequence[Block]) -> Block:
    first = items[0]
    if isinstance(first, FixedBlock) and all(isinstance(item, FixedBlock) and item.bits == first.bits for item in items):
        size = first.bits // 8
        parts = [item.data[: item.count * size] for item in items if isinstance(item, FixedBlock)]
        return FixedBlock(first.bits, np.concatenate(parts), sum(item.count for item in items))
    texts = [item for item in items if isinstance(item, VariableBlock)]
    if len(texts) != len(items):
        raise CorruptFileError("the dictionaries of one column hold values of different kinds")
    sizes = np.concatenate([np.diff(item.offsets).astype(np.int64) for item in texts])
    data = [item.data[int(item.offsets[0]) : int(item.offsets[-1])] for item in texts]
    wide = max(item.offsets.dtype for item in texts)
    offsets: npt.NDArray[Any] = np.append(0, np.cumsum(sizes)).astype(wide)
    return VariableBlock(offsets, np.concatenate(data))
