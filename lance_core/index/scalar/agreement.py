"""Does an index say of every row what the row's value is? What the kinds share when they are compared with their column.

::

    stored ids [7, 3, 9]   rows of the column [3, 7]       places [1, 0]; 9 is of a row that is gone, it may stay
    stored ids [7, 7, 9]   rows of the column [3, 7]       CorruptFileError: row 7 is there twice, row 3 is not

Each row of the column must be there once with its own value; then nothing can be missing, and nothing be wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from lance_core.errors import CorruptFileError
from lance_core.format.address import OFFSET_BITS
from lance_core.index.scalar.order import float_keys
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.selection import AddressSet

pc: Any = compute  # the stubs know only some of what the kernels take
UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(OFFSET_BITS)
_FEW_FRAGMENTS = 16


def require(holds: object, what: str) -> None:
    """Raise CorruptFileError unless it holds."""
    if not holds:
        raise CorruptFileError(f"it does not say what the column says: {what}", cure="Build the index anew.")


def places_of(stored: UInt64s, wanted: UInt64s) -> Int64s:
    """Where each of the `wanted` ids (each once) is among the `stored`. CorruptFileError: one is not there, or twice."""
    owners = np.unique(wanted >> _SHIFT)
    if len(owners) > _FEW_FRAGMENTS or (len(wanted) and int((wanted & _LOW).max()) > 16 * len(wanted) + (1 << 22)):
        return _places_by_order(stored, wanted)
    places = np.empty(len(wanted), np.int64)
    stored_owners, wanted_owners = stored >> _SHIFT, wanted >> _SHIFT
    for owner in owners:
        here = np.flatnonzero(wanted_owners == owner)
        offsets = (wanted[here] & _LOW).astype(np.int64)
        size = int(offsets.max()) + 1
        there = np.flatnonzero(stored_owners == owner)
        found = (stored[there] & _LOW).astype(np.int64)
        there, found = there[found < size], found[found < size]
        times = np.bincount(found, minlength=size)[offsets]
        require((times == 1).all(), "a row is missing, or there twice")
        slots = np.zeros(size, np.int64)
        slots[found] = there
        places[here] = slots[offsets]
    return places


def _places_by_order(stored: UInt64s, wanted: UInt64s) -> Int64s:
    order = np.argsort(stored, kind="stable")
    ascending = stored[order]
    first, last = (np.searchsorted(ascending, wanted, side=side) for side in ("left", "right"))
    require((last - first == 1).all(), "a row is missing, or there twice")
    places: Int64s = order[first]
    return places


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


def require_same_rows(stored: AddressSet, wanted: UInt64s, ids: UInt64s) -> None:
    """Of the rows `ids`, a stored set must hold the `wanted` and no others."""
    held = expanded(stored, ids)
    held = held[np.isin(held, ids)]
    require(np.array_equal(np.sort(held), np.sort(wanted)), "other rows are null than in the table")


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


def runs_of(numbers: Int64s) -> Iterator[tuple[int, int, int]]:
    """(number, first, end) of each run of the same number."""
    cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    for first, end in itertools.pairwise(cuts):
        if end > first:
            yield int(numbers[first]), first, end


def in_order(values: Any, ids: UInt64s) -> tuple[Any, UInt64s]:
    """Rows by ascending id."""
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return values, ids
    order = np.argsort(ids, kind="stable")
    return values.take(pa.array(order)), ids[order]
