"""Rows of a fragment: the deleted ones, the selected live ones, and their system columns.

::

    physical   0 1 2 3 4 5      deleted [1, 4]      living 0 2 3 5
    live rows 1..3  ->  physical span 2..4        _rowaddr = fragment id << 32 | physical

Find the place of rows among the living rows of their table: the column `_rowoffset`.

::

    fragments of 5 rows, deleted [1] and [0, 2]       fragment 0: 0 _ 1 2 3     fragment 1: _ 4 _ 5 6

A deleted row has the number of living rows before it; it is seen only where deleted rows are requested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.arrow_numpy import arrow_of
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import CacheSlot, Snapshot
from lance_core.format.address import row_address
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList


def living_to_physical(deleted: Ints, living: npt.ArrayLike) -> Ints:
    """Physical offsets of rows counted among the living. `deleted` is sorted.

    >>> living_to_physical(np.array([1, 4]), [0, 1, 2, 3]).tolist()
    [0, 2, 3, 5]
    """
    numbers = np.asarray(living, np.int64)
    if len(deleted) == 0:
        return numbers
    living_before = deleted - np.arange(len(deleted))
    return numbers + np.searchsorted(living_before, numbers, side="right")


def living_span(deleted: Ints, start: int, end: int) -> tuple[int, int]:
    """The shortest physical span that holds live rows `start` to `end` (excluded).

    >>> living_span(np.array([1, 4]), 1, 3)
    (2, 4)
    """
    if end <= start:
        return 0, 0
    first, last = living_to_physical(deleted, [start, end - 1])
    return int(first), int(last) + 1


def is_living(deleted: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
    """Which of the physical offsets are not deleted."""
    if len(deleted) == 0 or len(offsets) == 0:
        return np.ones(len(offsets), np.bool_)
    at = np.searchsorted(deleted, offsets)
    living: npt.NDArray[np.bool_] = deleted[np.minimum(at, len(deleted) - 1)] != offsets
    return living


def addresses(fragment_id: int, offsets: Ints) -> Any:
    """`_rowaddr` of physical offsets, as a uint64 Arrow array."""
    return arrow_of(offsets.astype(np.uint64) + np.uint64(row_address(fragment_id, 0)))


def by_fragment(addresses: npt.NDArray[np.uint64]) -> dict[int, Ints]:
    """Sorted physical offsets by fragment id; an address is fragment id << 32 | offset.

    >>> by_fragment(np.array([1 << 32 | 5, 3], np.uint64))
    {0: array([3]), 1: array([5])}
    """
    ordered = np.sort(addresses)
    owners = (ordered >> np.uint64(32)).astype(np.int64)
    offsets = (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)
    numbers, starts = np.unique(owners, return_index=True)
    # Splitting nothing gives one empty part, which no number claims.
    return dict(zip(numbers.tolist(), np.split(offsets, starts[1:]), strict=False))


def row_places(snapshot: Snapshot, fragment: Fragment, offsets: Ints) -> Ints:
    """The places of physical offsets of a fragment. One that the version does not have yet is counted by itself.

    Raises NotFoundError, CorruptFileError for its deletion file.
    """
    first, deleted = snapshot.cached(_FIRST_ROWS).get(fragment.id, 0), read_deleted(snapshot, fragment)
    if snapshot.whole is not None:
        known = FragmentList.of(snapshot.whole.fragments).pick(frozenset((fragment.id,))).get(fragment.id)
        deleted = deleted if known is None else read_deleted(snapshot, known)
    places: Ints = offsets + first
    return places - np.searchsorted(deleted, offsets) if len(deleted) else places


def _first_rows(snapshot: Snapshot) -> dict[int, int]:
    manifest = snapshot.manifest if snapshot.whole is None else snapshot.whole
    fragments = FragmentList.of(manifest.fragments)
    counts = np.asarray(fragments.row_counts, np.int64)
    return dict(zip(fragments.ids, (np.cumsum(counts) - counts).tolist(), strict=True))


_FIRST_ROWS = CacheSlot(_first_rows)
