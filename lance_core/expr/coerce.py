"""Convert the two sides of an operation to one type by the rules of SQL, without losing a digit.

::

    int32 column, 3000000000      -> both decimal: the answer is "no row", not an error
    float column, 0.1             -> the constant as float, as the official library does
    timestamp[us] column, date    -> both timestamp
    string column, 3              -> FilterError

Values are `pa.Array` or `pa.Scalar`; a scalar is a constant and bends to the type of the column.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant, no_values
from lance_core.errors import FilterError
from lance_core.expr import decimals
from lance_core.expr.ast import Instant
from lance_core.expr.literals import instant_or_none, parse_date, parse_instant, parse_time
from lance_core.expr.local_time import cast_ticks, to_zone, with_zone, without_zone, zone_of
from lance_core.expr.text_casts import cast_text
from lance_core.expr.value_text import is_list, text_of

pc: Any = compute  # the stubs know only some of what the kernels take

Value = Any
"""A `pa.Array`, or a `pa.Scalar` for a constant."""
_INT_DECIMAL = pa.decimal128(38, 0)


def family_of(data_type: pa.DataType) -> str:
    """The family a type compares within: a name of `_FAMILIES`, or `nested`."""
    for name, test in _FAMILIES:
        if test(data_type):
            return name
    return "nested"


def _is_text(t: pa.DataType) -> bool:
    return bool(pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view())


def _is_bytes(t: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(t) or types.is_large_binary(t) or types.is_fixed_size_binary(t) or t == pa.binary_view())


_FAMILIES: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("int", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("text", _is_text),
    ("bytes", _is_bytes),
    ("bool", pa.types.is_boolean),
    ("date", pa.types.is_date),
    ("timestamp", pa.types.is_timestamp),
    ("time", pa.types.is_time),
    ("duration", pa.types.is_duration),
    ("null", pa.types.is_null),
)


def is_scalar(value: Value) -> bool:
    """Whether a value is a constant."""
    return isinstance(value, pa.Scalar)


def repeat(value: Value, count: int) -> Value:
    """A constant as a column of `count` rows."""
    if not count:
        return no_values(value.type)
    return pc.cast(pa.nulls(count), value.type) if not value.is_valid else _repeat(value, count)


_repeat: Any = pa.repeat


def cast(value: Value, target: pa.DataType, *, safe: bool = True) -> Value:
    """Arrow's cast for arrays and scalars alike. Raises Arrow's errors."""
    if value.type == target:
        return value
    if _is_text(target):
        made = text_of(value, target)
        if made is not None:
            return made
    if zone_of(target) != zone_of(value.type) and pa.types.is_timestamp(target):
        return _cast_zone(value, target, safe=safe)
    if pa.types.is_decimal(value.type) and pa.types.is_floating(target):
        return decimals.to_float(value, target)
    if isinstance(value, pa.Scalar):
        return pc.cast(_repeat(value, 1), target, safe=safe)[0] if value.is_valid else constant(None, target)
    return pc.cast(value, target, safe=safe)


def _cast_zone(value: Value, target: Any, *, safe: bool) -> Value:
    """To a timestamp of another zone, or of none: what has no zone is local time of the zone it gets."""
    if not pa.types.is_timestamp(value.type):
        # Text that names a zone means that instant; other text, dates and numbers have none.
        return cast(cast(value, pa.timestamp(target.unit), safe=safe), target, safe=safe)
    scaled = cast(value, pa.timestamp(target.unit, zone_of(value.type)), safe=safe)
    if zone_of(value.type) is not None and zone_of(target) is not None:
        return cast_ticks(scaled, target)
    return without_zone(scaled) if zone_of(target) is None else to_zone(scaled, target.tz)


def plain(value: Value) -> Value:
    """Dictionary, run-end and view types as the plain type they stand for; half floats as float32."""
    t = value.type
    if pa.types.is_dictionary(t):
        return plain(cast(value, t.value_type))
    if pa.types.is_run_end_encoded(t):
        return plain(pc.run_end_decode(value) if not is_scalar(value) else value)
    if t == pa.string_view():
        return cast(value, pa.large_string())
    if t == pa.binary_view():
        return cast(value, pa.large_binary())
    if pa.types.is_float16(t):
        return cast(value, pa.float32())
    if isinstance(value, pa.ExtensionArray):
        return plain(value.storage)
    return value


def plain_item(value: Value) -> Value:
    """The same, but half floats stay: what lists of them hold, and what is made of them alone."""
    return value if pa.types.is_float16(value.type) else plain(value)


def unify(left: Value, right: Value) -> tuple[Value, Value]:
    """Both values as one comparable type. Raises FilterError when their families do not compare."""
    if left.type == right.type:
        return left, right
    families = family_of(left.type), family_of(right.type)
    if families[0] == "null":
        return _null_like(left, right.type), right
    if families[1] == "null":
        return left, _null_like(right, left.type)
    rule = _RULES.get(families)
    if rule is not None:
        return rule(left, right)
    mirrored = _RULES.get((families[1], families[0]))
    if mirrored is not None:
        second, first = mirrored(right, left)
        return first, second
    raise FilterError(f"cannot compare {left.type} with {right.type}", cure="CAST one side to the type of the other.")


def as_text(value: Value, what: str) -> Value:
    """The text of any value that has one, for functions that take anything for a text. Raises FilterError."""
    kind = value.type
    if (
        pa.types.is_fixed_size_binary(kind)
        or pa.types.is_fixed_size_list(kind)
        or (pa.types.is_nested(kind) and not is_list(kind))
    ):
        raise FilterError(f"{what} takes a text here, got {kind}", cure="CAST it to string.")
    if pa.types.is_float16(kind):
        return cast(value, pa.string())
    subject = plain(value)
    return subject if _is_text(subject.type) else cast(subject, pa.string())


def _null_like(value: Value, target: pa.DataType) -> Value:
    null = constant(None, target)
    return null if is_scalar(value) else repeat(null, len(value))


def _ints(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(left) != is_scalar(right):
        constant, other = (left, right) if is_scalar(left) else (right, left)
        fitted = _fit_int(constant.as_py(), other.type)
        if fitted is not None:
            return (fitted, right) if is_scalar(left) else (left, fitted)
    elif pa.uint64() not in (left.type, right.type):
        return cast(left, pa.int64()), cast(right, pa.int64())
    return cast(left, _INT_DECIMAL), cast(right, _INT_DECIMAL)


def _fit_int(number: int | None, target: pa.DataType) -> pa.Scalar[Any] | None:
    try:
        return constant(number, target)
    except (pa.ArrowInvalid, OverflowError):
        return None


def _int_float(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right):
        number = right.as_py()
        if number is not None and math.isfinite(number) and number == int(number) and abs(number) < 2**63:
            return unify(left, constant(int(number), pa.int64()))
    if is_scalar(left):
        number = left.as_py()
        exact = number is None or float(np.float32(number)) == number
        target = right.type if exact else pa.float64()
        return cast(left, target, safe=False), cast(right, target)
    return cast(left, pa.float64(), safe=False), cast(right, pa.float64())


def _floats(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right) and not is_scalar(left):
        return left, cast(right, left.type, safe=False)
    if is_scalar(left) and not is_scalar(right):
        return cast(left, right.type, safe=False), right
    return cast(left, pa.float64()), cast(right, pa.float64())


def _decimal_int(left: Value, right: Value) -> tuple[Value, Value]:
    return unify(left, cast(right, pa.decimal128(20, 0)))


def _decimal_float(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right):
        number = right.as_py()
        if number is not None and math.isfinite(number):
            # repr is the shortest text that means this float: 0.1 compares as 0.1, not as 0.1000000000000000055.
            return unify(left, constant(Decimal(repr(number))))
    return cast(left, pa.float64()), cast(right, pa.float64())


def _decimals(left: Value, right: Value) -> tuple[Value, Value]:
    scale = max(left.type.scale, right.type.scale)
    digits = max(left.type.precision - left.type.scale, right.type.precision - right.type.scale) + scale
    target = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
    return cast(left, target), cast(right, target)


def _texts(left: Value, right: Value) -> tuple[Value, Value]:
    return _widest(left, right, pa.large_string())


def _bytes(left: Value, right: Value) -> tuple[Value, Value]:
    return _widest(left, right, pa.large_binary())


def _widest(left: Value, right: Value, wide: pa.DataType) -> tuple[Value, Value]:
    if is_scalar(right) and not is_scalar(left) and not pa.types.is_fixed_size_binary(left.type):
        return left, cast(right, left.type)
    return cast(left, wide), cast(right, wide)


def _bytes_text(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right):
        raise FilterError(f"cannot compare {left.type} with the text {right.as_py()!r}", cure="Write the bytes as X'00ff'.")
    return _bytes(left, cast(cast(right, pa.large_string()), pa.large_binary()))


def _number_text(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right):
        raise FilterError(
            f"cannot compare {left.type} with the text {right.as_py()!r}", cure="Write the number without quotes."
        )
    read = cast_text(cast(right, pa.large_string()), left.type, safe=False)
    return unify(left, cast(right, left.type) if read is None else read)


def _date_int(left: Value, right: Value) -> tuple[Value, Value]:
    if is_scalar(right):
        raise FilterError(f"cannot compare {left.type} with {right.as_py()}", cure="Write the date as DATE '2020-01-31'.")
    return unify(left, days_of(right, left.type))


def days_of(value: Value, target: pa.DataType) -> Value:
    """Whole numbers as dates: days since 1970, or milliseconds where a date64 is wanted of 64 bits."""
    if value.type == pa.int64() and target == pa.date64():
        return cast(value, target)
    return cast(cast(cast(value, pa.int32()), pa.date32()), target)


def _dates(left: Value, right: Value) -> tuple[Value, Value]:
    if left.type == right.type == pa.date64():
        return left, right
    return cast(left, pa.date32(), safe=False), cast(right, pa.date32(), safe=False)


def _date_timestamp(left: Value, right: Value) -> tuple[Value, Value]:
    return unify(cast(cast(left, pa.date32(), safe=False), pa.timestamp("s")), without_zone(right))


def _timestamps(left: Value, right: Value) -> tuple[Value, Value]:
    zones = zone_of(left.type), zone_of(right.type)
    if zones[0] is None and zones[1] is not None:
        return _timestamps(to_zone(left, zones[1]), right)
    if zones[1] is None and zones[0] is not None:
        return _timestamps(left, to_zone(right, zones[0]))
    first, second = _ticks(left), _ticks(right)
    per_second = max(_PER_SECOND[left.type.unit], _PER_SECOND[right.type.unit])
    factors = per_second // _PER_SECOND[left.type.unit], per_second // _PER_SECOND[right.type.unit]
    if factors == (1, 1):
        return first, second
    scaled = _scale_constant(first, second, factors)
    # 2**63 seconds as nanoseconds need 28 digits: far dates stay right where 64 bits would overflow.
    return scaled or (_scale(first, factors[0]), _scale(second, factors[1]))


def _scale_constant(left: Value, right: Value, factors: tuple[int, int]) -> tuple[Value, Value] | None:
    """Bring the constant side to the column's unit when that is exact; the column is not touched."""
    if is_scalar(left) == is_scalar(right):
        return None
    fixed, mine, other = (left, *factors) if is_scalar(left) else (right, *reversed(factors))
    ticks = fixed.as_py()
    if ticks is not None:
        quotient, rest = divmod(ticks * mine, other)
        if rest or abs(quotient) >= 2**63:
            return None
        ticks = quotient
    fitted = constant(ticks, pa.int64())
    return (fitted, right) if is_scalar(left) else (left, fitted)


_STAMPS = {"s": pa.timestamp("s"), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "ns": pa.timestamp("ns")}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _ticks(value: Value) -> Value:
    if isinstance(value, pa.Scalar):
        return cast(value, pa.int64())
    return value.cast(pa.int64())


def _scale(value: Value, factor: int) -> Value:
    wide = cast(value, pa.decimal128(19, 0))
    if factor == 1:
        return cast(wide, _INT_DECIMAL)
    return cast(pc.multiply(wide, constant(Decimal(factor))), _INT_DECIMAL)


def _times(left: Value, right: Value) -> tuple[Value, Value]:
    return cast(left, pa.time64("ns")), cast(right, pa.time64("ns"))


def _durations(left: Value, right: Value) -> tuple[Value, Value]:
    return cast(left, pa.duration("ns")), cast(right, pa.duration("ns"))


def _from_text(parse: Callable[[str], pa.Scalar[Any]]) -> Callable[[Value, Value], tuple[Value, Value]]:
    def rule(left: Value, right: Value) -> tuple[Value, Value]:
        if not is_scalar(right):
            raise FilterError(f"cannot compare {left.type} with {right.type}", cure="CAST the text column.")
        text = right.as_py()
        return unify(left, parse(text) if text is not None else constant(None, left.type))

    return rule


def instant_of(instant: Instant) -> pa.Scalar[Any]:
    """A timestamp; in UTC where the text named a zone."""
    found = instant_scalar(instant.nanoseconds)
    return found if instant.zone is None else with_zone(found, "UTC")


def instant_scalar(nanoseconds: int) -> pa.Scalar[Any]:
    """A UTC timestamp in the finest unit that holds it."""
    for unit, factor in (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        ticks, rest = divmod(nanoseconds, factor)
        if -(2**63) <= ticks < 2**63 and (rest == 0 or unit == "us"):
            return constant(ticks, pa.int64()).cast(_STAMPS[unit])
    raise FilterError("a timestamp is out of the range of 64-bit seconds")


_RULES: dict[tuple[str, str], Callable[[Value, Value], tuple[Value, Value]]] = {
    ("int", "int"): _ints,
    ("int", "float"): _int_float,
    ("float", "float"): _floats,
    ("decimal", "int"): _decimal_int,
    ("decimal", "float"): _decimal_float,
    ("decimal", "decimal"): _decimals,
    ("text", "text"): _texts,
    ("bytes", "bytes"): _bytes,
    ("bytes", "text"): _bytes_text,
    ("int", "text"): _number_text,
    ("float", "text"): _number_text,
    ("decimal", "text"): _number_text,
    ("date", "int"): _date_int,
    ("date", "date"): _dates,
    ("date", "timestamp"): _date_timestamp,
    ("timestamp", "timestamp"): _timestamps,
    ("time", "time"): _times,
    ("duration", "duration"): _durations,
    ("date", "text"): _from_text(lambda text: _date_or_instant(text)),
    ("timestamp", "text"): _from_text(lambda text: instant_of(parse_instant(text))),
    ("time", "text"): _from_text(lambda text: constant(parse_time(text), pa.int64()).cast(pa.time64("ns"))),
}


def _date_or_instant(text: str) -> pa.Scalar[Any]:
    """A day, or a point in time that no day is equal to."""
    days, found = parse_date(text), instant_or_none(text)
    if found is not None and found.nanoseconds % (86_400 * 10**9):
        return instant_scalar(found.nanoseconds)
    return constant(days, pa.int32()).cast(pa.date32())
