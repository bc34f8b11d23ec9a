"""A cache of the deleted rows of fragments, because deletion files never change.

::

    fragment 3, deletion file 3-7-1234.arrow -> int64 array of physical offsets, sorted, unique
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.commit.deletion_files import deletion_file_path, read_deletions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.io.cache import shared_cache


def read_deleted(snapshot: Snapshot, fragment: Fragment) -> npt.NDArray[np.int64]:
    """Sorted physical offsets of the fragment's deleted rows. Raises NotFoundError, CorruptFileError."""
    file = fragment.deletion_file
    if file is None or file.num_deleted_rows == 0:
        return np.empty(0, np.int64)
    store, _ = snapshot.store_of(file.base_id)

    def load() -> tuple[npt.NDArray[np.int64], int]:
        offsets = read_deletions(store, fragment)
        return offsets, offsets.nbytes

    return shared_cache().get_or_make(("deleted", store.uri, deletion_file_path(fragment.id, file)), load)


def living_offsets(snapshot: Snapshot, fragment: Fragment) -> Ints:
    """Physical offsets of all live rows of a fragment."""
    every = np.arange(fragment.physical_rows, dtype=np.int64)
    return np.setdiff1d(every, read_deleted(snapshot, fragment), assume_unique=True)
