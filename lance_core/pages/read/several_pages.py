"""Every row of mini-block pages with lists, several pages in one pass.

::

    page 0   24 chunks   dictionary of 1,000          one decode of the levels of 72 chunks, one of their values;
    page 1   24 chunks   dictionary of 1,000    ->    then each page takes its share, and looks up its dictionary
    page 2   24 chunks   dictionary of 1,000

Writers cut columns with lists into many small pages, and what a page costs beside its bytes is much of what a scan costs.
Pages are scanned together when their descriptions are the same (`lists.are_alike`).

Some rows of several pages of one flat column: one request, one header parse and one call of the codec for all of them.

::

    page 0   rows 3, 900       chunks 0, 0            3 chunks in one request,
    page 1   rows 12           chunk  0           ->  4 values picked out of them
    page 2   row  7000         chunk  3

Rows far apart are in as many pages, and what a page costs beside its bytes is what a read costs. Pages are read together if
their descriptions are the same and they have neither lists nor a dictionary.

Pages of many small files with the same layout, decoded in one call: the work of one page instead of thousands.

::

    file 0   words 30 00   chunk of 100 values        one gather of all words, one of all headers,
    file 1   words 30 00   chunk of 100 values   ->   one call of the codec: 200 values, file after file
    …

Only pages that are nothing but chunks (no dictionary, no lists) or one constant can be joined so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Picks
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words as read_words
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import ConstantLayout, MiniBlockLayout, Page
from lance_core.pages.buffers import check_part, join, part, request, request_ranges
from lance_core.pages.chunks import ChunkTable, read_headers
from lance_core.pages.leaf import Leaf, LeafValues, max_rep
from lance_core.pages.read.constant import inline_values
from lance_core.pages.read.lists import PageRows, decode_levels
from lance_core.pages.read.miniblock import as_levels, decode_chunks, decode_picks, index_ranges, table_of, with_dictionary
from lance_core.pages.rows import expand_ranges
from lance_core.pages.select import check_slots, select_entries, whole_leaf
from lance_core.pages.value_slots import slice_slots
from lance_core.runs import runs_within

MAX_ITEMS = 1 << 18
"""More items in all are not worth joining: the pages' own cost no longer shows, and other threads want some of them."""


def groups(num_items: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs [start, end) of neighbouring pages of so many items that are scanned together."""
    return runs_within((num_items, MAX_ITEMS))


def scan_lists(pages: Sequence[Page], codecs: Codecs) -> Fetch[list[Leaf]]:
    """Every row of each of the pages, which are `are_alike`."""
    layouts: list[MiniBlockLayout] = [page.layout for page in pages]  # type: ignore[misc]
    asked = [index_ranges(layout, page) for layout, page in zip(layouts, pages, strict=True)]
    wanted = [item for page, ranges in zip(pages, asked, strict=True) for item in (*ranges, part(page, 1))]
    answers = iter((yield from request(wanted)))
    tables, data = [], []
    for layout, page, ranges in zip(layouts, pages, asked, strict=True):
        tables.append(table_of(layout, page, [next(answers) for _ in ranges], codecs))
        data.append(next(answers))
    return _decode(pages, layouts[0], tables, data, codecs)


def _decode(
    pages: Sequence[Page], layout: MiniBlockLayout, tables: Sequence[ChunkTable], data: Sequence[Bytes], codecs: Codecs
) -> list[Leaf]:
    bases = np.cumsum([0, *map(len, data)])[:-1]
    starts = np.concatenate([table.bounds[:-1] + base for table, base in zip(tables, bases, strict=True)])
    ends = np.concatenate([table.bounds[1:] + base for table, base in zip(tables, bases, strict=True)])
    counts = np.concatenate([np.diff(table.values) for table in tables])
    parts = read_headers(layout, join(data), starts, ends)
    if parts.rep is None:
        raise CorruptFileError("a page with lists has no repetition levels")
    if (parts.num_levels < counts).any():
        raise CorruptFileError("a chunk has fewer levels than values")
    rep = decode_levels(codecs, layout.rep_compression, parts.rep, parts.num_levels)
    def_ = None if parts.def_ is None else decode_levels(codecs, layout.def_compression, parts.def_, parts.num_levels)
    values = codecs.decode(layout.value_compression, parts.buffers, counts)
    lasts = np.cumsum([table.num_chunks for table in tables])
    edges = np.append(0, np.cumsum(parts.num_levels))[np.append(0, lasts)].tolist()
    found, slot = [], 0
    for page, table, (start, end) in zip(pages, tables, pairwise(edges), strict=True):
        count = int(table.values[-1])
        own: LeafValues = slice_slots(values, slot, slot + count)
        if table.dictionary is not None:
            own = with_dictionary(own, table.dictionary)
        levels = None if def_ is None else def_[start:end]
        found.append(whole_leaf(own, rep[start:end], levels, layout.layers, page.num_rows))
        slot += count
    return found


def are_pickable(layouts: Sequence[object]) -> bool:
    """Whether rows of pages of these layouts may be read together: mini-block, no lists, no dictionary, all the same."""
    first = layouts[0] if layouts else None
    if not isinstance(first, MiniBlockLayout) or first.dictionary is not None or first.rep_compression is not None:
        return False
    if first.repetition_index_depth:
        return False
    shape = replace(first, num_items=0)
    return all(isinstance(item, MiniBlockLayout) and replace(item, num_items=0) == shape for item in layouts)


def read_picked(layout: MiniBlockLayout, parts: Sequence[PageRows], codecs: Codecs) -> Fetch[Leaf]:
    """The rows of all parts, in order. The pages are `are_pickable`."""
    found = [_chunks_of(part) for part in parts]
    bases = np.cumsum([0, *(len(starts) for starts, *_ in found)])
    starts, ends, counts = (np.concatenate([item[place] for item in found]) for place in (0, 1, 2))
    owners = np.concatenate([item[3] + base for item, base in zip(found, bases.tolist(), strict=False)])
    picks = Picks(owners, np.concatenate([item[4] for item in found]))
    data, at = yield from request_ranges(starts, ends)
    headers = read_headers(layout, data, at, at + (ends - starts))
    picked = decode_picks(layout, None, headers, counts, picks, codecs)
    if picked is not None:
        return picked
    leaf = decode_chunks(layout, None, headers, counts, codecs)
    check_slots(leaf)
    entries = (np.cumsum(counts) - counts)[owners] + picks.positions
    return select_entries(leaf, entries, entries + 1, len(picks))


def _chunks_of(part: PageRows) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Start, end and number of values of each chunk of a page that holds a row; the chunk of each row, its place in it."""
    table, numbers = part.table, part.rows.to_indices()
    if len(numbers) and int(numbers[-1]) >= int(table.values[-1]):
        raise CorruptFileError(f"row {int(numbers[-1])} was requested of {int(table.values[-1])} values")
    chunk_of = table.values.searchsorted(numbers, "right") - 1
    is_first = np.append(True, chunk_of[1:] != chunk_of[:-1]) if len(chunk_of) else np.empty(0, np.bool_)
    chunks = chunk_of[is_first]
    low, high = table.bounds[chunks], table.bounds[chunks + 1]
    check_part(part.page, 1, low, high)
    first = part.page.buffers[1].start
    counts = table.values[chunks + 1] - table.values[chunks]
    return low + first, high + first, counts, np.cumsum(is_first) - 1, numbers - table.values[chunk_of]


@dataclass(frozen=True, slots=True, eq=False)
class AlikePages:
    """Pages that share one layout but for their number of items, all in one buffer (int64, one entry per page).

    `words` and `chunks`: where the page's first and second buffer begin; `word_sizes` and `chunk_sizes` in bytes. A
    constant has neither. `num_rows`: rows of each page.
    """

    words: Ints
    word_sizes: Ints
    chunks: Ints
    chunk_sizes: Ints
    num_rows: Ints


def can_join(layout: object, num_buffers: int) -> bool:
    """Whether pages of this layout with so many buffers can be read by `scan_alike`."""
    if isinstance(layout, MiniBlockLayout):
        plain = layout.dictionary is None and not layout.repetition_index_depth and not max_rep(layout.layers)
        return plain and layout.rep_compression is None and num_buffers == 2
    return isinstance(layout, ConstantLayout) and num_buffers == 0 and not max_rep(layout.layers)


def scan_alike(layout: MiniBlockLayout | ConstantLayout, pages: AlikePages, data: Bytes, *, codecs: Codecs = CODECS) -> Leaf:
    """Every row of every page, page after page. CorruptFileError when the numbers of any page contradict each other."""
    total = int(pages.num_rows.sum())
    if isinstance(layout, ConstantLayout):
        return whole_leaf(inline_values(layout, total), None, None, layout.layers, total)
    starts, ends, counts = _chunks(layout, pages, data)
    parts = read_headers(layout, data, starts, ends)
    def_ = None
    if parts.def_ is not None and layout.def_compression is not None:
        if (parts.num_levels != counts).any():
            raise CorruptFileError("a chunk has unequal numbers of levels and values, but the page has no lists")
        def_ = as_levels(codecs.decode_block(layout.def_compression, parts.def_, counts))
    return whole_leaf(codecs.decode(layout.value_compression, parts.buffers, counts), None, def_, layout.layers, total)


def _chunks(layout: MiniBlockLayout, pages: AlikePages, data: Bytes) -> tuple[Ints, Ints, Ints]:
    """Start and end of every chunk of every page, and its number of values."""
    width = 4 if layout.has_large_chunk else 2
    if (pages.word_sizes % width).any() or not pages.word_sizes.all():
        raise CorruptFileError("the chunk words of a page are truncated or missing")
    gathered = data[expand_ranges(pages.words, pages.words + pages.word_sizes)]
    stored = read_words(gathered, np.uint32 if width == 4 else np.uint16).astype(np.int64)
    per_page = pages.word_sizes // width
    lasts = np.cumsum(per_page) - 1
    sizes = ((stored >> 4) + 1) * 8
    ends = _within(sizes, per_page)
    if (ends[lasts] > pages.chunk_sizes).any():
        raise CorruptFileError("the chunks of a page are longer than its buffer")
    counts = np.left_shift(np.int64(1), stored & 15)
    counts[lasts] = 0
    counts[lasts] = pages.num_rows - _within(counts, per_page)[lasts]
    if (counts[lasts] < 1).any() or (counts[lasts] > 1 << 16).any():
        raise CorruptFileError("the last chunk of a page would hold an impossible number of values")
    bases = np.repeat(pages.chunks, per_page)
    return bases + ends - sizes, bases + ends, counts


def _within(numbers: Ints, per_page: Ints) -> Ints:
    """Running sums that begin again with each page."""
    sums = np.cumsum(numbers)
    firsts = np.cumsum(per_page) - per_page
    within: Ints = sums - np.repeat(sums[firsts] - numbers[firsts], per_page)
    return within
