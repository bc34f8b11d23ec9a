"""Does an index say of every row what the row's value is? What the kinds share when they are compared with their column.

::

    stored ids [7, 3, 9]   rows of the column [3, 7]       places [1, 0]; 9 is of a row that is gone, it may stay
    stored ids [7, 7, 9]   rows of the column [3, 7]       CorruptFileError: row 7 is there twice, row 3 is not

Each row of the column must be there once with its own value; then nothing can be missing, and nothing be wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from lance_core.format.address import OFFSET_BITS
from lance_core.index.scalar.order import float_keys, integer_keys
from lance_core.index.scalar.places import STEP, Places
from lance_core.index.scalar.places import places_of as places_of
from lance_core.index.scalar.places import require as require
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.selection import AddressSet

pc: Any = compute  # the stubs know only some of what the kernels take
UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(OFFSET_BITS)


def require_same_values(stored: Any, values: Any) -> None:
    """Two arrays of one length must have the same values, nulls and NaN (of whatever bits) included."""
    stored = stored.cast(values.type) if stored.type != values.type else stored
    if stored.equals(values):
        return
    same = stored.is_null().equals(values.is_null())
    if same and pa.types.is_floating(values.type):
        kept, mine = (array.drop_null().to_numpy(zero_copy_only=False) for array in (stored, values))
        same = bool(((kept == mine) | ((kept != kept) & (mine != mine))).all())
    else:
        same = False
    require(same, "a value is another than in the table")


def require_same_rows(stored: AddressSet, rows: Places, ids: UInt64s, is_wanted: npt.NDArray[np.bool_]) -> None:
    """Of the rows `ids`, a stored set must hold those that are wanted (bool for each) and no others."""
    if not stored and not is_wanted.any():
        return
    held = np.zeros(rows.count, np.bool_)
    found = rows.of(expanded(stored, ids))
    held[found[found >= 0]] = True
    require(np.array_equal(held, is_wanted), "other rows are null than in the table")


def expanded(rows: AddressSet, ids: UInt64s) -> UInt64s:
    """The addresses of a set; where it stands for a whole fragment, those of `ids` that lie there."""
    parts = [
        ids[ids >> _SHIFT == owner]
        if offsets is None
        else bitmap_array(offsets).astype(np.uint64) | np.uint64(owner << OFFSET_BITS)
        for owner, offsets in rows.fragments.items()
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def not_above(low: Any, high: Any) -> npt.NDArray[np.bool_]:
    """For each pair of values that are not null whether the first comes before the second in an index, or is the same."""
    t = pa.types
    if t.is_floating(low.type):
        found: Any = float_keys(low) <= float_keys(high)
        return np.asarray(found, np.bool_)
    if t.is_boolean(low.type) or t.is_fixed_size_binary(low.type):
        plain = pa.int8() if t.is_boolean(low.type) else pa.binary()
        low, high = low.cast(plain), high.cast(plain)
    known: Any = pc.less_equal(low, high)
    return np.asarray(known.to_numpy(zero_copy_only=False), np.bool_)


def require_bounds(summaries: pa.RecordBatch, numbers: Any, lows: Any, highs: Any) -> None:
    """Stretches `numbers` of a table with min and max have values from `lows` to `highs`, which the table must allow for."""
    least, most = (summaries.column(name).take(pa.array(numbers)) for name in ("min", "max"))
    require(most.null_count == 0, "a page with values has no largest one")
    require(not_above(highs.cast(most.type), most).all(), "a page has a value above its largest one")
    told = least.is_valid()
    require(not_above(least.filter(told), lows.cast(least.type).filter(told)).all(), "a page has a value below its smallest")


def require_bounds_of_all(summaries: pa.RecordBatch, numbers: Int64s, values: Any) -> None:
    """The same of each value, which lies in the stretch of its number; none is null or not a number."""
    if len(values) == 0:
        return
    if integer_keys(values.slice(0, 1)) is None:
        for first in range(0, len(values), STEP):
            part = values.slice(first, STEP)
            require_bounds(summaries, numbers[first : first + STEP], part, part)
        return
    keys = integer_keys(values)
    cuts = np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
    least, most = (summaries.column(name).cast(values.type).take(pa.array(numbers[cuts])) for name in ("min", "max"))
    require(most.null_count == 0, "a page with values has no largest one")
    require((np.maximum.reduceat(keys, cuts) <= integer_keys(most)).all(), "a page has a value above its largest one")
    told = least.is_valid().to_numpy(zero_copy_only=False)
    lows = np.minimum.reduceat(keys, cuts)[told]
    require((integer_keys(least.drop_null()) <= lows).all(), "a page has a value below its smallest")


def zone_numbers(places: pa.RecordBatch, ids: UInt64s) -> Int64s:
    """The zone of each row. CorruptFileError: a row lies in none."""
    owners, starts, lengths = (places.column(name).to_numpy() for name in ("fragment_id", "zone_start", "zone_length"))
    require(not len(owners) or int(max(owners.max(), starts.max())) <= int(_LOW), "a zone lies outside of the table")
    firsts = (owners << _SHIFT) | starts
    order = np.argsort(firsts, kind="stable")
    at = np.searchsorted(firsts[order], ids, side="right") - 1
    require(not len(ids) or (len(order) and int(at.min()) >= 0), "a row lies in no zone")
    zones: Int64s = order[at] if len(ids) else np.empty(0, np.int64)
    require(((ids - firsts[zones]) < lengths[zones]).all(), "a row lies in no zone")
    return zones


def null_mask(values: Any) -> npt.NDArray[np.bool_]:
    """Whether each value is null."""
    if values.null_count == 0:
        return np.zeros(len(values), np.bool_)
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)


def in_order(values: Any, ids: UInt64s) -> tuple[Any, UInt64s]:
    """Rows by ascending id."""
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return values, ids
    order = np.argsort(ids, kind="stable")
    return values.take(pa.array(order)), ids[order]
