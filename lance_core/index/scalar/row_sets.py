"""The sets of rows that an index file has, many at once: kept in their encoded form and read from it.

::

    sets [{2: {5}}, {2: {5, 9}}]     pairs: (0, row 5 of fragment 2) (1, row 5 ...) (1, row 9 ...)
    Holding(sets).count([0, 1], [row 5, row 9])  ->  2, each row is in its set

Worth it for many sets; a few are decoded one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.index.scalar.id_lookup import STEP, Int64s, UInt64s
from lance_core.kernels.roaring import count_held, expand_containers, find_containers

_SPARE = 8
_WORK_PER_SET = 512
_NO_ROW = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, eq=False)
class RowSets:
    """Sets and their containers; see `find_containers`."""

    data: npt.NDArray[np.uint8]
    firsts: Int64s
    blocks: Int64s
    kinds: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int32]
    places: Int64s

    @staticmethod
    def of(columns: Sequence[Any], *, has_sizes: bool) -> RowSets | None:
        """The sets in binary columns: address maps (`has_sizes`) or treemaps. None: decode them one by one.

        That is so when there are few of them, when bytes are damaged, and where a fragment stands for all its rows.
        """
        wide = [column.cast(pa.large_binary()) for column in columns if len(column)]
        work = sum(column.nbytes + _WORK_PER_SET * len(column) for column in wide)
        if not wide or not find_containers.is_worth_loading(work) or any(column.null_count for column in wide):
            return None
        data, ends = _joined(wide)
        if (ends[1:] < ends[:-1]).any() or int(ends[-1]) != len(data) - _SPARE:
            return None
        nothing = np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)
        count = find_containers(data, ends, int(has_sizes), *nothing, np.empty(0, np.int64))
        if count < 0:
            return None
        firsts = np.zeros(len(ends), np.int64)
        blocks, kinds = np.empty(count, np.int64), np.empty(count, np.uint8)
        counts, places = np.empty(count, np.int32), np.empty(count, np.int64)
        if count:
            find_containers(data, ends, int(has_sizes), blocks, kinds, counts, places, firsts)
        return RowSets(data, firsts, blocks, kinds, counts, places)

    def pairs(self) -> Iterator[tuple[Int64s, UInt64s]]:
        """All (number of a set, row in it), many at once."""
        sizes = self.counts.astype(np.int64)
        totals = np.append(0, np.cumsum(sizes))
        owners = np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))
        first = 0
        while first < len(sizes):
            end = max(first + 1, int(np.searchsorted(totals, totals[first] + STEP, side="right")) - 1)
            rows = np.empty(int(totals[end] - totals[first]), np.uint64)
            expand_containers(self.data, self.blocks, self.kinds, self.counts, self.places, first, end, rows)
            yield np.repeat(owners[first:end], sizes[first:end]), rows
            first = end


def _joined(columns: Sequence[Any]) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """The bytes of all sets, with some to spare, and where each begins."""
    parts, ends, first = [], [np.zeros(1, np.int64)], 0
    for column in columns:
        offsets = np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, column.offset * 8)
        parts.append(np.frombuffer(column.buffers()[2] or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])])
        ends.append(offsets[1:] - offsets[0] + first)
        first += int(offsets[-1] - offsets[0])
    return np.concatenate([*parts, np.zeros(_SPARE, np.uint8)]), np.concatenate(ends)


class Holding:
    """Whether rows are in sets, asked with rows that ascend."""

    def __init__(self, sets: RowSets) -> None:
        count = len(sets.firsts) - 1
        self._sets = sets
        self._state = sets.firsts[:-1].copy(), np.zeros(count, np.int32), np.full(count, _NO_ROW, np.uint64)

    def count(self, numbers: npt.NDArray[np.int32], rows: UInt64s) -> int:
        """How many pairs (number of a set, row) there are, each counted once; -1 when a row is not in its set."""
        sets = self._sets
        return count_held(
            numbers, rows, sets.data, sets.firsts, sets.blocks, sets.kinds, sets.counts, sets.places, *self._state
        )
