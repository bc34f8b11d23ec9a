"""Reading one column of files 2.1 and newer: which of its pages hold the rows, and which of them are read as one.

window rows [900000, 1100000)    page 0 rows [900000, 1048576), page 1 rows [0, 51424)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.cached import cached_property
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.blob_descriptors import descriptors, fetch_values
from lance_core.file.convert.tree import LeafNode
from lance_core.file.error_location import located, span
from lance_core.file.rows import cut_at, row_parts, scale
from lance_core.format.layout import BlobLayout, FileColumn, FullZipLayout, MiniBlockLayout, Page
from lance_core.io.cache import LruCache
from lance_core.pages.chunks import ChunkTable
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.column_chunks import ColumnChunks, column_chunks, read_column
from lance_core.pages.read.list_scan import groups, scan_lists
from lance_core.pages.read.lists import PageRows, are_alike, can_join, read_lists
from lance_core.pages.read.picked_rows import are_pickable, read_picked
from lance_core.pages.read.single_row import read_row_values
from lance_core.pages.read.single_zipped import read_zipped_values
from lance_core.pages.registry import has_row_values, load, read, scan
from lance_core.pages.rows import RowSelection

FEW_PAGES = 3
"""Rows of lists of so many pages are read page by page."""
_MANY_PAGES = 16
"""For each range of rows so many pages are checked, whether all of them are known."""
_FEW_IN_ALL = 8
"""One row among this many of a column is one of few."""
_FEW = 64
"""One row among this many values of its pages is one of few."""


@dataclass(frozen=True, eq=False)
class ColumnReader:
    """The pages of one column. `scale` items of the column make one row of the file.

    `starts[i]` is the first row of page i; the last entry is the number of rows.
    """

    path: str
    name: str
    index: int
    column: FileColumn
    starts: Ints
    scale: int
    cache: LruCache
    key: tuple[object, ...]
    file_size: int
    described: bool = False

    def parts(self, window: RowSelection) -> Iterator[tuple[int, RowSelection]]:
        """(page, rows of the page as the page counts them) of every page with selected rows."""
        if not len(window.starts):
            return
        first = int(np.searchsorted(self.starts, window.starts[0], side="right")) - 1
        last = int(np.searchsorted(self.starts, window.ends[-1], side="left"))
        for number, rows in cut_at(window, self.starts[first : last + 1]):
            yield first + number, scale(rows, self.scale)

    def fetch(self, number: int, rows: RowSelection) -> Fetch[Leaf]:
        """Some rows of one page."""
        page = self.column.pages[number]
        with located(self.path, column=self.name, page=number):
            if rows.covers(page.num_rows):
                leaf = yield from scan(page)
            else:
                index = yield from self._index(number, page)
                leaf = yield from read(page, index, rows)
            if isinstance(page.layout, BlobLayout) and not self.described:
                values = yield from fetch_values(*descriptors(leaf.values), file_size=self.file_size)
                return replace(leaf, values=values)
            return leaf

    def fetch_values(self, number: int, rows: Sequence[int]) -> Fetch[object]:
        """Few rows of one page, each value by itself, where `has_row_values` says so."""
        page = self.column.pages[number]
        with located(self.path, column=self.name, page=number):
            if isinstance(page.layout, FullZipLayout):
                values = yield from read_zipped_values(page.layout, page, rows, CODECS)
            else:
                table = cast("ChunkTable", (yield from self._index(number, page)))
                values = yield from read_row_values(cast("MiniBlockLayout", page.layout), page, table, rows, CODECS)
            return self.index, values

    def few_parts(self, rows: Sequence[int]) -> list[tuple[int, Sequence[int]]] | None:
        """(page, ascending rows of the page), where each page has a short way for few rows, and is not read whole."""
        parts = row_parts(self.starts, rows)
        for number, own in parts:
            page = self.column.pages[number]
            if len(own) == page.num_rows or not has_row_values(page.layout):
                return None
        return parts

    def known_together(self, parts: Sequence[tuple[int, RowSelection]]) -> list[ChunkTable] | None:
        """The chunk tables of the pages, if all are known and some rows of all pages can be read as one."""
        if not self._pages_are_alike:
            return None
        pages = [self.column.pages[number] for number, _ in parts]
        if 2 * sum(rows.num_rows for _, rows in parts) > sum(page.num_rows for page in pages):
            return None
        tables = [self.cache.get((*self.key, self.index, number)) for number, _ in parts]
        known = [table for table in tables if isinstance(table, ChunkTable)]
        return known if len(known) == len(parts) and can_join(known) else None

    def known_column(self, window: RowSelection) -> ColumnChunks | None:
        """One table of the chunks of all pages, if all are known and the window is a few of their rows, here and there."""
        pages = self.column.pages
        num_ranges = len(window.starts)
        if num_ranges <= FEW_PAGES or len(pages) < 2 or _FEW_IN_ALL * window.num_rows > int(self.starts[-1]):
            return None
        key = (*self.key, self.index, "all pages")
        found: ColumnChunks | None = self.cache.get(key)
        if found is not None or len(pages) > _MANY_PAGES * num_ranges or not self._pages_are_alike:
            return found
        tables = []
        for number in range(len(pages)):
            table = self.cache.get((*self.key, self.index, number))
            if not isinstance(table, ChunkTable):
                return None
            tables.append(table)
        if not can_join(tables):
            return None
        with located(self.path, column=self.name):
            found = column_chunks(pages, tables)
        self.cache.put(key, found, found.num_bytes)
        return found

    def fetch_column(self, window: RowSelection, column: ColumnChunks) -> Fetch[Leaf]:
        """Some rows, with `known_column`."""
        try:
            return (yield from read_column(column, scale(window, self.scale), CODECS))
        except Exception:
            with located(self.path, column=self.name, page=span(number for number, _ in self.parts(window))):
                raise

    def known_picks(self, parts: Sequence[tuple[int, RowSelection]]) -> list[ChunkTable] | None:
        """The chunk tables of the pages of a flat column, if all are known and few rows of all pages can be read as one."""
        if not self._pages_are_pickable:
            return None
        tables = [self.cache.get((*self.key, self.index, number)) for number, _ in parts]
        known = [table for table in tables if isinstance(table, ChunkTable)]
        if len(known) < len(parts):
            return None
        is_few = _FEW * sum(rows.num_rows for _, rows in parts) <= sum(int(table.values[-1]) for table in known)
        return known if is_few else None

    def fetch_whole(self, numbers: Sequence[int]) -> Fetch[list[Leaf]]:
        """Every row of some neighbouring pages, which are alike."""
        with located(self.path, column=self.name, page=span(numbers)):
            return (yield from scan_lists([self.column.pages[number] for number in numbers], CODECS))

    def whole_groups(self, numbers: Sequence[int]) -> list[Sequence[int]]:
        """The pages, those that are scanned together in one group."""
        if len(numbers) < 2 or not self._pages_are_alike:
            return [[number] for number in numbers]
        items = [cast("MiniBlockLayout", self.column.pages[number].layout).num_items for number in numbers]
        return [numbers[start:end] for start, end in groups(items)]

    @cached_property
    def _pages_are_alike(self) -> bool:
        return are_alike([page.layout for page in self.column.pages])

    @cached_property
    def _pages_are_pickable(self) -> bool:
        return are_pickable([page.layout for page in self.column.pages])

    def fetch_picked(self, parts: Sequence[tuple[int, RowSelection]], tables: Sequence[ChunkTable]) -> Fetch[Leaf]:
        """Some rows of several pages, with `known_picks`."""
        joined = []
        for (number, rows), table in zip(parts, tables, strict=True):
            page = self.column.pages[number]
            with located(self.path, column=self.name, page=number):
                rows.check(page.num_rows)
            joined.append(PageRows(page, table, rows))
        with located(self.path, column=self.name, page=span(number for number, _ in parts)):
            return (yield from read_picked(cast("MiniBlockLayout", joined[0].page.layout), joined, CODECS))

    def fetch_together(self, parts: Sequence[tuple[int, RowSelection]], tables: Sequence[ChunkTable]) -> Fetch[Leaf]:
        """Some rows of several pages, with `known_together`."""
        pages = [self.column.pages[number] for number, _ in parts]
        with located(self.path, column=self.name, page=parts[0][0]):
            for page, (_, rows) in zip(pages, parts, strict=True):
                rows.check(page.num_rows)
            joined = [PageRows(page, table, rows) for page, table, (_, rows) in zip(pages, tables, parts, strict=True)]
            return (yield from read_lists(cast("MiniBlockLayout", pages[0].layout), joined, CODECS))

    def _index(self, number: int, page: Page) -> Fetch[object]:
        key = (*self.key, self.index, number)
        found = self.cache.get(key)
        if found is None:
            found = yield from load(page)
            if found is not None:
                self.cache.put(key, found, _index_size(page))
        return found


def _index_size(page: Page) -> int:
    """About what an index holds in memory: everything of the page but its largest buffer, which is the values."""
    sizes = sorted(item.size for item in page.buffers)
    return 512 + 4 * sum(sizes[:-1])


def column_reader(
    path: str,
    leaf: LeafNode,
    column: FileColumn,
    row_scale: int,
    cache: LruCache,
    key: tuple[object, ...],
    file_size: int,
) -> ColumnReader:
    """A reader of one column; checks that its pages hold whole rows."""
    counts = np.array([page.num_rows for page in column.pages], np.int64)
    if len(counts) and (int(counts.min()) < 0 or bool((counts % row_scale).any())):
        raise CorruptFileError(
            f"{path}: column {leaf.field.name!r} has pages with impossible item counts: {counts[:5].tolist()}..."
        )
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts // row_scale)))
    described = pa.types.is_struct(leaf.type)
    return ColumnReader(path, leaf.field.name, leaf.column or 0, column, starts, row_scale, cache, key, file_size, described)
