"""The rows of a page that a read selects: sorted, disjoint, half-open ranges.

::

    RowSelection.indices([3, 4, 9])   starts [3, 9]  ends [5, 10]
    RowSelection.all(100)             starts [0]     ends [100]

Unsorted or repeated indices are the caller's affair: it sorts, deduplicates, reads, and takes from the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
