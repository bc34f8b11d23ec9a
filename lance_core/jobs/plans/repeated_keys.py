"""Keys that several rows of a merge's source have, found once, on the driver, before such rows become new rows.

::

    on id    rows 0..3 with ids 7, 8, 7, null    superseded_rows -> [0]    refuse_repeated -> InputError: id = 7 (2 rows)

A null key matches nothing, so rows that have one are never repeated. Only the key columns are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.shown import shown
from lance_core.arrow_numpy import arrow_of, numpy_of, true_of
from lance_core.dataset.edit.key_lookup import plain_keys
from lance_core.errors import InputError
from lance_core.io.store import Store
from lance_core.jobs.runtime.spool import Spool
from lance_core.shortage import ARROW_ERRORS

_ROW = "__source_row"
_NAMED = 3
"""Keys that an error names at most."""


def superseded_rows(spool: Spool, store: Store, on: Sequence[str]) -> Ints:
    """Numbers of the rows whose key a later row has as well, ascending."""
    keys = _keys(spool, store, on)
    return np.setdiff1d(_rows(keys), _rows(_groups(keys, on), f"{_ROW}_max"))


def refuse_repeated(spool: Spool, store: Store, on: Sequence[str], *, matched: Ints) -> None:
    """InputError where rows that match nothing, and so would be inserted, have the same key."""
    keys = _keys(spool, store, on)
    left = keys.filter(arrow_of(~np.isin(_rows(keys), matched)))
    groups = _groups(left, on)
    counts = _rows(groups, f"{_ROW}_count")
    repeated = groups.filter(arrow_of(counts > 1)).sort_by(f"{_ROW}_max")
    if not repeated.num_rows:
        return
    named = "; ".join(_named(repeated, at, on) for at in range(min(repeated.num_rows, _NAMED)))
    others = repeated.num_rows - _NAMED
    more = f"; and {others} more {'key' if others == 1 else 'keys'}" if others > 0 else ""
    raise InputError(
        f"several new rows of the source have the same key: {named}{more}",
        uri=spool.uri,
        cure='Keep one row per key in the source, or pass when_duplicate="last" to keep the row that is read last.',
    )


def _named(groups: pa.Table, at: int, on: Sequence[str]) -> str:
    key = ", ".join(f"{name} = {shown(groups.column(name)[at])}" for name in on)
    return f"{key} ({groups.column(f'{_ROW}_count')[at].as_py()} rows)"


def _keys(spool: Spool, store: Store, on: Sequence[str]) -> pa.Table:
    """The keys without null of all rows, and the rows' numbers."""
    keys = plain_keys(spool.read(store, columns=on))
    keys = keys.append_column(_ROW, arrow_of(np.arange(keys.num_rows)))
    for name in on:
        keys = keys.filter(arrow_of(true_of(keys.column(name).is_valid())))
    return keys


def _groups(keys: pa.Table, on: Sequence[str]) -> pa.Table:
    try:
        return keys.group_by([*on]).aggregate([(_ROW, "max"), (_ROW, "count")])
    except ARROW_ERRORS as error:
        raise InputError(
            f"cannot merge on {', '.join(on)}: {error}", cure="Name key columns of numbers, text or dates."
        ) from error


def _rows(table: pa.Table, name: str = _ROW) -> Ints:
    found: Ints = numpy_of(table.column(name)).astype(np.int64)
    return found
