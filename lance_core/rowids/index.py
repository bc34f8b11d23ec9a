"""The current address of a stable row id: an index from ids to row addresses over the fragments of one version.

    fragment 0   ids 0 1 2 3, row 2 deleted      ->    [0, 2) at 0:0, [3, 4) at 0:3
    fragment 4   ids 2                           ->    [2, 3) at 4:0

Runs of consecutive live ids become intervals. An id is live in one place only, which is what deletions see to: an updated
row is deleted where it was and carries its id to where it went.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError
from lance_core.format.address import OFFSET_BITS
from lance_core.rowids.deletion import DeletionVector
from lance_core.rowids.segment import IdRange, UInt64Array
from lance_core.rowids.sequence import RowIdSequence

MISSING = np.uint64(0xFFFFFFFFFFFFFFFF)
"""What stands for the address of an id that no live row has."""

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FragmentIds:
    """One fragment: its id, the ids of its physical rows, and which of those rows are deleted."""

    fragment_id: int
    sequence: RowIdSequence
    deleted: DeletionVector | None = None


@dataclass(frozen=True, slots=True)
class RowIdIndex:
    """Intervals [starts, ends) of ids whose addresses count up from `addresses`, ascending and disjoint."""

    starts: UInt64Array
    ends: UInt64Array
    addresses: UInt64Array

    def addresses_of(self, row_ids: UInt64Array) -> UInt64Array:
        """The address of each id, `MISSING` where there is none; uint64, same length."""
        if len(self.starts) == 0:
            return np.full(len(row_ids), MISSING, dtype=np.uint64)
        slot = np.searchsorted(self.starts, row_ids, side="right").astype(np.int64) - 1
        inside = (slot >= 0) & (row_ids < self.ends[np.maximum(slot, 0)])
        slot = np.where(inside, slot, 0)
        found: UInt64Array = self.addresses[slot] + (row_ids - self.starts[slot])
        found[~inside] = MISSING
        return found

    def __len__(self) -> int:
        """Live ids."""
        return int((self.ends - self.starts).sum())


def build_row_id_index(fragments: Iterable[FragmentIds]) -> RowIdIndex:
    """The index over these fragments. CorruptFileError when an id is live in two places."""
    parts = [_intervals(item) for item in fragments]
    if not parts:
        empty = np.empty(0, dtype=np.uint64)
        return RowIdIndex(empty, empty, empty)
    starts, ends, addresses = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(starts, kind="stable")
    starts, ends, addresses = starts[order], ends[order], addresses[order]
    clash = np.flatnonzero(starts[1:] < ends[:-1])
    if len(clash):
        raise CorruptFileError(
            f"row id {int(starts[1:][clash[0]])} belongs to two live rows", cure="Restore an older version of the table."
        )
    return RowIdIndex(starts, ends, addresses)


def _ranges(item: FragmentIds) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """The same where nothing has to be written out: ranges, none of them touched by a deletion."""
    ranges = [segment for segment in item.sequence.segments if isinstance(segment, IdRange) and len(segment)]
    starts = np.array([segment.start for segment in ranges], dtype=np.uint64)
    ends = np.array([segment.end for segment in ranges], dtype=np.uint64)
    first = np.cumsum(ends - starts, dtype=np.uint64) - (ends - starts)
    return starts, ends, first + np.uint64(item.fragment_id << OFFSET_BITS)


def _intervals(item: FragmentIds) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Maximal runs in which id and offset count up together, over the live rows of one fragment."""
    if item.deleted is None and all(isinstance(segment, IdRange) for segment in item.sequence.segments):
        return _ranges(item)
    ids = item.sequence.to_array()
    if item.deleted is None:
        offsets: Int64Array = np.arange(len(ids), dtype=np.int64)
    else:
        offsets = item.deleted.live_offsets(len(ids))
        ids = ids[offsets]
    if len(ids) == 0:
        empty = np.empty(0, dtype=np.uint64)
        return empty, empty, empty
    breaks = np.flatnonzero((ids[1:] != ids[:-1] + np.uint64(1)) | (offsets[1:] != offsets[:-1] + 1)) + 1
    first = np.concatenate([[0], breaks])
    last = np.concatenate([breaks, [len(ids)]]) - 1
    base = np.uint64(item.fragment_id << OFFSET_BITS)
    return ids[first], ids[last] + np.uint64(1), offsets[first].astype(np.uint64) + base
