"""Verify that an index matches the value of every row: shared by all kinds that are compared with their column.

::

    stored ids [7, 3, 9]   rows of the column [3, 7]       places [1, 0]; 9 is of a row that is gone, it may stay
    stored ids [7, 7, 9]   rows of the column [3, 7]       CorruptFileError: row 7 is there twice, row 3 is not

Each row of the column must be there once with its own value; then nothing can be missing, and nothing be wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.format.address import OFFSET_BITS
from lance_core.index.base import gather
from lance_core.index.scalar.external_sort import float_keys, integer_keys
from lance_core.index.scalar.id_lookup import STEP, Places
from lance_core.index.scalar.id_lookup import require as require
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.selection import AddressSet

pc: Any = compute  # the stubs know only some of what the kernels take
UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(OFFSET_BITS)
_PIECE, _MANY_BATCHES = 1 << 16, 256
_OTHER_NULLS = "its null rows differ from the table's"


def require_same_values(stored: Any, values: Any) -> None:
    """Two arrays of one length must have the same values, nulls and NaN (of whatever bits) included."""
    stored = stored.cast(values.type) if stored.type != values.type else stored
    if stored.equals(values):
        return
    same = stored.is_null().equals(values.is_null())
    if same and pa.types.is_floating(values.type):
        kept, mine = (numpy_of(array.drop_null(), may_copy=True) for array in (stored, values))
        same = bool(((kept == mine) | ((kept != kept) & (mine != mine))).all())
    else:
        same = False
    require(same, "index value differs from the table's value")


class NullCheck:
    """Of the given rows, a stored set (None: there is none) must hold those that are null and no others."""

    def __init__(self, stored: AddressSet | None) -> None:
        self._stored = stored
        self._found: list[tuple[UInt64s, npt.NDArray[np.bool_]]] = []

    def note(self, ids: UInt64s, is_null: npt.NDArray[np.bool_]) -> None:
        """Take in rows, and whether each is null."""
        if self._stored:
            self._found.append((ids, is_null))
        elif self._stored is not None:
            require(not is_null.any(), _OTHER_NULLS)

    def require_same(self) -> None:
        """CorruptFileError: it holds others."""
        if self._stored and self._found:
            ids, is_null = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
            held = np.zeros(len(ids), np.bool_)
            found = Places(ids).of(expanded(self._stored, ids))
            held[found[found >= 0]] = True
            require(np.array_equal(held, is_null), _OTHER_NULLS)


def expanded(rows: AddressSet, ids: UInt64s) -> UInt64s:
    """The addresses of a set; where it stands for a whole fragment, those of `ids` that are there."""
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
    return np.asarray(numpy_of(known, may_copy=True), np.bool_)


def require_bounds(summaries: pa.RecordBatch, numbers: Any, lows: Any, highs: Any) -> None:
    """Stretches `numbers` of a table with min and max have values from `lows` to `highs`, which the table must allow for."""
    least, most = (summaries.column(name).take(arrow_of(numbers)) for name in ("min", "max"))
    require(most.null_count == 0, "a page with values has no maximum")
    require(not_above(highs.cast(most.type), most).all(), "a page has a value above its maximum")
    told = least.is_valid()
    require(not_above(least.filter(told), lows.cast(least.type).filter(told)).all(), "a page has a value below its minimum")


def require_bounds_of_all(summaries: pa.RecordBatch, numbers: Int64s, values: Any) -> None:
    """The same of each value, which is in the stretch of its number; none is null or not a number."""
    if len(values) == 0:
        return
    if integer_keys(values.slice(0, 1)) is None:
        for first in range(0, len(values), STEP):
            part = values.slice(first, STEP)
            require_bounds(summaries, numbers[first : first + STEP], part, part)
        return
    keys = integer_keys(values)
    cuts = np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
    least, most = (summaries.column(name).cast(values.type).take(arrow_of(numbers[cuts])) for name in ("min", "max"))
    require(most.null_count == 0, "a page with values has no maximum")
    require((np.maximum.reduceat(keys, cuts) <= integer_keys(most)).all(), "a page has a value above its maximum")
    told = numpy_of(least.is_valid(), may_copy=True)
    lows = np.minimum.reduceat(keys, cuts)[told]
    require((integer_keys(least.drop_null()) <= lows).all(), "a page has a value below its minimum")


class Zones:
    """Which zone of a table of zones (fragment_id, zone_start, zone_length) each row is in."""

    def __init__(self, places: pa.RecordBatch) -> None:
        names = ("fragment_id", "zone_start", "zone_length")
        owners, starts, self._lengths = (numpy_of(places.column(name)) for name in names)
        require(not len(owners) or int(max(owners.max(), starts.max())) <= int(_LOW), "a zone is outside the table")
        self._firsts = (owners << _SHIFT) | starts
        self._order = np.argsort(self._firsts, kind="stable")
        self._ascending = self._firsts[self._order]

    def of(self, ids: UInt64s) -> Int64s:
        """The number of the zone of each row. CorruptFileError: a row is in none."""
        if len(ids) == 0:
            return np.empty(0, np.int64)
        if len(ids) > 1 and bool((ids[1:] > ids[:-1]).all()):
            return self._of_ascending(ids)
        at = np.searchsorted(self._ascending, ids, side="right") - 1
        require(len(self._order) and int(at.min()) >= 0, "a row is in no zone")
        zones: Int64s = self._order[at]
        require(((ids - self._firsts[zones]) < self._lengths[zones]).all(), "a row is in no zone")
        return zones

    def _of_ascending(self, ids: UInt64s) -> Int64s:
        """Where rows ascend, each zone has a run of them: a look-up for each zone, not for each row."""
        first, last = (np.searchsorted(self._ascending, ids[[0, -1]], side="right") - 1).tolist()
        require(first >= 0, "a row is in no zone")
        zones = self._order[first : last + 1]
        cuts = np.searchsorted(ids, self._ascending[first + 1 : last + 1])
        counts = np.diff(np.concatenate([[0], cuts, [len(ids)]]))
        has_rows = counts > 0
        ends = np.cumsum(counts)[has_rows] - 1
        held = zones[has_rows]
        require(((ids[ends] - self._firsts[held]) < self._lengths[held]).all(), "a row is in no zone")
        found: Int64s = np.repeat(zones, counts)
        return found


def in_pieces(batches: Iterable[pa.RecordBatch], value_type: pa.DataType) -> Iterator[tuple[Any, UInt64s]]:
    """Training data (value, id) about so many rows at a time as stay in the processor's caches."""
    waiting: list[pa.RecordBatch] = []
    for batch in itertools.chain.from_iterable(_slices(batch) for batch in batches):
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _PIECE or len(waiting) >= _MANY_BATCHES:
            yield gather(waiting, value_type)
            waiting = []
    if waiting:
        yield gather(waiting, value_type)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(first, _PIECE) for first in range(0, batch.num_rows, _PIECE))


def null_mask(values: Any) -> npt.NDArray[np.bool_]:
    """Whether each value is null."""
    if values.null_count == 0:
        return np.zeros(len(values), np.bool_)
    return np.asarray(numpy_of(values.is_null(), may_copy=True), np.bool_)


def in_order(values: Any, ids: UInt64s) -> tuple[Any, UInt64s]:
    """Rows by ascending id."""
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return values, ids
    order = np.argsort(ids, kind="stable")
    return values.take(arrow_of(order)), ids[order]
