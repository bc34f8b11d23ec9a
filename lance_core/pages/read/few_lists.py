"""A few rows of pages with lists, each of which is in one chunk: as many operations of numpy for ten chunks as for one.

::

    rows 7, 900, 31,000     chunks 0, 4, 160      levels of all three unpacked at once, one search for the rows' entries
    chunk 4 says it begins with row 812           its 89th entry that begins a row, up to the next

What `lists.read_chunks` finds with arrays of chunks, headers and ranges is found here by plain Python, where there are few
of them, and without compiled kernels. What the repetition index says of a chunk is compared with its levels, as there.

The chunks of a whole column of pages with lists in one table, so that some of its rows are found without a look at pages.

::

    page 0   42 chunks   7,855 rows   1,000 items             126 chunks   23,565 rows   3,000 items
    page 1   42 chunks   7,855 rows   1,000 items    ->       row 8,000 is in chunk 43, whose numbers count from
    page 2   42 chunks   7,855 rows   1,000 items             item 1,000

Writers cut columns with lists into hundreds of pages; a hundred rows are in as many, and what Python does for each page is
what a read of some rows costs. The table is made of the chunk tables of the pages once all of them are known, and kept
like them.

Neighbouring rows of a mini-block page with lists that are in one chunk: no arrays of chunks, one chunk of levels.

::

    row 1,500 of the page     chunk 3 holds rows 1,410 to 1,604        90 rows begin before it in the chunk
    rep  1 0 0 1 0 1 ...      the 91st entry that begins a row, up to the 92nd; as many slots as entries that are visible

What the repetition index says of the chunk is compared with its levels, as in `lists.read_lists`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import numpy as np

from lance_core.arrays import Ints, Levels
from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.codecs.one_chunk import decode_levels, decode_many_levels, decode_span
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import check_part, part
from lance_core.pages.chunks import ChunkTable, chunks_of_rows
from lance_core.pages.leaf import Leaf, LeafValues, max_rep, max_visible_def
from lance_core.pages.read.few_values import cut_chunk
from lance_core.pages.read.lists import Chunks, JoinedItems, PageRows, join_items, picked_values, read_chunks
from lance_core.pages.rows import RowSelection, expand_ranges
from lance_core.pages.select import check_slots
from lance_core.pages.value_slots import slice_slots

FEW_ROWS = 32
"""Up to so many rows are looked up one by one: half the time of `lists.read_chunks` where kernels are not compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class ListChunk:
    """One chunk: where it is in the file, its values, the rows that have started before it and by its end, its page."""

    place: ByteRange
    count: int
    before: int
    after: int
    part: int = 0


def owners_of(table: ChunkTable, rows: Sequence[int]) -> list[int] | None:
    """The chunk of each row; None where a row goes on beyond its chunk."""
    ends, carries = memoryview(cast("Any", table.row_ends)), memoryview(cast("Any", table.carries))
    found: list[int] = []
    for row in rows:
        # Row r starts where row r - 1 ends; when that chunk ends with it, in the next one.
        first = bisect_left(ends, row)
        if row and ends[first] == row and not carries[first]:
            first += 1
        if ends[first] <= row:
            return None
        found.append(first)
    return found


def few_of_pages(layout: MiniBlockLayout, parts: Sequence[PageRows], codecs: Codecs) -> Fetch[Leaf] | None:
    """A reader of few rows of several pages (`lists.read_lists`); None where a row goes on beyond its chunk."""
    numbers: list[int] = []
    owners: list[int] = []
    chunks: list[ListChunk] = []
    base = 0
    for page_number, item in enumerate(parts):
        page, table, rows = item.page, item.table, item.rows
        own = rows.to_indices().tolist()
        found = owners_of(table, own)
        if found is None:
            return None
        last = -1
        for chunk in found:
            if chunk != last:
                place = part(page, 1, table.bounds.item(chunk), table.bounds.item(chunk + 1))
                count = table.values.item(chunk + 1) - table.values.item(chunk)
                before, after = table.started(chunk) + base, table.started(chunk + 1) + base
                chunks.append(ListChunk(place, count, before, after, page_number))
                last = chunk
            owners.append(len(chunks) - 1)
        numbers += [row + base for row in own]
        base += page.num_rows
    items = None if layout.dictionary is None else join_items([item.table.dictionary for item in parts])
    return read_few_lists(layout, numbers, owners, chunks, items, codecs)


def read_few_lists(
    layout: MiniBlockLayout,
    rows: Sequence[int],
    owners: Sequence[int],
    chunks: Sequence[ListChunk],
    items: JoinedItems | None,
    codecs: Codecs,
) -> Fetch[Leaf]:
    """Ascending rows; `owners` says which of the chunks each is in, as `before` and `after` count them."""
    buffers = yield [chunk.place for chunk in chunks]
    for chunk, buffer in zip(chunks, buffers, strict=True):
        if len(buffer) != chunk.place.size:
            raise CorruptFileError(f"got {len(buffer)} bytes at {chunk.place.start}, expected {chunk.place.size}")
    cut = [cut_chunk(layout, memoryview(buffer)) for buffer in buffers]
    num_levels = [item[0] for item in cut]
    reps = [item[1] for item in cut if item[1] is not None]
    defs = [item[2] for item in cut if item[2] is not None]
    if layout.rep_compression is None or len(reps) != len(chunks):
        raise CorruptFileError("a page with lists has no repetition levels")
    rep = decode_many_levels(layout.rep_compression, reps, num_levels, codecs)
    def_ = None
    if layout.def_compression is not None:
        def_ = decode_many_levels(layout.def_compression, defs, num_levels, codecs)
    bounds = np.array([*accumulate(num_levels, initial=0)], np.int64)
    own = np.array(owners, np.int64)
    first, last = _entries(layout, rows, owners, chunks, rep, bounds)
    seen = _slots_before(layout, def_, int(bounds[-1]))
    opens, counts = seen[bounds[:-1]], np.array([chunk.count for chunk in chunks], np.int64)
    if (seen[bounds[1:]] - opens != counts).any():
        raise CorruptFileError(f"chunks of {counts.tolist()} values have levels of others")
    low, high = seen[first], seen[last]
    slots = expand_ranges(low, high)
    slot_owners = own.repeat(high - low)
    pieces = _pieces([item[3] for item in cut])
    parts = np.array([chunk.part for chunk in chunks], np.int64)
    values = picked_values(layout, items, pieces, counts, (slot_owners, slots - opens[slot_owners]), parts, codecs)
    entries = expand_ranges(first, last)
    leaf = Leaf(values, rep[entries], None if def_ is None else def_[entries], layout.layers, len(rows))
    check_slots(leaf)
    return leaf


def _entries(
    layout: MiniBlockLayout,
    rows: Sequence[int],
    owners: Sequence[int],
    chunks: Sequence[ListChunk],
    rep: Levels,
    bounds: Ints,
) -> tuple[Ints, Ints]:
    """Where the entries of each row begin and end among those of all chunks."""
    begins = np.append((rep == max_rep(layout.layers)).nonzero()[0], len(rep))
    firsts = begins[:-1].searchsorted(bounds).tolist()
    for number, chunk in enumerate(chunks):
        if firsts[number + 1] - firsts[number] != chunk.after - chunk.before:
            raise CorruptFileError(f"the repetition index does not match the levels of chunk {number}")
    at = [firsts[own] + row - chunks[own].before for row, own in zip(rows, owners, strict=True)]
    for number, own in zip(at, owners, strict=True):
        if not firsts[own] <= number < firsts[own + 1]:
            raise CorruptFileError(f"the repetition index does not match the levels of chunk {own}")
    numbers = np.array(at, np.int64)
    return begins[numbers], np.minimum(begins[numbers + 1], bounds[1:][np.array(owners, np.int64)])


def _slots_before(layout: MiniBlockLayout, def_: Levels | None, num_levels: int) -> Ints:
    """For each entry, and for the end, how many slots are before it."""
    if def_ is None:
        return np.arange(num_levels + 1)
    before = np.zeros(num_levels + 1, np.int64)
    np.cumsum(def_ <= max_visible_def(layout.layers), out=before[1:])
    return before


def _pieces(cut: Sequence[tuple[memoryview, ...]]) -> tuple[Pieces, ...]:
    """The value buffers of all chunks in one array, each at a multiple of eight bytes, as chunks are in files."""
    joined: list[bytes | memoryview] = []
    starts: list[list[int]] = []
    at = 0
    for pieces in cut:
        own = []
        for piece in pieces:
            own.append(at)
            pad = -len(piece) % 8
            joined += (piece, bytes(pad))
            at += len(piece) + pad
        starts.append(own)
    data = np.frombuffer(b"".join(joined), np.uint8)
    return tuple(
        Pieces(data, np.array(begins, np.int64), np.array([len(pieces[number]) for pieces in cut], np.int64))
        for number, begins in enumerate(zip(*starts, strict=True))
    )


@dataclass(frozen=True, slots=True, eq=False)
class ColumnChunks:
    """Every chunk of the pages of a column; `table` finds those of a row, both count rows over all pages."""

    layout: MiniBlockLayout
    chunks: Chunks
    table: ChunkTable
    items: JoinedItems | None

    def few(self, owners: Sequence[int]) -> tuple[list[int], list[ListChunk]]:
        """The chunks that are named, and for each name which of them it is."""
        numbers = list(dict.fromkeys(owners))
        chunks = self.chunks.pick(np.array(numbers, np.int64))
        columns = (chunks.starts, chunks.sizes, chunks.counts, chunks.before, chunks.after, chunks.part)
        found = [
            ListChunk(ByteRange(start, start + size), *rest)
            for start, size, *rest in zip(*(column.tolist() for column in columns), strict=True)
        ]
        at = {number: place for place, number in enumerate(numbers)}
        return [at[number] for number in owners], found

    @property
    def num_bytes(self) -> int:
        """What it takes in memory."""
        items = 0 if self.items is None else 16 * len(self.items.counts) + _size(self.items.block)
        return 512 + 9 * 8 * len(self.chunks.starts) + items


def column_chunks(pages: Sequence[Page], tables: Sequence[ChunkTable]) -> ColumnChunks:
    """One table of those of all pages, which are `lists.are_alike` and can be joined (`lists.can_join`)."""
    found: list[tuple[Ints, ...]] = []
    base = 0
    for number, (page, table) in enumerate(zip(pages, tables, strict=True)):
        if table.row_ends is None or table.carries is None:
            raise CorruptFileError("a page with lists has no repetition index")
        starts, ends, numbers = table.bounds[:-1], table.bounds[1:], np.arange(table.num_chunks)
        check_part(page, 1, starts, ends)
        before, after = table.rows_before(numbers) + base, table.rows_before(numbers + 1) + base
        sizes, counts, part = ends - starts, np.diff(table.values), np.full(table.num_chunks, number)
        first = page.buffers[1].start
        found.append((starts + first, sizes, counts, before, after, part, table.row_ends + base, table.carries))
        base += page.num_rows
    *columns, row_ends, carries = (np.concatenate(column) for column in zip(*found, strict=True))
    values = np.append(0, np.cumsum(columns[2]))
    layout = pages[0].layout
    if not isinstance(layout, MiniBlockLayout):
        raise TypeError(type(layout).__name__)
    items = None if layout.dictionary is None else join_items([table.dictionary for table in tables])
    # Places in the file are those of the chunks: pages need not follow one another.
    return ColumnChunks(layout, Chunks(*columns), ChunkTable(values, values, row_ends, carries), items)


def read_column(column: ColumnChunks, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
    """Some rows, counted over all pages."""
    if rows.num_rows <= FEW_ROWS:
        numbers = rows.to_indices().tolist()
        owners = owners_of(column.table, numbers)
        if owners is not None:
            return (yield from read_few_lists(column.layout, numbers, *column.few(owners), column.items, codecs))
    chunks = column.chunks.pick(chunks_of_rows(column.layout, column.table, rows))
    return (yield from read_chunks(column.layout, chunks, rows, column.items, codecs))


def _size(block: Block) -> int:
    if isinstance(block, FixedBlock):
        return len(block.data)
    return len(block.data) + block.offsets.nbytes if isinstance(block, VariableBlock) else 16 * block.count


def read_list_rows(
    layout: MiniBlockLayout, page: Page, table: ChunkTable, chunk: int, rows: tuple[int, int], codecs: Codecs
) -> Fetch[Leaf]:
    """The rows `rows[0]` to `rows[1]`, all of which the chunk holds as a whole. The page has a repetition index."""
    wanted = part(page, 1, table.bounds.item(chunk), table.bounds.item(chunk + 1))
    (data,) = yield [wanted]
    view = memoryview(data)
    if len(view) != wanted.size:
        raise CorruptFileError(f"got {len(view)} bytes at {wanted.start}, expected {wanted.size}")
    return _decode(layout, table, chunk, view, rows, codecs)


def _decode(
    layout: MiniBlockLayout, table: ChunkTable, chunk: int, data: memoryview, rows: tuple[int, int], codecs: Codecs
) -> Leaf:
    num_levels, reps, defs, buffers = cut_chunk(layout, data)
    if layout.rep_compression is None or reps is None:
        raise CorruptFileError("a page with lists has no repetition levels")
    rep = decode_levels(layout.rep_compression, reps, num_levels, codecs)
    begins = (rep == max_rep(layout.layers)).nonzero()[0]
    count = table.values.item(chunk + 1) - table.values.item(chunk)
    first, last = (row - table.started(chunk) for row in rows)
    ends_early = table.started(chunk) + len(begins) != table.started(chunk + 1)
    if ends_early or not 0 <= first <= last <= len(begins) or first == len(begins):
        raise CorruptFileError(f"the repetition index does not match the levels of chunk {chunk}")
    start, end = begins.item(first), begins.item(last) if last < len(begins) else num_levels
    low, high, total, def_ = start, end, num_levels, None
    if layout.def_compression is not None and defs is not None:
        def_ = decode_levels(layout.def_compression, defs, num_levels, codecs)
        visible = def_ <= max_visible_def(layout.layers)
        low, total = (int(np.count_nonzero(item)) for item in (visible[:start], visible))
        high, def_ = low + int(np.count_nonzero(visible[start:end])), def_[start:end]
    if total != count:
        raise CorruptFileError(f"chunk {chunk} has {count} values, its levels describe {total}")
    values = _values(layout, buffers, count, low, high, codecs)
    found = values if layout.dictionary is None else _numbers(values, table.dictionary)
    leaf = Leaf(found, rep[start:end], def_, layout.layers, rows[1] - rows[0])
    check_slots(leaf)
    return leaf


def _values(
    layout: MiniBlockLayout, buffers: tuple[memoryview, ...], count: int, low: int, high: int, codecs: Codecs
) -> LeafValues:
    found = decode_span(layout.value_compression, buffers, count, low, high, codecs)
    if found is not None:
        return found
    pieces = tuple(Pieces.whole(np.frombuffer(buffer, np.uint8)) for buffer in buffers)
    whole = codecs.decode(layout.value_compression, pieces, np.array([count], np.int64))
    if whole.count != count:
        raise CorruptFileError(f"found {whole.count} values in a chunk of {count}")
    return slice_slots(whole, low, high)


def _numbers(indices: LeafValues, items: Block | None) -> DictionaryBlock:
    if items is None:
        raise CorruptFileError("a page with a dictionary has no items")
    if not isinstance(indices, FixedBlock) or indices.bits not in (8, 16, 32, 64):
        raise CorruptFileError("dictionary indices are not integers")
    numbers = words(indices.data, f"u{indices.bits // 8}")[: indices.count]
    if len(numbers) and int(numbers.max()) >= items.count:
        raise CorruptFileError(f"dictionary index {int(numbers.max())} is out of range, the dictionary has {items.count}")
    return DictionaryBlock(indices, items)
