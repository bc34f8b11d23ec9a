"""Which rows of a file a read wants, cut into windows, and each window cut at the pages of a column.

file rows   [0, 100) [5000, 5010)        two windows of at most 64 rows:  [0,64)   [64,100) [5000,5010)
pages       0..64 | 64..5000 | 5000..    second window: page 1 rows [0,36), page 2 rows [0,10)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

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
