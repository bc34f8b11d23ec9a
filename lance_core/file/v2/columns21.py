"""Reading fields of files 2.1 and newer: the page readers of a window of rows, and the assembly of their leaves.

window rows [900000, 1100000)    column 0: page 0 rows [900000, 1048576), page 1 rows [0, 51424)
                                 two jobs, two arrays: a flat column stays in as many chunks as it has pages
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import nulls
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.blob_descriptors import descriptors, fetch_values
from lance_core.file.convert.assemble import LeafPath, leaf_array, leaf_paths, nested_array
from lance_core.file.convert.tree import LeafNode, Node, StructNode, leaves
from lance_core.file.error_location import located, span
from lance_core.file.rows import cut_at, scale
from lance_core.file.v2.row_sizes import row_size
from lance_core.format.layout import BlobLayout, FileColumn, MiniBlockLayout, Page
from lance_core.format.version import FileVersion
from lance_core.io.cache import LruCache
from lance_core.pages.chunks import ChunkTable
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.column_chunks import ColumnChunks, column_chunks, read_column
from lance_core.pages.read.list_scan import groups, scan_lists
from lance_core.pages.read.lists import PageRows, are_alike, can_join, read_lists
from lance_core.pages.read.picked_rows import are_pickable, read_picked
from lance_core.pages.registry import load, read, scan
from lance_core.pages.rows import RowSelection

_FEW_PAGES = 3
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
        if num_ranges <= _FEW_PAGES or len(pages) < 2 or _FEW_IN_ALL * window.num_rows > int(self.starts[-1]):
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


@dataclass(frozen=True, eq=False)
class FieldReader:
    """One top-level field and the columns below it; leaves that the file lacks have no reader."""

    path: str
    node: Node
    columns: tuple[ColumnReader, ...]

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """One reader per page; all may run at once."""
        if isinstance(self.node, LeafNode):
            return [job for column in self.columns for job in self._flat_jobs(column, [*column.parts(window)])]
        jobs: list[Fetch[object]] = []
        for column in self.columns:
            known = column.known_column(window)
            if known is not None:
                jobs.append(self._nested_column(column, window, known))
                continue
            parts = list(column.parts(window))
            tables = column.known_together(parts) if len(parts) > _FEW_PAGES else None
            if tables is not None:
                jobs.append(self._nested_together(column, parts, tables))
            else:
                jobs.extend(self._apart(column, parts))
        return jobs

    def _apart(self, column: ColumnReader, parts: Sequence[tuple[int, RowSelection]]) -> Iterator[Fetch[object]]:
        """Whole pages in groups, others alone, in order."""
        for is_whole, run in groupby(parts, key=lambda part: part[1].covers(column.column.pages[part[0]].num_rows)):
            if is_whole:
                for numbers in column.whole_groups([number for number, _ in run]):
                    yield self._nested_whole(column, numbers)
            else:
                for part in run:
                    yield self._nested(column, *part)

    def _nested_whole(self, column: ColumnReader, numbers: Sequence[int]) -> Fetch[object]:
        if len(numbers) == 1:
            leaf = yield from column.fetch(numbers[0], RowSelection.all(column.column.pages[numbers[0]].num_rows))
            return column.index, [leaf]
        leaves_found = yield from column.fetch_whole(numbers)
        return column.index, leaves_found

    def _flat_jobs(self, column: ColumnReader, parts: Sequence[tuple[int, RowSelection]]) -> list[Fetch[object]]:
        tables = column.known_picks(parts) if len(parts) > 1 else None
        if tables is not None:
            return [self._picked(column, parts, tables)]
        return [self._flat(column, *part) for part in parts]

    def _picked(
        self, column: ColumnReader, parts: Sequence[tuple[int, RowSelection]], tables: Sequence[ChunkTable]
    ) -> Fetch[object]:
        leaf = yield from column.fetch_picked(parts, tables)
        with located(self.path, column=column.name, page=span(number for number, _ in parts)):
            return leaf_array(leaf, cast("LeafNode", self.node))

    def _flat(self, column: ColumnReader, number: int, rows: RowSelection) -> Fetch[object]:
        leaf = yield from column.fetch(number, rows)
        with located(self.path, column=column.name, page=number):
            return leaf_array(leaf, cast("LeafNode", self.node))

    def _nested(self, column: ColumnReader, number: int, rows: RowSelection) -> Fetch[object]:
        leaf = yield from column.fetch(number, rows)
        return column.index, [leaf]

    def _nested_column(self, column: ColumnReader, window: RowSelection, known: ColumnChunks) -> Fetch[object]:
        leaf = yield from column.fetch_column(window, known)
        return column.index, [leaf]

    def _nested_together(
        self, column: ColumnReader, parts: Sequence[tuple[int, RowSelection]], tables: Sequence[ChunkTable]
    ) -> Fetch[object]:
        leaf = yield from column.fetch_together(parts, tables)
        return column.index, [leaf]

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The chunks of the window's array, from what the jobs returned."""
        if not self.columns:
            return [nulls(num_rows, self.node.type)]
        if isinstance(self.node, LeafNode):
            arrays: list[Any] = list(results)
            return arrays
        pages: dict[int, list[Leaf]] = {column.index: [] for column in self.columns}
        for result in results:
            index, found = cast("tuple[int, list[Leaf]]", result)
            pages[index].extend(found)
        return [nested_array(self.node, self._paths, pages, num_rows)]

    @cached_property
    def _paths(self) -> tuple[LeafPath, ...]:
        return leaf_paths(self.node)

    def pages_of(self, window: RowSelection) -> str | None:
        """The pages that hold these rows, in any of the columns."""
        return span(number for column in self.columns for number, _ in column.parts(window))

    def row_size(self) -> float:
        """About how many bytes a row of this field takes once decoded."""
        types = {leaf.column: leaf.type for leaf in leaves(self.node)}
        return sum(
            row_size(column.column, int(column.starts[-1]), types[column.index], described=column.described)
            for column in self.columns
        )

    @property
    def num_columns(self) -> int:
        """Columns that are read for this field."""
        return len(self.columns)


def row_scales(node: Node, outer: int = 1, inner: int = 0) -> Iterator[tuple[LeafNode, int, int]]:
    """Each leaf with how its pages count rows: fixed-size lists of structs multiply `outer` until a list begins, and below
    one `inner` (0: there is no list), which pages of 2.3 count too.
    """
    if isinstance(node, LeafNode):
        yield node, outer, max(inner, 1)
    elif isinstance(node, StructNode):
        for child in node.children:
            yield from row_scales(child, outer, inner)
    elif node.dimension:
        below = (outer, inner * node.dimension) if inner else (outer * node.dimension, 0)
        yield from row_scales(node.item, *below)
    else:
        yield from row_scales(node.item, outer, max(inner, 1))


def _counted_in_rows(path: str, leaf: LeafNode, column: FileColumn, inner: int) -> FileColumn:
    """Pages as earlier versions count them: a list of fixed-size lists of structs is one row."""
    if inner == 1:
        return column
    if any(page.num_rows % inner for page in column.pages):
        raise CorruptFileError(f"{path}: column {leaf.field.name!r} has pages that do not hold whole lists of {inner} items")
    return replace(column, pages=tuple(replace(page, num_rows=page.num_rows // inner) for page in column.pages))


def field_readers(
    path: str,
    nodes: Sequence[Node],
    columns: dict[int, FileColumn],
    cache: LruCache,
    key: tuple[object, ...],
    file_size: int,
    version: FileVersion,
) -> list[FieldReader]:
    """A reader for each top-level field; `columns` holds the metadata of every column the nodes name."""
    readers = []
    for node in nodes:
        found = []
        for leaf, outer, inner in row_scales(node):
            if leaf.column is not None:
                column = columns[leaf.column]
                if version >= FileVersion.V2_3:
                    column = _counted_in_rows(path, leaf, column, inner)
                found.append(column_reader(path, leaf, column, outer, cache, key, file_size))
        readers.append(FieldReader(path, node, tuple(found)))
    return readers


def wanted_columns(nodes: Sequence[Node]) -> list[int]:
    """The columns of the file that the nodes need."""
    return [leaf.column for node in nodes for leaf in leaves(node) if leaf.column is not None]
