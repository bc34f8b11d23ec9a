"""A few rows of pages with lists, each of which is in one chunk: as many operations of numpy for ten chunks as for one.

::

    rows 7, 900, 31,000     chunks 0, 4, 160      levels of all three unpacked at once, one search for the rows' entries
    chunk 4 says it begins with row 812           its 89th entry that begins a row, up to the next

What `lists.read_chunks` finds with arrays of chunks, headers and ranges is found here by plain Python, where there are few
of them, and without compiled kernels. What the repetition index says of a chunk is compared with its levels, as there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import numpy as np

from lance_core.arrays import Ints, Levels
from lance_core.codecs.blocks import Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.one_chunk import decode_many_levels
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.format.layout import MiniBlockLayout
from lance_core.pages.buffers import part
from lance_core.pages.chunks import ChunkTable
from lance_core.pages.leaf import Leaf, max_rep, max_visible_def
from lance_core.pages.read.lists import JoinedItems, PageRows, join_items, picked_values
from lance_core.pages.read.single_row import cut_chunk
from lance_core.pages.rows import expand_ranges
from lance_core.pages.select import check_slots

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
