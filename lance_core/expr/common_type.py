"""The one type that several values have as results: of coalesce, CASE, greatest, a list. Comparing them is `coerce`.

::

    int8, int64 -> int64        int32, uint32 -> int64       int64, uint64 -> decimal128(20, 0)      int64, double -> double
    decimal(10, 2), int64 -> decimal(22, 2)                  decimal(10, 2), double -> decimal(30, 15)
    date, timestamp -> timestamp[ns]                         timestamp[s], timestamp[us] -> timestamp[us]
    timestamp, timestamp with a zone -> with the zone        text, number -> number

A constant has the type of its own: 1 is int64, 0.5 is double. Nothing is null's own type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, days_of, family_of, plain
from lance_core.expr.value_text import is_list

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_OF_FLOAT = {32: pa.decimal128(14, 7), 64: pa.decimal128(30, 15)}
_UNITS = ("s", "ms", "us", "ns")


def common_type(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The type that values of all these types have. Raises FilterError when there is none."""
    found: pa.DataType = pa.null()
    for kind in kinds:
        both = _common(found, kind)
        if both is None:
            raise FilterError(f"{found} and {kind} have no type in common", cure="CAST one to the type of the other.")
        found = both
    return found


def compared_type(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The type in which values of these types compare: greatest, least, nullif. Raises FilterError.

    Beyond `common_type` a text is read as the date, the time or the bytes beside it, and a whole number counts days.
    """
    found: pa.DataType = pa.null()
    for kind in kinds:
        both = _compared(found, kind) or _common(found, kind)
        if both is None:
            raise FilterError(f"{found} and {kind} do not compare", cure="CAST one to the type of the other.")
        found = both
    return found


def _compared(left: Any, right: Any) -> Any:
    left, right = (each.value_type if pa.types.is_dictionary(each) else each for each in (left, right))
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return pa.timestamp(max(left.unit, right.unit, key=_UNITS.index), left.tz or right.tz)  # of two zones the first
    kinds = {family_of(each): each for each in (left, right)}
    if "text" in kinds and len(kinds) == 2:
        other = kinds[next(family for family in kinds if family != "text")]
        if pa.types.is_timestamp(other):
            return pa.timestamp("ns", other.tz)
        if family_of(other) == "bytes":
            return pa.large_binary() if pa.large_binary() == other or kinds["text"] == pa.large_string() else pa.binary()
        return other if family_of(other) in ("date", "time") else None
    return _days(left, right)


def _days(left: pa.DataType, right: pa.DataType) -> Any:
    """The type of dates beside whole numbers that count days: in comparisons, and in lists."""
    kinds = {family_of(each): each for each in (left, right)}
    if set(kinds) == {"int", "date"} and kinds["int"] in (pa.int32(), pa.int64()):
        return kinds["date"]
    return None


def shown_type(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The type in which nvl and nvl2 give one of several values: as text, where one is a text or nothing is in common."""
    given = [*kinds]
    families = {family_of(each.value_type if pa.types.is_dictionary(each) else each) for each in given} - {"null"}
    if "text" in families and len(families) > 1:
        return pa.large_string() if pa.large_string() in given else pa.string()
    try:
        return common_type(given)
    except FilterError:
        return pa.string()


def as_common(values: Iterable[Value], *, compared: bool = False) -> list[Value]:
    """The values, all of their common type, or of the one in which they compare. Raises FilterError."""
    given = [*values]
    kind = (compared_type if compared else common_type)(value.type for value in given)
    return [cast_common(value, kind) for value in given]


def cast_common(value: Value, kind: pa.DataType) -> Value:
    """A value as a common type, halves of digits rounded as by a CAST."""
    from lance_core.expr.casts import cast_as

    if value.type == kind:
        return value
    subject = value if pa.types.is_float16(value.type) and family_of(kind) == "text" else plain(value)
    if family_of(subject.type) == "int" and pa.types.is_date(kind):
        return days_of(subject, kind)
    return cast_as(subject, kind, safe=False)


def integer_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The integer type that holds the values of two; None: there is none."""
    if left == right:
        return left
    if (left in _SIGNED) == (right in _SIGNED):
        return max(left, right, key=lambda each: each.bit_width)
    signed, unsigned = (left, right) if left in _SIGNED else (right, left)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    return next((each for each in _SIGNED if each.bit_width == width), None)


def decimal_of(kind: pa.DataType) -> Any:
    """A number's type as the decimal type that holds it; None: there is none."""
    if pa.types.is_decimal(kind):
        return kind
    if pa.types.is_integer(kind):
        return pa.decimal128(_DIGITS[kind.bit_width], 0)
    return _OF_FLOAT.get(kind.bit_width) if pa.types.is_floating(kind) else None


def decimal_type(precision: int, scale: int, *, wide: bool) -> pa.DataType:
    """A decimal type; digits that its kind cannot have are cut off on the left."""
    return pa.decimal256(min(precision, 76), scale) if wide else pa.decimal128(min(precision, 38), scale)


def _common(left: Any, right: Any) -> Any:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    for kinds in ((left, right), (right, left)):
        if pa.types.is_dictionary(kinds[0]):
            return _common(*(each.value_type if each == kinds[0] else each for each in (left, right)))
    families = {family_of(left), family_of(right)}
    if families <= {"int", "float", "decimal"}:
        return _numbers(left, right, families)
    if "text" in families:
        others = families - {"text"}
        if not others:
            return pa.large_string() if pa.large_string() in (left, right) else pa.string()
        number = right if family_of(left) == "text" else left
        return number if others <= {"int", "float", "decimal"} else None
    if families <= {"date", "timestamp", "time", "duration"}:
        return _times(left, right, families)
    if families == {"bytes"}:
        return pa.large_binary() if pa.large_binary() in (left, right) else pa.binary()
    return _lists(left, right)


def _numbers(left: Any, right: Any, families: set[str]) -> Any:
    if families == {"int"}:
        return integer_type(left, right) or pa.decimal128(20, 0)
    if "decimal" not in families:
        return max((each for each in (left, right) if pa.types.is_floating(each)), key=lambda each: each.bit_width)
    first, second = decimal_of(left), decimal_of(right)
    if first is None or second is None:
        return pa.float64()
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return decimal_type(whole + scale, scale, wide=256 in (first.bit_width, second.bit_width))


def _times(left: Any, right: Any, families: set[str]) -> Any:
    if families == {"date"}:
        return pa.date64()
    if families == {"date", "timestamp"}:
        return pa.timestamp("ns")
    if len(families) > 1:
        return None
    unit = max(left.unit, right.unit, key=_UNITS.index)
    if families == {"timestamp"}:
        return pa.timestamp(unit, right.tz or left.tz)
    if families == {"duration"}:
        return pa.duration(unit)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _lists(left: Any, right: Any) -> Any:
    types = pa.types
    if not (is_list(left) and is_list(right)):
        return None
    item = _common(left.value_type, right.value_type) or _days(left.value_type, right.value_type)
    if item is None:
        return None
    return pa.large_list(item) if types.is_large_list(left) or types.is_large_list(right) else pa.list_(item)
