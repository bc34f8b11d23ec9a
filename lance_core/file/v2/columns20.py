"""Reading fields of 2.0 files: structs and lists have separate columns, so a field is read from the outside in.

list<struct<x>>    column 0 (list): rows [3, 5) -> items [10, 17)
                   column 1 (struct header): nothing to read
                   column 2 (x): rows [10, 17)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.buffers import buffer_of, nulls
from lance_core.codecs.blocks import FixedBlock, VariableBlock
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.blob_descriptors import BLOB_ROW_SIZE, descriptors, fetch_values
from lance_core.file.convert.assemble import concat, flat_array
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, leaves
from lance_core.file.convert.values import bitmap, is_variable, to_arrow
from lance_core.file.error_location import located, span
from lance_core.format.encoding20 import BlobColumnEncoding, List
from lance_core.format.layout import FileColumn, Page
from lance_core.pages.leaf import Leaf
from lance_core.pages.read.lockstep import together
from lance_core.pages.rows import RowSelection, cut_at
from lance_core.pages.v20.array20 import ListRows, read_array, read_lists

_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, eq=False)
class PagedColumn:
    """One column: `starts[i]` is the first slot of page i, `item_starts[i]` the first item of list page i."""

    column: FileColumn
    starts: Ints
    item_starts: Ints

    @property
    def is_blob(self) -> bool:
        """Whether the pages hold (position, size) pairs."""
        return isinstance(self.column.encoding, BlobColumnEncoding)

    def parts(self, rows: RowSelection) -> Iterator[tuple[int, Page, RowSelection]]:
        """(number, page, rows of the page) of every page with selected rows."""
        for number, part in cut_at(rows, self.starts):
            yield number, self.column.pages[number], part


def paged(column: FileColumn) -> PagedColumn:
    """A column with the first row of each of its pages."""
    counts = [page.num_rows for page in column.pages]
    items = [page.layout.num_items if isinstance(page.layout, List) else 0 for page in column.pages]
    return PagedColumn(column, _starts(counts), _starts(items))


def _starts(counts: Sequence[int]) -> Ints:
    if any(count >= 1 << 62 for count in counts):
        raise CorruptFileError(f"a page claims {max(counts)} rows, which is impossible")
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(counts, np.int64))))


@dataclass(frozen=True, eq=False)
class FieldReader20:
    """One top-level field; `columns` maps field ids to the columns that the file has of it.

    `texts`: for strings and bytes that the first releases of 2.0 stored as lists, the column of their bytes.
    """

    path: str
    node: Node
    columns: Mapping[int, PagedColumn]
    file_size: int
    texts: Mapping[int, PagedColumn] = field(default_factory=dict)

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """One reader for the whole field: its columns depend on one another."""
        return [self._read_field(window)]

    def _read_field(self, window: RowSelection) -> Fetch[object]:
        with located(self.path, column=self.node.field.name):
            array: object = yield from self._read(self.node, window)
            return array

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The one array the reader made."""
        arrays: list[Any] = list(results)
        return arrays

    def pages_of(self, window: RowSelection) -> str | None:
        """The pages that hold these rows, in a column that has one slot for each."""
        column = _row_column(self.node, self.columns)
        return None if column is None else span(number for number, _, _ in column.parts(window))

    def row_size(self) -> float:
        """About how many bytes a row of this field takes once decoded."""
        if any(found.is_blob for found in self.columns.values()) and not pa.types.is_struct(self.node.type):
            return BLOB_ROW_SIZE
        sizes = [item.size for found in self.columns.values() for page in found.column.pages for item in page.buffers]
        return sum(sizes) / max(1, self.num_rows or 0)

    @property
    def num_columns(self) -> int:
        """Columns that are read for this field."""
        return len(self.columns)

    @property
    def num_rows(self) -> int | None:
        """Rows of the file, if one of this field's columns tells."""
        found = _row_column(self.node, self.columns)
        return None if found is None else int(found.starts[-1])

    def _read(self, node: Node, rows: RowSelection) -> Fetch[Any]:
        if isinstance(node, StructNode):
            children = yield from together([self._read(child, rows) for child in node.children])
            return pa.Array.from_buffers(node.type, rows.num_rows, [None], children=children)
        column = self.columns.get(node.field.id)
        if column is None:
            return nulls(rows.num_rows, node.type)
        if pa.types.is_struct(node.type) and not node.type.num_fields:
            # A struct without fields has a column of headers, and nothing in it.
            return pa.Array.from_buffers(node.type, rows.num_rows, [None], children=[])
        if isinstance(node, ListNode) and not node.dimension:
            return (yield from self._read_list(node, column, rows))
        if node.field.id in self.texts:
            return (yield from self._read_texts(node, column, self.texts[node.field.id], rows))
        pages = [self._read_page(node, column, *part) for part in column.parts(rows)]
        arrays = yield from together(pages)
        return _checked(concat(arrays, node.type), node, rows)

    def _read_page(
        self, node: LeafNode | ListNode, column: PagedColumn, number: int, page: Page, rows: RowSelection
    ) -> Fetch[Any]:
        with located(self.path, column=node.field.name, page=number):
            leaf: Leaf = yield from read_array(page, rows, zero_is_null=not pa.types.is_dictionary(node.type))
            if column.is_blob and not pa.types.is_struct(node.type):
                return (yield from self._blobs(leaf, node))
            return flat_array(leaf, node.type)

    def _blobs(self, leaf: Leaf, node: Node) -> Fetch[Any]:
        positions, sizes = descriptors(leaf.values)
        values: VariableBlock = yield from fetch_values(positions, sizes, file_size=self.file_size)
        return to_arrow(values, node.type, bitmap((sizes > 0) | (positions == 0)))

    def _read_list(self, node: ListNode, column: PagedColumn, rows: RowSelection) -> Fetch[Any]:
        parts = list(column.parts(rows))
        found: list[ListRows] = yield from together([self._read_offsets(node, *part) for part in parts])
        bases = [int(column.item_starts[number]) for number, _, _ in parts]
        items = _item_ranges(found, bases)
        values = yield from self._read(node.item, items)
        lengths = np.concatenate([np.zeros(1, np.int64), *(item.ends - item.starts for item in found)])
        offsets = np.cumsum(lengths)
        if not pa.types.is_large_list(node.type) and int(offsets[-1]) > _MAX_INT32:
            raise CorruptFileError(f"{self.path}: {int(offsets[-1])} items of {node.field.name!r} do not fit {node.type}")
        dtype = np.int64 if pa.types.is_large_list(node.type) else np.int32
        buffers = [_validity(found), buffer_of(offsets.astype(dtype))]
        array = pa.Array.from_buffers(node.type, len(offsets) - 1, buffers, children=[values])
        return _checked(array, node, rows)

    def _read_texts(self, node: Node, column: PagedColumn, texts: PagedColumn, rows: RowSelection) -> Fetch[Any]:
        """Values whose bytes are the items of a list, in the next column."""
        parts = list(column.parts(rows))
        found: list[ListRows] = yield from together([self._read_offsets(node, *part) for part in parts])
        wanted = _item_ranges(found, [int(column.item_starts[number]) for number, _, _ in parts])
        pages = [self._read_bytes(node, *part) for part in texts.parts(wanted)]
        data = np.concatenate([np.empty(0, np.uint8), *(yield from together(pages))])
        lengths = np.concatenate([np.zeros(1, np.int64), *(item.ends - item.starts for item in found)])
        offsets = np.cumsum(lengths)
        if len(data) != int(offsets[-1]):
            raise CorruptFileError(f"{self.path}: values of {int(offsets[-1])} bytes do not fit in {len(data)}")
        return _checked(to_arrow(VariableBlock(offsets, data), node.type, _validity(found)), node, rows)

    def _read_bytes(self, node: Node, number: int, page: Page, rows: RowSelection) -> Fetch[Any]:
        with located(self.path, column=node.field.name, page=number):
            leaf: Leaf = yield from read_array(page, rows, zero_is_null=False)
            if not isinstance(leaf.values, FixedBlock) or leaf.values.bits != 8:
                raise CorruptFileError("the bytes of variable-width values have another type")
            return leaf.values.data[: leaf.values.count]

    def _read_offsets(self, node: Node, number: int, page: Page, rows: RowSelection) -> Fetch[ListRows]:
        with located(self.path, column=node.field.name, page=number):
            return (yield from read_lists(page, rows))


def _checked(array: pa.Array[Any], node: Node, rows: RowSelection) -> pa.Array[Any]:
    if len(array) != rows.num_rows:
        raise CorruptFileError(f"column {node.field.name!r} has {len(array)} of the {rows.num_rows} requested rows")
    return array


def _validity(parts: Sequence[ListRows]) -> pa.Buffer | None:
    if all(part.validity is None for part in parts):
        return None
    return bitmap(
        np.concatenate([np.ones(len(part.starts), np.bool_) if part.validity is None else part.validity for part in parts])
    )


def _item_ranges(parts: Sequence[ListRows], bases: Sequence[int]) -> RowSelection:
    """Where the items of several pages' lists are in the item column; ranges that touch are merged."""
    starts = np.concatenate([np.empty(0, np.int64), *(part.starts + base for part, base in zip(parts, bases, strict=True))])
    ends = np.concatenate([np.empty(0, np.int64), *(part.ends + base for part, base in zip(parts, bases, strict=True))])
    kept = ends > starts
    starts, ends = starts[kept], ends[kept]
    if len(starts) < 2:
        return RowSelection(starts, ends)
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    return RowSelection(starts[np.concatenate(([0], breaks + 1))], ends[np.concatenate((breaks, [len(ends) - 1]))])


def _row_column(node: Node, columns: Mapping[int, PagedColumn]) -> PagedColumn | None:
    """A column whose slots are the rows of the file."""
    found = columns.get(node.field.id)
    if found is not None or not isinstance(node, StructNode):
        return found
    for child in node.children:
        below = _row_column(child, columns)
        if below is not None:
            return below
    return None


def own_fields(node: Node) -> Iterator[int]:
    """Ids of the fields that have a column of their own, in the order of the columns of a 2.0 file."""
    yield node.field.id
    if isinstance(node, StructNode):
        for child in node.children:
            yield from own_fields(child)
    elif isinstance(node, ListNode) and not node.dimension:
        yield from own_fields(node.item)


def assign_columns20(nodes: Sequence[Node], num_columns: int | None = None) -> dict[int, int]:
    """Field id -> column for a file of these fields.

    `num_columns` of a file that exists: in the first files of 2.0 strings and bytes have a column more, of their bytes.
    """
    order = [field_id for node in nodes for field_id in own_fields(node)]
    wide = {leaf.field.id for node in nodes for leaf in leaves(node) if is_variable(leaf.type)}
    step = 2 if num_columns == len(order) + len(wide) and wide else 1
    found, column = {}, 0
    for field_id in order:
        found[field_id] = column
        column += step if field_id in wide else 1
    return found


def holds_texts_as_lists(leaf: LeafNode, column: FileColumn) -> bool:
    """Whether strings or bytes are lists of the bytes in the next column, as release 0.13 wrote them."""
    return is_variable(leaf.type) and any(isinstance(page.layout, List) for page in column.pages)
