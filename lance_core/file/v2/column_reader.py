"""Reading one column of files 2.1 and newer: what `pages.group` reads together, with errors that name column and pages.

window rows [900000, 1100000)    page 0 rows [900000, 1048576), page 1 rows [0, 51424)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.fetch import Fetch
from lance_core.file.blob_descriptors import descriptors, fetch_values
from lance_core.file.convert.tree import LeafNode
from lance_core.file.error_location import located, span
from lance_core.format.layout import BlobLayout, FileColumn
from lance_core.io.cache import LruCache
from lance_core.pages.group import ColumnPages, PageRead, ValueRead
from lance_core.pages.leaf import Leaf
from lance_core.pages.row_values import RowValues
from lance_core.pages.rows import RowSelection


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
