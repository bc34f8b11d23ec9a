"""Which rows of a file a read wants, cut into windows.

file rows   [0, 100) [5000, 5010)        two windows of at most 64 rows:  [0,64)   [64,100) [5000,5010)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.errors import InputError
from lance_core.pages.rows import RowSelection

Ranges = Sequence[tuple[int, int]] | RowSelection
"""Sorted, disjoint half-open ranges of row numbers, as pairs or already as a selection."""


def select_ranges(ranges: Ranges | None, num_rows: int) -> RowSelection:
    """The selection of sorted, disjoint half-open ranges of file rows; None selects all. InputError when out of bounds."""
    if ranges is None:
        return RowSelection.all(num_rows)
    selection = ranges if isinstance(ranges, RowSelection) else RowSelection.ranges(ranges)
    if len(selection.starts):
        out_of_order = len(selection.starts) > 1 and bool((selection.starts[1:] < selection.ends[:-1]).any())
        if out_of_order or selection.starts[0] < 0 or selection.ends[-1] > num_rows:
            raise InputError(
                f"row ranges must be sorted, disjoint and within 0..{num_rows}, got {_first(selection)}",
                cure="Pass row indices to read rows in another order.",
            )
    return selection


def _first(selection: RowSelection) -> list[tuple[int, int]]:
    return [*zip(selection.starts[:5].tolist(), selection.ends[:5].tolist(), strict=True)]


def select_indices(indices: npt.ArrayLike, num_rows: int) -> tuple[RowSelection, Ints | None]:
    """The selection of the distinct indices, and how to gather its rows into the requested order (None: as they are)."""
    wanted = np.asarray(indices, np.int64)
    if wanted.ndim != 1:
        raise InputError("row indices must be a flat list of integers")
    if len(wanted) == 0:
        return RowSelection.all(0), None
    low, high = int(wanted.min()), int(wanted.max())
    if low < 0 or high >= num_rows:
        raise InputError(f"row {low if low < 0 else high} was requested, the file has rows 0..{num_rows - 1}")
    if len(wanted) == 1 or bool((np.diff(wanted) > 0).all()):
        return RowSelection.indices(wanted), None
    distinct, order = np.unique(wanted, return_inverse=True)
    return RowSelection.indices(distinct), order.astype(np.int64)


def windows(selection: RowSelection, window_rows: Callable[[], int]) -> Iterator[RowSelection]:
    """The selection in order, in parts of as many rows as `window_rows` says when one is due (the last may have fewer)."""
    lengths = selection.ends - selection.starts
    before = np.concatenate(([0], np.cumsum(lengths)))
    total = int(before[-1])
    start = 0
    while start < total:
        end = min(start + window_rows(), total)
        first = int(np.searchsorted(before, start, side="right")) - 1
        last = int(np.searchsorted(before, end, side="left"))
        starts = selection.starts[first:last].copy()
        ends = selection.ends[first:last].copy()
        starts[0] += start - before[first]
        ends[-1] -= before[last] - end
        yield RowSelection(starts, ends)
        start = end
