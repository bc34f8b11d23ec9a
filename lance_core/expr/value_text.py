"""The text of a value, as `CAST(x AS STRING)`, `||`, `concat` and all functions of text see it.

::

    1.0 -> 1.0    1e16 -> 1e16    0.0000001 (decimal) -> 0.0000001    true -> true
    2020-01-31 13:45:06.5 -> 2020-01-31T13:45:06.500       with a zone: 2020-01-31T14:45:06.500+01:00, in UTC ...Z
    01:02:03.000250 -> 01:02:03.000250                     90 seconds -> 0 days 0 hours 1 mins 30 secs
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import array_of, arrow_of, numpy_of
from lance_core.expr.local_time import PER_SECOND, cast_ticks, to_local, without_zone, zone_of

pc: Any = compute  # the stubs know only some of what the kernels take
Value = Any


def is_list(kind: Any) -> bool:
    """Whether values of a type are lists: of any length, of very many items, or of one length."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def leaf_type(kind: Any) -> Any:
    """The type of what lists within lists hold in the end; of anything else its own."""
    return leaf_type(kind.value_type) if is_list(kind) else kind


def with_leaf(kind: Any, leaf: pa.DataType) -> Any:
    """Lists of the same shape, which hold another type in the end."""
    if not is_list(kind):
        return leaf
    item = with_leaf(kind.value_type, leaf)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)


def text_of(value: Value, target: pa.DataType) -> Value | None:
    """The values as text of a type; None for a type whose text is Arrow's own."""
    writer = _writer(value.type)
    if writer is None:
        return None
    if isinstance(value, pa.Scalar):
        return writer(array_of([value.as_py()], value.type) if _is_plain(value.type) else _one(value)).cast(target)[0]
    return writer(value).cast(target)


def _is_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_temporal(kind)


def _one(value: Value) -> Value:
    """An array of one scalar; Python has no value for some points in time."""
    return pa.repeat(value, 1) if value.is_valid else pa.nulls(1, value.type)


def _writer(kind: pa.DataType) -> Callable[[Value], Value] | None:
    types = pa.types
    if types.is_floating(kind):
        return lambda array: pa.array([float_text(item, kind) for item in array.to_pylist()], pa.string())
    if types.is_decimal(kind):
        return lambda array: pa.array([decimal_text(item) for item in array.to_pylist()], pa.string())
    if types.is_timestamp(kind):
        return _stamps
    if types.is_date64(kind):
        return lambda array: _stamps(array.cast(pa.timestamp("ms")))
    if types.is_date32(kind):
        return lambda array: _years(pc.cast(array, pa.string()))
    if types.is_time(kind):
        return lambda array: _fractions(pc.cast(array, pa.string()))
    if types.is_duration(kind):
        return lambda array: pa.array(
            [_duration(item, PER_SECOND[kind.unit]) for item in array.cast(pa.int64()).to_pylist()], pa.string()
        )
    if is_list(kind):
        return _lists
    return None


def _stamps(array: Value) -> Value:
    local = to_local(array)
    texts = _fractions(_years(pc.cast(local, pa.string())))
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    if zone_of(array.type) is None:
        return texts
    return pc.binary_join_element_wise(texts, _offsets(array, local), "")


def _offsets(array: Value, local: Value) -> Value:
    """How far each local time is ahead of UTC: Z, +01:00."""
    unit = PER_SECOND[array.type.unit]
    utc = cast_ticks(without_zone(array), pa.int64()).fill_null(0)
    ahead = numpy_of(cast_ticks(local, pa.int64()).fill_null(0), may_copy=True) - numpy_of(utc, may_copy=True)
    found, where = np.unique(ahead // unit, return_inverse=True)
    texts = array_of([_offset_text(int(seconds)) for seconds in found.tolist()], pa.string())
    return texts.take(arrow_of(where.astype(np.int64)))


def _offset_text(seconds: int) -> str:
    if not seconds:
        return "Z"
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def _fractions(texts: Value) -> Value:
    """None, three, six or nine digits: as few as say the value."""
    return pc.replace_substring_regex(texts, r"(?:\.|(\.(?:\d{3})+?))(?:000)+$", r"\1")


def _years(texts: Value) -> Value:
    """Years beyond 9999 have a sign."""
    return pc.replace_substring_regex(texts, r"^(\d{5,}-)", r"+\1")


def _duration(ticks: int | None, per_second: int) -> str | None:
    if ticks is None:
        return None
    sign, size = ("-" if ticks < 0 else ""), abs(ticks)
    seconds, rest = divmod(size, per_second)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{'-' if number and sign else ''}{number} {name}" for number, name in ((days, "days"), (hours, "hours"),
             (minutes, "mins"))]  # fmt: skip
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}}" if digits else ""
    return f"{' '.join(parts)} {sign if seconds or rest else ''}{seconds}{fraction} secs"


def _lists(array: Value) -> Value:
    rows: list[str | None] = []
    for row in range(len(array)):
        items = array[row].values
        if items is None:
            rows.append(None)
            continue
        texts = text_of(items, pa.string())
        found = pc.cast(items, pa.string()) if texts is None else texts
        rows.append(f"[{', '.join('' if item is None else item for item in found.to_pylist())}]")
    return pa.array(rows, pa.string())


def decimal_text(value: Decimal | None) -> str | None:
    """A decimal with all digits of its scale, never with an exponent."""
    return None if value is None else format(value, "f")


def float_text(value: float | None, kind: pa.DataType) -> str | None:
    """The shortest text that means a number of a type; None: null. Halves as 1 and without an exponent."""
    if value is None:
        return None
    if pa.types.is_float16(kind) or not math.isfinite(value):
        return plain_text(np.float32(value))
    is_double = pa.types.is_float64(kind)
    sign, digits, power = Decimal(repr(value) if is_double else str(np.float32(value))).normalize().as_tuple()
    text = "".join(map(str, digits))
    point, minus = len(text) + int(power), "-" * sign
    most, least = (16, -5) if is_double else (13, -6)
    if value == 0:
        return minus + "0.0"
    if len(text) <= point <= most:
        return f"{minus}{text.ljust(point, '0')}.0"
    if 0 < point <= most:
        return f"{minus}{text[:point]}.{text[point:]}"
    if least < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[0]}{'.' * (len(text) > 1)}{text[1:]}e{point - 1}"


def plain_text(value: float | np.float32) -> str:
    """A number without an exponent, and without a point where it needs none."""
    if math.isnan(value):
        return "NaN"
    return str(np.format_float_positional(value, unique=True, trim="-")) if math.isfinite(value) else str(float(value))
