"""Select rows by position, by id, or by address: exactly one of the three.

::

    addresses_of(snapshot, indices=[7])      the 8th living row     -> 1 << 32 | 3
    addresses_of(snapshot, ids=[42])         `_rowid` 42, wherever that row is now
    addresses_of(snapshot, addresses=[...])  themselves
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Addresses
from lance_core.arrow_numpy import numpy_of
from lance_core.dataset.scan.take import projection_of, take_rows
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.rowids.index import MISSING


def addresses_of(snapshot: Snapshot, *, ids: Any = None, indices: Any = None, addresses: Any = None) -> Addresses:
    """Row addresses, in the order given, repeats included. Raises InputError for rows that are not there."""
    given = [item for item in (ids, indices, addresses) if item is not None]
    if len(given) != 1:
        raise InputError(
            "rows must be selected by exactly one of ids, indices and addresses", cure="Pass exactly one of them."
        )
    if indices is not None:
        rows = take_rows(snapshot, indices, projection_of(snapshot, ["_rowaddr"]))
        return numpy_of(rows.column(0)) if rows.num_rows else np.empty(0, np.uint64)
    numbers = _numbers(given[0])
    if addresses is not None or not snapshot.manifest.uses_stable_row_ids:
        return numbers
    found = row_id_index(snapshot).addresses_of(numbers)
    if (found == MISSING).any():
        raise InputError(f"{snapshot.uri} has no row with id {int(numbers[found == MISSING][0])}", cure="It was deleted.")
    return found


def _numbers(values: Any) -> Addresses:
    array = numpy_of(values, may_copy=True) if isinstance(values, (pa.Array, pa.ChunkedArray)) else np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.dtype.kind == "i" and array.min() < 0):
        raise InputError(f"row ids and addresses must be non-negative integers, got {array.dtype}")
    return array.astype(np.uint64)
