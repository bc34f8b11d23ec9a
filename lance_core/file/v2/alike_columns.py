"""Flat columns of a wide file whose pages are described alike, read and decoded together.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.errors import LanceError
from lance_core.fetch import ByteRange, Fetch
from lance_core.file.convert.assemble import leaf_array
from lance_core.file.convert.tree import LeafNode, is_packed
from lance_core.file.error_location import located
from lance_core.file.v2.column_reader import ColumnReader
from lance_core.file.v2.columns21 import FieldReader
from lance_core.format.layout import MiniBlockLayout, Page
from lance_core.pages.buffers import join, request
from lance_core.pages.read.same_layout import AlikePages, can_join, scan_alike
from lance_core.pages.rows import RowSelection

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
