"""Where the rows of a part of a table are, by their ids: ids of an index are looked up in it, many at once.

::

    rows of the part [7, 3, 5]      ids of the index [3, 9, 7]  ->  places [1, -1, 0]; 9 is of no row of the part

Where the ids are a few runs without a gap, subtracting does. Else the ids of one fragment are close together, and a table of
all offsets between the smallest and the largest tells their places. Ids that are far apart are searched for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError
from lance_core.format.address import OFFSET_BITS
from lance_core.kernels.sort import order_of_words

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(OFFSET_BITS)
STEP = 1 << 18
"""How many ids are looked up at a time: what comes of them stays in the processor's caches."""
_FEW_RUNS, _VERY_FEW_RUNS = 32, 8
_MOST_OWNERS = 1 << 20
_SPARE_SLOTS = 1 << 20


def require(holds: object, what: str) -> None:
    """Raise CorruptFileError unless it holds."""
    if not holds:
        raise CorruptFileError(f"the index does not match the column: {what}", cure="Rebuild the index.")


class Places:
    """The rows of a part: `ids` (uint64, each once) in their order."""

    def __init__(self, ids: UInt64s) -> None:
        self.count = len(ids)
        self._find: _Runs | _Table | _Search
        starts = _starts_of_runs(ids)
        if len(starts) <= _FEW_RUNS:
            self._find = _Runs(ids, starts)
        else:
            table = _Table(ids)
            self._find = table if table.is_dense else _Search(ids)

    def of(self, stored: UInt64s) -> Int64s:
        """The place of each id among the rows; -1 where it is none of them."""
        return self._find.of(stored) if self.count else np.full(len(stored), -1, np.int64)


def _starts_of_runs(ids: UInt64s) -> Int64s:
    """Where an id does not follow the one before it."""
    found = [np.zeros(min(1, len(ids)), np.int64)]
    for first in range(0, len(ids) - 1, STEP):
        part = ids[first : first + STEP + 1]
        found.append(np.flatnonzero(part[1:] - part[:-1] != 1) + first + 1)
    return np.concatenate(found)


class _Runs:
    """A few runs of ids without a gap."""

    def __init__(self, ids: UInt64s, starts: Int64s) -> None:
        order = np.argsort(ids[starts], kind="stable")
        self._firsts, self._starts = ids[starts][order], starts[order]
        self._lengths = np.diff(np.append(starts, len(ids)))[order].astype(np.uint64)

    def of(self, stored: UInt64s) -> Int64s:
        if len(self._firsts) > _VERY_FEW_RUNS:
            run = np.maximum(np.searchsorted(self._firsts, stored, side="right") - 1, 0)
            places = stored - self._firsts[run]
            is_here = places < self._lengths[run]
            return np.where(is_here, places.view(np.int64) + self._starts[run], -1)
        found = np.full(len(stored), -1, np.int64)
        for first, length, start in zip(self._firsts, self._lengths, self._starts, strict=True):
            places = stored - first
            is_here = places < length
            np.copyto(found, places.view(np.int64) + start, where=is_here)
        return found


class _Table:
    """A slot for each offset between the least and the largest of each fragment."""

    def __init__(self, ids: UInt64s) -> None:
        first, last = int(ids.min() >> _SHIFT), int(ids.max() >> _SHIFT)
        self.is_dense = last - first < _MOST_OWNERS and len(ids) < 1 << 31
        if not self.is_dense:
            return
        self._first_owner = np.uint64(first)
        self._least = np.full(last - first + 1, 1 << OFFSET_BITS, np.uint64)
        ends = np.zeros(last - first + 1, np.uint64)
        for part in (ids[at : at + STEP] for at in range(0, len(ids), STEP)):
            owners = part >> _SHIFT
            cuts = np.append(0, np.flatnonzero(owners[1:] != owners[:-1]) + 1)
            runs = (owners[cuts] - self._first_owner).view(np.int64)
            np.minimum.at(self._least, runs, np.minimum.reduceat(part & _LOW, cuts))
            np.maximum.at(ends, runs, np.maximum.reduceat(part & _LOW, cuts) + np.uint64(1))
        self._spans = np.where(ends > 0, ends - self._least, np.uint64(0))
        self.is_dense = int(self._spans.sum()) <= 4 * len(ids) + _SPARE_SLOTS
        if not self.is_dense:
            return
        self._starts = np.cumsum(self._spans) - self._spans
        self._slots = np.full(int(self._spans.sum()), -1, np.int32)
        for at in range(0, len(ids), STEP):
            slots, _ = self._slots_of(ids[at : at + STEP])
            self._slots[slots] = np.arange(at, at + len(slots), dtype=np.int32)

    def of(self, stored: UInt64s) -> Int64s:
        slots, is_here = self._slots_of(stored)
        slots[~is_here] = 0
        places = self._slots[slots].astype(np.int64)
        places[~is_here] = -1
        return places

    def _slots_of(self, ids: UInt64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        if len(self._least) == 1:
            slots = ids - ((self._first_owner << _SHIFT) | self._least[0])
            return slots.view(np.int64), slots < self._spans[0]
        owners = (ids >> _SHIFT) - self._first_owner
        is_here = owners < len(self._least)
        owners[~is_here] = 0
        slots = (ids & _LOW) - self._least[owners]
        is_here &= slots < self._spans[owners]
        return (slots + self._starts[owners]).view(np.int64), is_here


class _Search:
    """Ids far apart, in their order."""

    def __init__(self, ids: UInt64s) -> None:
        self._order = order_of_words(ids)
        self._ascending = ids[self._order]

    def of(self, stored: UInt64s) -> Int64s:
        at = np.searchsorted(self._ascending, stored)
        at[at == len(self._ascending)] = 0
        return np.where(self._ascending[at] == stored, self._order[at], -1)


class Once:
    """That each row of a part comes up exactly once, however many pieces an index is read in."""

    def __init__(self, count: int) -> None:
        self._seen = np.zeros(count, np.bool_)
        self._times = 0

    def note(self, places: Int64s) -> None:
        """These rows came up (places within the part)."""
        self._seen[places] = True
        self._times += len(places)

    def require_all(self) -> None:
        """CorruptFileError: a row did not come up, or twice."""
        require(self._times == len(self._seen) and self._seen.all(), "a row is missing or contained twice")
