"""Reading fields of files 2.1 and newer: the page readers of a window of rows, and the assembly of their leaves.

window rows [900000, 1100000)    column 0: page 0 rows [900000, 1048576), page 1 rows [0, 51424)
                                 two jobs, two arrays: a flat column stays in as many chunks as it has pages

About how many bytes rows of a column take once decoded: by it, reads are cut into windows.

int32: 4 bytes an item        texts: 8 bytes for its offset, and twice what is stored

Reading one column of files 2.1 and newer: what `pages.group` reads together, with errors that name column and pages.

window rows [900000, 1100000)    page 0 rows [900000, 1048576), page 1 rows [0, 51424)

Flat columns of a wide file whose pages are described alike, read and decoded together.

::

    column 0   page of 20,000 float32      one request, one gather of all words, one call of the codec:
    column 1   page of 20,000 float32  ->  40,000 values, of which each column is a slice
    …

A column of a few thousand rows costs more calls than bytes: hundreds of them are read in groups of about `_GROUP_BYTES`. A
column that is not so simple (several pages, lists, a dictionary) is read by itself, and so is every column of a group in
which anything is wrong: its error names the column and the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import nulls
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError, LanceError
from lance_core.fetch import ByteRange, Fetch
from lance_core.file.blob_descriptors import BLOB_ROW_SIZE, descriptors, fetch_values
from lance_core.file.convert.assemble import LeafPath, leaf_array, leaf_paths, nested_array
from lance_core.file.convert.few_values import FewLeaf, FieldValues, few_entries, few_leaves, field_values, has_short_way
from lance_core.file.convert.tree import LeafNode, Node, StructNode, is_packed, leaves
from lance_core.file.error_location import located, span
from lance_core.format.layout import BlobLayout, FileColumn, FullZipLayout, MiniBlockLayout, Page
from lance_core.format.version import FileVersion
from lance_core.io.cache import LruCache
from lance_core.pages.buffers import join, request
from lance_core.pages.group import ColumnPages, PageRead, ValueRead
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.few_values import RowValues
from lance_core.pages.read.several_pages import AlikePages, can_join, scan_alike
from lance_core.pages.rows import RowSelection


@dataclass(frozen=True, eq=False)
class FieldReader:
    """One top-level field and the columns below it; leaves that the file lacks have no reader."""

    path: str
    node: Node
    columns: tuple[ColumnReader, ...]

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """Readers of the window's pages; all may run at once."""
        return [self._job(column, read) for column in self.columns for read in column.reads(window)]

    def few_jobs(self, rows: Sequence[int]) -> list[Fetch[object]] | None:
        """Readers of few rows value by value, for `few_values`; None where only `jobs` will do."""
        if not self._has_short_way:
            return None
        jobs: list[Fetch[object]] = []
        for column in self.columns:
            reads = column.pages.value_reads(rows)
            if reads is None:
                return None
            jobs.extend(column.fetch_values(read) for read in reads)
        return jobs

    def few_values(self, results: Sequence[object]) -> FieldValues:
        """What the jobs of `few_jobs` returned, as one."""
        return field_values(self.node, cast("Sequence[tuple[int, RowValues]]", results))

    @cached_property
    def _has_short_way(self) -> bool:
        return has_short_way(self.node) and all(item.scale == 1 and not item.described for item in self.columns)

    def _job(self, column: ColumnReader, read: PageRead) -> Fetch[object]:
        """Arrays of a flat field; of a nested one the column and its leaves, which all columns together make arrays of."""
        found = yield from column.fetch(read)
        if not isinstance(self.node, LeafNode):
            return column.index, found
        try:
            return [leaf_array(leaf, self.node) for leaf in found]
        except Exception:
            with located(self.path, column=column.name, page=span(read.numbers())):
                raise

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The chunks of the window's array, from what the jobs returned."""
        if not self.columns:
            return [nulls(num_rows, self.node.type)]
        if isinstance(self.node, LeafNode):
            return [array for arrays in cast("Sequence[list[pa.Array[Any]]]", results) for array in arrays]
        pages: dict[int, list[Leaf]] = {column.index: [] for column in self.columns}
        for result in results:
            index, found = cast("tuple[int, list[Leaf]]", result)
            pages[index].extend(found)
        short = None if self._few_leaves is None else few_entries(self.node, self._few_leaves, pages, num_rows)
        return [nested_array(self.node, self._paths, pages, num_rows) if short is None else short]

    @cached_property
    def _few_leaves(self) -> list[FewLeaf] | None:
        return few_leaves(self.node)

    @cached_property
    def _paths(self) -> tuple[LeafPath, ...]:
        return leaf_paths(self.node)

    def pages_of(self, window: RowSelection) -> str | None:
        """The pages that hold these rows, in any of the columns."""
        return span(number for column in self.columns for number in column.pages_of(window))

    def row_size(self) -> float:
        """About how many bytes a row of this field takes once decoded."""
        types = {leaf.column: leaf.type for leaf in leaves(self.node)}
        return sum(
            row_size(column.column, column.num_rows, types[column.index], described=column.described)
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


def row_size(column: FileColumn, rows: int, arrow_type: pa.DataType, *, described: bool) -> float:
    """About how many bytes a row of a column of so many rows takes once decoded; `described`: blobs as where they are."""
    if not rows:
        return 0.0
    pages = column.pages
    if not described and any(isinstance(page.layout, BlobLayout) for page in pages):
        return BLOB_ROW_SIZE
    items = sum(_num_items(page) for page in pages)
    width = fixed_size(arrow_type)
    if width is not None:
        return width * items / rows
    stored = sum(item.size for page in pages for item in page.buffers)
    # Offsets, and bytes that are about half as many once encoded.
    return 8.0 * items / rows + 2.0 * stored / rows


def fixed_size(arrow_type: pa.DataType) -> float | None:
    """Bytes of a value when all values of the type have the same width, else None."""
    types = pa.types
    if types.is_fixed_size_list(arrow_type):
        item = fixed_size(arrow_type.value_type)
        return None if item is None else item * arrow_type.list_size
    if types.is_dictionary(arrow_type):
        return fixed_size(arrow_type.index_type)
    if types.is_null(arrow_type) or types.is_nested(arrow_type):
        return 0.0 if types.is_null(arrow_type) else None
    try:
        return max(1.0, float(arrow_type.bit_width) / 8)
    except ValueError:
        return None


def _num_items(page: Page) -> int:
    return page.layout.num_items if isinstance(page.layout, MiniBlockLayout | FullZipLayout) else page.num_rows


@dataclass(frozen=True, eq=False)
class ColumnReader:
    """One column of a file. `described`: blobs are read as where they are."""

    path: str
    name: str
    index: int
    column: FileColumn
    pages: ColumnPages
    file_size: int
    described: bool = False

    @property
    def scale(self) -> int:
        """Items of the column in a row of the file."""
        return self.pages.scale

    @property
    def num_rows(self) -> int:
        """Rows of the file in it."""
        return int(self.pages.starts[-1])

    def reads(self, window: RowSelection) -> Iterator[PageRead]:
        """What `fetch` takes, for the rows of a window."""
        return self.pages.reads(window)

    def fetch(self, read: PageRead) -> Fetch[list[Leaf]]:
        """The leaves of a read, in order."""
        try:
            leaves = yield from read.fetch
            for number, leaf in enumerate(leaves if self._has_blobs else ()):
                leaves[number] = yield from self._with_values(leaf)
            return leaves
        except Exception:
            with located(self.path, column=self.name, page=span(read.numbers())):
                raise

    def fetch_values(self, read: ValueRead) -> Fetch[tuple[int, RowValues]]:
        """The column's number and the values of a read of few rows."""
        try:
            return self.index, (yield from read.fetch)
        except Exception:
            with located(self.path, column=self.name, page=span(read.numbers())):
                raise

    def pages_of(self, window: RowSelection) -> Iterator[int]:
        """The pages that hold rows of a window."""
        return (number for number, _ in self.pages.parts(window))

    @property
    def _has_blobs(self) -> bool:
        return not self.described and any(isinstance(page.layout, BlobLayout) for page in self.column.pages)

    def _with_values(self, leaf: Leaf) -> Fetch[Leaf]:
        values = yield from fetch_values(*descriptors(leaf.values), file_size=self.file_size)
        return replace(leaf, values=values)


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
    index = leaf.column or 0
    pages = ColumnPages(column.pages, starts, row_scale, cache, (*key, index))
    return ColumnReader(path, leaf.field.name, index, column, pages, file_size, pa.types.is_struct(leaf.type))


_GROUP_BYTES = 1 << 20
"""A column that is kept alone keeps the values of its group in memory."""
_MAX_PAGE_BYTES = _GROUP_BYTES // 4
"""Larger pages are worth a visit of their own."""
_MIN_COLUMNS = 16
_MAX_GAP = 4 << 10
"""Bytes between two buffers that are read with them."""


@dataclass(frozen=True, slots=True, eq=False)
class AlikeColumns:
    """Some readers of a file, by their numbers, whose single pages share one layout and one type."""

    numbers: tuple[int, ...]
    node: LeafNode
    layout: MiniBlockLayout
    columns: tuple[ColumnReader, ...]
    readers: tuple[FieldReader, ...]

    def fetch(self) -> Fetch[list[list[pa.Array[Any]]]]:
        """Every row of each column."""
        pages = [column.column.pages[0] for column in self.columns]
        places = np.array([list(page.buffers) for page in pages], np.int64)
        ranges, starts = _runs(places[:, :, 0], places[:, :, 1])
        data = join((yield from request(ranges)))
        rows, sizes = pages[0].num_rows, places[:, :, 1] - places[:, :, 0]
        counts = np.full(len(pages), rows, np.int64)
        alike = AlikePages(starts[:, 0], sizes[:, 0], starts[:, 1], sizes[:, 1], counts)
        try:
            with located(self.columns[0].path):
                joined = leaf_array(scan_alike(self.layout, alike, data), self.node)
        except LanceError:
            return (yield from self._apart())
        return [[joined.slice(number * rows, rows)] for number in range(len(pages))]

    def _apart(self) -> Fetch[list[list[pa.Array[Any]]]]:
        num_rows = self.columns[0].column.pages[0].num_rows
        found = []
        for reader in self.readers:
            for job in reader.jobs(RowSelection.all(num_rows)):
                found.append(reader.assemble([(yield from job)], num_rows))
        return found


def alike_columns(readers: Sequence[object], num_rows: int) -> list[AlikeColumns]:
    """The groups among the readers of a file of `num_rows` rows; readers in no group are to be run by themselves."""
    if len(readers) < _MIN_COLUMNS:
        return []
    kinds: dict[Any, list[tuple[int, FieldReader]]] = {}
    for number, reader in enumerate(readers):
        if isinstance(reader, FieldReader) and (layout := _layout_of(reader, num_rows)) is not None:
            kinds.setdefault((layout, reader.node.type), []).append((number, reader))
    return [_group(part, layout) for (layout, _), found in kinds.items() for part in _cut(found) if len(part) > 1]


def _layout_of(reader: FieldReader, num_rows: int) -> MiniBlockLayout | None:
    """The layout of a column that is one small page of plain chunks, else None."""
    if not isinstance(reader.node, LeafNode) or len(reader.columns) != 1 or is_packed(reader.node.field):
        return None
    (column,) = reader.columns
    if len(column.column.pages) != 1 or column.scale != 1:
        return None
    page = column.column.pages[0]
    layout = page.layout
    if not isinstance(layout, MiniBlockLayout) or not can_join(layout, len(page.buffers)):
        return None
    is_small = _size(page) <= _MAX_PAGE_BYTES and all(item.size for item in page.buffers)
    return layout if is_small and page.num_rows == layout.num_items == num_rows > 0 else None


def _cut(members: Sequence[tuple[int, FieldReader]]) -> Iterator[list[tuple[int, FieldReader]]]:
    """Members in the order of the file, in runs of about `_GROUP_BYTES`."""
    part: list[tuple[int, FieldReader]] = []
    size = 0
    for member in sorted(members, key=lambda member: _page_of(member[1]).buffers[0]):
        part.append(member)
        size += _size(_page_of(member[1]))
        if size >= _GROUP_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _group(members: Sequence[tuple[int, FieldReader]], layout: MiniBlockLayout) -> AlikeColumns:
    numbers, readers = zip(*members, strict=True)
    return AlikeColumns(numbers, readers[0].node, layout, tuple(reader.columns[0] for reader in readers), readers)


def _page_of(reader: FieldReader) -> Page:
    return reader.columns[0].column.pages[0]


def _size(page: Page) -> int:
    return sum(item.size for item in page.buffers)


def _runs(starts: Ints, ends: Ints) -> tuple[list[ByteRange], Ints]:
    """Ranges of the file that hold all of the given ones, near neighbours in one, and where each is in their bytes."""
    firsts, lasts = starts.reshape(-1), ends.reshape(-1)
    gaps = firsts[1:] - lasts[:-1]
    breaks = np.flatnonzero((gaps < 0) | (gaps > _MAX_GAP))
    low, high = firsts[np.append(0, breaks + 1)], lasts[np.append(breaks, len(lasts) - 1)]
    before = np.cumsum(high - low) - (high - low)
    run = np.repeat(np.arange(len(low)), np.diff(np.append(np.append(0, breaks + 1), len(firsts))))
    return [ByteRange(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)], (
        firsts - low[run] + before[run]
    ).reshape(starts.shape)
