"""The rows of a page that a read selects: sorted, disjoint, half-open ranges; and those of a column cut at its pages.

::

    RowSelection.indices([3, 4, 9])   starts [3, 9]  ends [5, 10]
    RowSelection.all(100)             starts [0]     ends [100]
    rows [64, 100) [5000, 5010) cut at 0, 64, 5000, 9000      page 1 rows [0, 36), page 2 rows [0, 10)

Unsorted or repeated indices are the caller's affair: it sorts, deduplicates, reads, and takes from the result.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class RowSelection:
    """Rows of one page as ranges: `starts` and `ends` are int64, sorted, disjoint and never empty ranges."""

    starts: Ints
    ends: Ints

    @classmethod
    def all(cls, num_rows: int) -> RowSelection:
        """Every row of a page of `num_rows` rows."""
        return cls.span(0, num_rows)

    @classmethod
    def span(cls, start: int, end: int) -> RowSelection:
        """Rows `start` to `end`, end excluded."""
        if end <= start:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64))
        return cls(np.array([start], np.int64), np.array([end], np.int64))

    @classmethod
    def ranges(cls, ranges: Sequence[tuple[int, int]]) -> RowSelection:
        """Sorted, disjoint (start, end) pairs; empty ones are dropped."""
        pairs = np.array([pair for pair in ranges if pair[1] > pair[0]], np.int64).reshape(-1, 2)
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy())

    @classmethod
    def indices(cls, indices: npt.ArrayLike) -> RowSelection:
        """Sorted, unique row numbers, joined into ranges where they touch."""
        rows = np.asarray(indices, np.int64)
        if len(rows) == 0:
            return cls.span(0, 0)
        if len(rows) == 1:
            return cls(rows, rows + 1)
        steps = np.diff(rows)
        if len(steps) and steps.min() <= 0:
            raise InputError("row indices of one page must be sorted and unique", cure="Sort and deduplicate them first.")
        breaks = np.flatnonzero(steps != 1)
        return cls(rows[np.concatenate(([0], breaks + 1))], rows[np.concatenate((breaks, [len(rows) - 1]))] + 1)

    @property
    def num_rows(self) -> int:
        """Number of selected rows."""
        if len(self.starts) == 1:
            return int(self.ends[0]) - int(self.starts[0])
        return int((self.ends - self.starts).sum())

    @property
    def is_contiguous(self) -> bool:
        """Whether the selection is one range (or nothing)."""
        return len(self.starts) <= 1

    def covers(self, num_rows: int) -> bool:
        """Whether every row of a page of `num_rows` rows is selected."""
        return self.num_rows == num_rows

    def to_indices(self) -> Ints:
        """Each selected row number, in order."""
        return expand_ranges(self.starts, self.ends)

    def check(self, num_rows: int) -> None:
        """Refuse rows the page does not have."""
        if len(self.starts) == 0:
            return
        if len(self.starts) == 1:
            bad_order = int(self.ends[0]) <= int(self.starts[0])
        else:
            bad_order = bool((self.ends <= self.starts).any() or (self.starts[1:] < self.ends[:-1]).any())
        if bad_order or self.starts[0] < 0 or self.ends[-1] > num_rows:
            raise InputError(
                f"rows {int(self.starts[0])}..{int(self.ends[-1])} were requested of a page that has {num_rows}",
                cure="Pass ranges that are sorted, disjoint and inside the page.",
            )


def expand_ranges(starts: Ints, ends: Ints) -> Ints:
    """Every number of the half-open ranges, in order.

    >>> expand_ranges(np.array([3, 9]), np.array([5, 10])).tolist()
    [3, 4, 9]
    """
    lengths = ends - starts
    total = int(lengths.sum())
    if len(starts) == 1:
        return np.arange(starts[0], ends[0], dtype=np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(total, dtype=np.int64)


def cut_at(selection: RowSelection, edges: Ints) -> Iterator[tuple[int, RowSelection]]:
    """(i, the selected rows within edges[i] and edges[i + 1], counted from edges[i]), wherever there are any."""
    if len(edges) == 2 and len(selection.starts) == 1:
        start, low, high = int(edges[0]), int(selection.starts[0]), int(selection.ends[0])
        if start <= low and high <= edges[1]:
            yield 0, selection if start == 0 else RowSelection.span(low - start, high - start)
            return
    firsts = np.searchsorted(selection.ends, edges[:-1], side="right")
    lasts = np.searchsorted(selection.starts, edges[1:], side="left")
    for number in np.flatnonzero(firsts < lasts).tolist():
        here, start = slice(firsts[number], lasts[number]), edges[number]
        starts, ends = selection.starts[here] - start, selection.ends[here] - start
        # Only the first and the last range may go on beyond an edge.
        starts[0], ends[-1] = max(0, starts[0]), min(ends[-1], edges[number + 1] - start)
        yield number, RowSelection(starts, ends)


def scale(selection: RowSelection, factor: int) -> RowSelection:
    """The same rows where every row counts `factor` items."""
    return selection if factor == 1 else RowSelection(selection.starts * factor, selection.ends * factor)


def row_parts(edges: Ints, rows: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """`cut_at` of few ascending rows: (i, those within edges[i] and edges[i + 1], counted from edges[i])."""
    if len(edges) == 2 and rows[-1] < edges.item(1):
        return [(0, rows)]
    bounds = memoryview(cast("Any", edges))
    parts: list[tuple[int, Sequence[int]]] = []
    at = 0
    while at < len(rows):
        number = bisect_right(bounds, rows[at]) - 1
        end = bisect_left(rows, bounds[number + 1], at)
        parts.append((number, [row - bounds[number] for row in rows[at:end]]))
        at = end
    return parts
