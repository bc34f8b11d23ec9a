"""Segments: one run of row ids in the cheapest of five encodings (`lance.table.U64Segment`).

    Range(0, 5)                              0 1 2 3 4
    RangeWithHoles(0, 5, holes=[3])          0 1 2 4
    RangeWithBitmap(0, 5, bitmap=0b10111)    0 1 2 4        least significant bit first
    SortedArray([2, 9, 70])                  2 9 70
    Array([9, 2, 70])                        9 2 70

Ids are unsigned 64-bit. A segment is immutable; arrays that come out of it are its own and must not be written to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError

UInt64Array = npt.NDArray[np.uint64]

MAX_SPAN = 1 << 32
"""A segment that claims to span more ids than this is damaged: a fragment has at most 2**32 rows."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """start, start + 1, ... end - 1."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def to_array(self) -> UInt64Array:
        """The ids in order."""
        return np.arange(self.start, self.end, dtype=np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class RangeWithHoles:
    """A range without some of its ids; `holes` ascending."""

    start: int
    end: int
    holes: UInt64Array

    def __len__(self) -> int:
        return self.end - self.start - len(self.holes)

    def to_array(self) -> UInt64Array:
        """The ids in order."""
        keep = np.ones(self.end - self.start, dtype=np.bool_)
        keep[(self.holes - np.uint64(self.start)).astype(np.int64)] = False
        ids: UInt64Array = np.flatnonzero(keep).astype(np.uint64) + np.uint64(self.start)
        return ids


@dataclass(frozen=True, slots=True, eq=False)
class RangeWithBitmap:
    """A range of which a bitmap says, least significant bit first, which ids are there."""

    start: int
    end: int
    bitmap: npt.NDArray[np.uint8]

    def _bits(self) -> npt.NDArray[np.uint8]:
        return np.unpackbits(self.bitmap, count=self.end - self.start, bitorder="little")

    def __len__(self) -> int:
        return int(self._bits().sum())

    def to_array(self) -> UInt64Array:
        """The ids in order."""
        ids: UInt64Array = np.flatnonzero(self._bits()).astype(np.uint64) + np.uint64(self.start)
        return ids


@dataclass(frozen=True, slots=True, eq=False)
class SortedArray:
    """Ascending ids, listed."""

    values: UInt64Array

    def __len__(self) -> int:
        return len(self.values)

    def to_array(self) -> UInt64Array:
        """The ids in order."""
        return self.values


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Ids in any order, listed."""

    values: UInt64Array

    def __len__(self) -> int:
        return len(self.values)

    def to_array(self) -> UInt64Array:
        """The ids in order."""
        return self.values


Segment = IdRange | RangeWithHoles | RangeWithBitmap | SortedArray | Array


MAX_ID = (1 << 64) - 1


def check_span(start: int, end: int) -> None:
    """Refuse a range that runs backwards or that no table could have, before anything is allocated for it."""
    if end < start or end - start > MAX_SPAN:
        raise CorruptFileError(f"a row id segment spans {start}..{end}, more than a fragment can have")


def segment_of(values: UInt64Array) -> Segment:
    """The cheapest segment for these ids, in this order (sizes in bytes as they go into the manifest).

    >>> segment_of(np.array([5, 6, 7], dtype=np.uint64))
    Range(start=5, end=8)
    """
    if len(values) == 0:
        return IdRange(0, 0)
    first, last = int(values[0]), int(values[-1])
    if not bool(np.all(values[1:] > values[:-1])):
        return Array(values)
    if last == MAX_ID:  # an exclusive end behind it does not fit in 64 bits
        return SortedArray(values)
    span, count = last - first + 1, len(values)
    if span == count:
        return IdRange(first, last + 1)
    width = 2 if span <= 1 << 16 else 4 if span <= 1 << 32 else 8
    holes_size, bitmap_size, array_size = (span - count) * width, (span + 7) // 8, count * width
    if holes_size <= min(bitmap_size, array_size):
        return RangeWithHoles(first, last + 1, _holes(values, first, span))
    if bitmap_size <= array_size:
        return RangeWithBitmap(first, last + 1, np.packbits(_present(values, first, span), bitorder="little"))
    return SortedArray(values)


def _present(values: UInt64Array, first: int, span: int) -> npt.NDArray[np.bool_]:
    present = np.zeros(span, dtype=np.bool_)
    present[(values - np.uint64(first)).astype(np.int64)] = True
    return present


def _holes(values: UInt64Array, first: int, span: int) -> UInt64Array:
    ids: UInt64Array = np.flatnonzero(~_present(values, first, span)).astype(np.uint64) + np.uint64(first)
    return ids
