"""Every row of mini-block pages with lists, several pages in one pass.

::

    page 0   24 chunks   dictionary of 1,000          one decode of the levels of 72 chunks, one of their values;
    page 1   24 chunks   dictionary of 1,000    ->    then each page takes its share, and looks up its dictionary
    page 2   24 chunks   dictionary of 1,000

Writers cut columns with lists into many small pages, and what a page costs beside its bytes is much of what a scan costs.
Pages are scanned together when their descriptions are the same (`lists.are_alike`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from lance_core.arrays import Bytes
from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import join, part, request
from lance_core.pages.chunks import ChunkTable, read_headers
from lance_core.pages.leaf import Leaf, LeafValues
from lance_core.pages.read.lists import decode_levels
from lance_core.pages.read.miniblock import index_ranges, table_of, with_dictionary
from lance_core.pages.select import whole_leaf
from lance_core.pages.value_slots import slice_slots

MAX_ITEMS = 1 << 18
"""More items in all are not worth joining: the pages' own cost no longer shows, and other threads want some of them."""


def groups(num_items: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs [start, end) of neighbouring pages of so many items that are scanned together."""
    start = total = 0
    for number, count in enumerate(num_items):
        if number > start and total + count > MAX_ITEMS:
            yield start, number
            start, total = number, 0
        total += count
    if start < len(num_items):
        yield start, len(num_items)


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
