"""Find the place of rows among the living rows of their table: the column `_rowoffset`.

::

    fragments of 5 rows, deleted [1] and [0, 2]       fragment 0: 0 _ 1 2 3     fragment 1: _ 4 _ 5 6

A deleted row has the number of living rows before it; it is seen only where deleted rows are requested.
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Ints
from lance_core.dataset.snapshot.cache import CacheSlot
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList


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
