"""The chunks of a whole column of pages with lists in one table, so that some of its rows are found without a look at pages.

::

    page 0   42 chunks   7,855 rows   1,000 items             126 chunks   23,565 rows   3,000 items
    page 1   42 chunks   7,855 rows   1,000 items    ->       row 8,000 is in chunk 43, whose numbers count from
    page 2   42 chunks   7,855 rows   1,000 items             item 1,000

Writers cut columns with lists into hundreds of pages; a hundred rows are in as many, and what Python does for each page is
what a read of some rows costs. The table is made of the chunk tables of the pages once all of them are known, and kept
like them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, FixedBlock, VariableBlock
from lance_core.codecs.dispatch import Codecs
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import check_part
from lance_core.pages.chunks import ChunkTable, chunks_of_rows
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.few_lists import FEW_ROWS, ListChunk, owners_of, read_few_lists
from lance_core.pages.read.lists import Chunks, JoinedItems, join_items, read_chunks
from lance_core.pages.rows import RowSelection


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
