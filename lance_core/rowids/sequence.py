"""The stable row ids of one fragment, in the order of its rows: a list of segments (`lance.table.RowIdSequence`).

    rows 0..4 of a fragment     Range(100, 103), Array([7, 3])     ->     100 101 102 7 3

Position i belongs to physical row i of the fragment, deleted rows included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.errors import InputError
from lance_core.rowids.segment import IdRange, Segment, UInt64Array, segment_of

# A list is cut where a gap of this many ids or a step back begins a new run that is worth a segment of its own.
_MIN_RUN = 64


@dataclass(frozen=True, slots=True, eq=False)
class RowIdSequence:
    """Row ids in row order."""

    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        return bool(np.array_equal(self.to_array(), other.to_array()))

    __hash__ = None  # type: ignore[assignment]

    def to_array(self) -> UInt64Array:
        """All ids, uint64, one for each physical row."""
        if len(self.segments) == 1:
            return self.segments[0].to_array()
        parts = [segment.to_array() for segment in self.segments]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)

    def slice(self, start: int, length: int) -> RowIdSequence:
        """The ids of rows start .. start + length; InputError when there are not that many."""
        if start < 0 or length < 0 or start + length > len(self):
            raise InputError(f"rows {start}..{start + length} are not within a sequence of {len(self)} row ids")
        return sequence_of(self.to_array()[start : start + length])

    def select(self, offsets: npt.NDArray[np.integer]) -> RowIdSequence:
        """The ids at those row offsets, in that order."""
        return sequence_of(self.to_array()[offsets])


def range_sequence(start: int, length: int) -> RowIdSequence:
    """`length` consecutive ids."""
    return RowIdSequence((IdRange(start, start + length),))


def sequence_of(values: UInt64Array | Sequence[int]) -> RowIdSequence:
    """A compact sequence for these ids in this order."""
    array = np.asarray(values, dtype=np.uint64)
    if len(array) == 0:
        return RowIdSequence(())
    return RowIdSequence(tuple(_segments(array)))


def _segments(array: UInt64Array) -> Iterable[Segment]:
    """Long consecutive runs become ranges; what is between them is encoded as it is cheapest."""
    breaks = np.flatnonzero(array[1:] != array[:-1] + np.uint64(1)) + 1
    bounds = np.concatenate([[0], breaks, [len(array)]])
    long_runs = np.flatnonzero(np.diff(bounds) >= _MIN_RUN)
    cursor = 0
    for run in long_runs.tolist():
        begin, end = int(bounds[run]), int(bounds[run + 1])
        yield from _between(array[cursor:begin])
        yield segment_of(array[begin:end])
        cursor = end
    yield from _between(array[cursor:])


def _between(array: UInt64Array) -> Iterable[Segment]:
    if len(array):
        yield segment_of(array)


def concat_sequences(sequences: Iterable[RowIdSequence]) -> RowIdSequence:
    """All ids of several sequences, one after the other."""
    arrays = [sequence.to_array() for sequence in sequences]
    return sequence_of(np.concatenate(arrays)) if arrays else RowIdSequence(())
