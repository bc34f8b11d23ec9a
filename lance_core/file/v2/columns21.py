"""Reading fields of files 2.1 and newer: the page readers of a window of rows, and the assembly of their leaves.

window rows [900000, 1100000)    column 0: page 0 rows [900000, 1048576), page 1 rows [0, 51424)
                                 two jobs, two arrays: a flat column stays in as many chunks as it has pages
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from lance_core.arrow.buffers import nulls
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.convert.assemble import LeafPath, leaf_array, leaf_paths, nested_array
from lance_core.file.convert.few_entries import FewLeaf, few_entries, few_leaves
from lance_core.file.convert.few_rows import FieldValues, field_values, has_short_way
from lance_core.file.convert.tree import LeafNode, Node, StructNode, leaves
from lance_core.file.error_location import located, span
from lance_core.file.v2.column_reader import ColumnReader, column_reader
from lance_core.file.v2.row_sizes import row_size
from lance_core.format.layout import FileColumn
from lance_core.format.version import FileVersion
from lance_core.io.cache import LruCache
from lance_core.pages.group import PageRead
from lance_core.pages.leaf import Leaf
from lance_core.pages.row_values import RowValues
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
