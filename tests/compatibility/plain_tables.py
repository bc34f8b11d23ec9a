"""Twins of the tables of the sweep without what a kept difference comes from: there the two libraries must agree.

::

    units: every time in microseconds         dictionaries, long texts: texts         zeros of two columns: no -0.0

A rule of `differences` says what a difference looks like. Many things look so; what vanishes on the twin has this cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Change = Callable[[Any], Any]


def plain(table: pa.Table, change: Change) -> pa.Table:
    """The table with each column changed; a change gives None for what stays."""
    columns = [(change(column.combine_chunks()), column) for column in table.columns]
    return pa.table([old if new is None else new for new, old in columns], names=table.schema.names)


def _one_unit(column: Any) -> Any:
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        return pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
    if types.is_duration(kind) or types.is_time(kind):
        return pc.cast(column, pa.duration("us") if types.is_duration(kind) else pa.time64("us"), safe=False)
    return column.cast(pa.date32()) if types.is_date64(kind) else None


def _lengths(column: Any) -> Any:
    """Every time in microseconds, those of a day as how long it is."""
    found = _one_unit(column)
    return found.cast(pa.int64()).cast(pa.duration("us")) if pa.types.is_time(column.type) else found


def _texts(column: Any) -> Any:
    is_text = column.type == pa.large_string() or pa.types.is_dictionary(column.type)
    return column.cast(pa.string()) if is_text else None


def _small_numbers(column: Any) -> Any:
    """Whole numbers of 64 bits that no product of two leaves."""
    kind = column.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _clipped(column.cast(pa.int64()), 10**6)
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        items = _clipped(column.values.cast(pa.int64()), 10**6)
        return pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null())
    if pa.types.is_struct(kind):
        return column.cast(pa.struct([pa.field(each.name, _wide(each.type)) for each in kind]))
    return None


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


def _clipped(column: Any, most: int) -> Any:
    low, high = (pa.scalar(bound, column.type) for bound in (-most, most))
    return pc.min_element_wise(pc.max_element_wise(column, low, skip_nulls=False), high, skip_nulls=False)


def _no_halves(column: Any) -> Any:
    return column.cast(pa.float64()) if pa.types.is_float16(column.type) else None


def _doubles(column: Any) -> Any:
    return column.cast(pa.float64()) if pa.types.is_floating(column.type) else None


def _no_zones(column: Any) -> Any:
    kind = column.type
    return column.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) and kind.tz else None


def _near(column: Any) -> Any:
    """Times of this century, and numbers that are such."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        seconds = 1 if not pa.types.is_timestamp(kind) else {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        most = {"d": 20_000, "D": 20_000 * 86_400_000}["d" if pa.types.is_date32(kind) else "D"]
        return _clipped(column.cast(whole), most if pa.types.is_date(kind) else 1_700_000_000 * seconds).cast(kind)
    return _clipped(column, 10**9) if kind in (pa.int64(), pa.int32()) else None


def _ordinary_floats(column: Any) -> Any:
    """Positive numbers of ordinary size: no zeros, infinities and NaN, and none that makes them."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return pa.ListArray.from_arrays(column.offsets, _ordinary_floats(column.values), mask=column.is_null())
    if pa.types.is_fixed_size_list(kind):
        items = _ordinary_floats(column.values)
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    if not pa.types.is_floating(kind):
        return None
    values = column.cast(pa.float64()).fill_null(1.0).to_numpy(zero_copy_only=False)
    usual = np.isfinite(values) & (np.abs(values) > 1e-3) & (np.abs(values) < 1e4)
    made = pa.array(np.where(usual, np.abs(values), 1.0))
    return pc.if_else(column.is_null(), pa.scalar(None, pa.float64()), made).cast(kind, safe=False)


def _some_text(column: Any) -> Any:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return pc.if_else(pc.equal(column, ""), pa.scalar("0", column.type), column) if is_text else None


def _whole_lists(column: Any) -> Any:
    """Lists without nulls, none of them empty, at any depth."""
    kind: Any = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    rows = [[item for item in row or () if item not in (None, [])] for row in column.to_pylist()]
    some = next(row for row in rows if row)
    return pa.array([row or some for row in rows], kind)


def _no_nulls(column: Any) -> Any:
    """Whole lists, and whole numbers for where they begin and end."""
    return column.fill_null(1) if pa.types.is_integer(column.type) else _whole_lists(column)


def _longer_lists(column: Any) -> Any:
    """Lists that may have any length."""
    kind: Any = column.type
    return column.cast(pa.list_(kind.value_type)) if pa.types.is_fixed_size_list(kind) else None


def _small_decimals(column: Any) -> Any:
    if column.type != pa.decimal256(60, 5):
        return None
    return pa.array([None if each is None else each % 100_000 for each in column.to_pylist()], pa.decimal128(20, 5))


def _letters(column: Any) -> Any:
    if column.type not in (pa.binary(), pa.large_binary(), pa.binary(3)):
        return None
    return pa.array([None if each is None else b"abc" for each in column.to_pylist()], pa.string())


PLAIN: Mapping[str, Change] = MappingProxyType(
    {
        "zones of constants": _no_zones,
        "subtraction across zones": _no_zones,
        "units": _one_unit,
        "durations": _lengths,
        "date_bin": _near,
        "length of bytes": _letters,
        "narrow integers": _small_numbers,
        "half floats": _no_halves,
        "empty text": _some_text,
        "wide decimals": _small_decimals,
        "long texts": _texts,
        "dictionaries": _texts,
        "zeros of two columns": _ordinary_floats,
        "constants beside floats": _doubles,
        "lists of another length": _longer_lists,
        "lists of lists": _whole_lists,
        "nulls of a list": _whole_lists,
        "lists without items": _whole_lists,
        "slices of null": _no_nulls,
        "far years": _near,
        "signs of NaN": _ordinary_floats,
    }
)
"""By the name of a kept difference what takes its cause away."""
