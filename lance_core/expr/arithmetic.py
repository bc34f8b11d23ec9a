"""Arithmetic of SQL: whole numbers in 64 bits, division of whole numbers drops the fraction, null in, null out.

::

    7 / 2 -> 3      -7 / 2 -> -3      -4 % 3 -> -1      'a' || 'b' -> 'ab'      1 / 0 -> FilterError      1.0 / 0 -> inf
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, constant, numpy_of
from lance_core.errors import FilterError
from lance_core.expr import decimals
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, plain, repeat
from lance_core.expr.common_type import as_common, decimal_of
from lance_core.expr.compare import plain_pair
from lance_core.expr.local_time import to_zone, without_zone, zone_of
from lance_core.expr.number_functions import shift

pc: Any = compute  # the stubs know only some of what the kernels take


def calculate(op: str, left: Value, right: Value, *, bends: bool = True) -> Value:
    """`left op right` with op one of + - * / % || << >>. Raises FilterError for other types and for division by zero.

    With `bends` a constant takes the type of what stands beside it: that is a column.
    """
    if op in ("<<", ">>"):
        return shift(op, left, right, bends=bends)
    first, second = plain_pair(left, right) if bends else (plain(left), plain(right))
    if op == "||":
        return _concatenate(first, second)
    families = family_of(first.type), family_of(second.type)
    if "null" in families:
        # Typed nulls let the kernels find their signature; the result is null either way.
        other = second.type if families[0] == "null" else first.type
        target = pa.int64() if pa.types.is_null(other) else other
        first, second = (cast(side, target) if pa.types.is_null(side.type) else side for side in (first, second))
    if op == "-" and {family_of(first.type), family_of(second.type)} == {"date"}:
        days = [cast(cast(side, pa.date32(), safe=False), pa.int32()) for side in (first, second)]
        return pc.subtract(*(cast(side, pa.int64()) for side in days))
    if {family_of(first.type), family_of(second.type)} == {"date", "int"}:
        return _shifted_days(op, first, second)
    both = {family_of(first.type), family_of(second.type)}
    first, second = _operands(op, first, second, bends=bends)
    if op == "-" and both == {"date", "timestamp"}:
        return cast(pc.subtract(first, second), pa.duration("ns"))  # as for other results of dates and timestamps
    if pa.types.is_decimal(first.type) and pa.types.is_decimal(second.type):
        return decimals.calculate(op, first, second)
    made = _KERNELS[op](first, second)
    return cast(made, pa.float16(), safe=False) if _are_halves(left, right, bends=bends) else made


def _operands(op: str, left: Value, right: Value, *, bends: bool) -> tuple[Value, Value]:
    families = {family_of(left.type), family_of(right.type)}
    if families == {"int"}:
        if _are_unsigned(left, right, bends=bends):
            return cast(left, pa.uint64()), cast(right, pa.uint64())
        if _needs_decimals(left, right, bends=bends):
            return cast(left, decimal_of(pa.uint64())), cast(right, decimal_of(pa.uint64()))
        return cast(left, pa.int64()), cast(right, pa.int64())
    if families == {"decimal"} and left.type.bit_width != right.type.bit_width:
        first, second = as_common((left, right))
        return first, second
    if families <= {"decimal", "int"}:
        return _as_decimal(left, right, bends=bends), _as_decimal(right, left, bends=bends)
    if families <= {"int", "float", "decimal"}:
        kind = float_type(left, right, bends=bends)
        return cast(left, kind, safe=False), cast(right, kind, safe=False)
    if op in "+-" and families <= {"timestamp", "duration", "date", "time"}:
        first, second = _dates_as_stamps(left), _dates_as_stamps(right)
        zones = {zone_of(first.type), zone_of(second.type)}
        if op == "-" and families <= {"timestamp", "date"} and len(zones) > 1:
            return without_zone(in_zone(first, zones)), without_zone(in_zone(second, zones))
        return first, second
    raise FilterError(f"{left.type} {op} {right.type} is not a supported operation", cure="CAST one side.")


def in_zone(value: Value, zones: set[str | None]) -> Value:
    """What has no zone, as the local time of the one that is beside it."""
    zone = next(iter(zones - {None}))
    return value if zone_of(value.type) is not None or zone is None else to_zone(value, zone)


def _shifted_days(op: str, left: Value, right: Value) -> Value:
    """A date so many days later or earlier."""
    if op not in "+-" or (op == "-" and family_of(left.type) == "int"):
        raise FilterError(f"{left.type} {op} {right.type} is not a supported operation", cure="CAST one side.")
    for side in (left, right):
        if family_of(side.type) == "int" and is_scalar(side):
            raise FilterError(f"{left.type} {op} {right.type}", cure=f"Write the days as INTERVAL '{side.as_py()}' DAY.")
    dates = next(side.type for side in (left, right) if family_of(side.type) == "date")
    days = [
        cast(cast(side, pa.date32(), safe=False), pa.int32()) if side.type == dates else cast(side, pa.int64())
        for side in (left, right)
    ]
    return cast(cast(cast(_KERNELS[op](*(cast(side, pa.int64()) for side in days)), pa.int32()), pa.date32()), dates)


def _are_halves(left: Value, right: Value, *, bends: bool) -> bool:
    """Whether half floats meet half floats, whole numbers, or a constant that takes their type: each step is one."""
    floats = {side.type for side in (left, right) if pa.types.is_floating(side.type)}
    if bends and len(floats) > 1:
        floats = {side.type for side in (left, right) if pa.types.is_floating(side.type) and not is_scalar(side)}
    return floats == {pa.float16()} and not any(pa.types.is_decimal(side.type) for side in (left, right))


def _are_unsigned(left: Value, right: Value, *, bends: bool) -> bool:
    """Whether 64-bit numbers without a sign meet others, or a constant that has none either."""
    if pa.uint64() not in (left.type, right.type):
        return False
    return all(
        pa.types.is_unsigned_integer(side.type) or (bends and is_scalar(side) and (side.as_py() or 0) >= 0)
        for side in (left, right)
    )


def _needs_decimals(left: Value, right: Value, *, bends: bool) -> bool:
    """Whether 64-bit numbers without a sign meet numbers that have one."""
    if pa.uint64() not in (left.type, right.type):
        return False
    return left.type != right.type and any(
        pa.types.is_signed_integer(side.type) and not (bends and is_scalar(side)) for side in (left, right)
    )


def _as_decimal(value: Value, other: Value, *, bends: bool = False) -> Value:
    """A whole number as a decimal; a constant as one of the column beside it, where it fits."""
    if family_of(value.type) != "int":
        return value
    if bends and is_scalar(value) and not is_scalar(other) and pa.types.is_decimal(other.type):
        try:
            return cast(cast(value, pa.decimal128(20, 0)), other.type)
        except pa.ArrowInvalid:
            pass
    return cast(cast(value, pa.decimal128(20, 0)), decimal_of(value.type))


def float_type(left: Value, right: Value, *, bends: bool) -> Any:
    """The type in which floats are reckoned: that of the column beside a constant, else the wider one."""
    floats = [side for side in (left, right) if pa.types.is_floating(side.type)]
    columns = [side for side in (left, right) if not is_scalar(side)]
    if bends and len(columns) == 1 and pa.types.is_floating(columns[0].type):
        return columns[0].type
    return max((side.type for side in floats), key=lambda kind: kind.bit_width)


def fits(value: Value, kind: Any) -> bool:
    """Whether a constant float is exactly one of a type of floats, as 7.0 is of each and 0.1 of none but its own."""
    if not (is_scalar(value) and pa.types.is_floating(value.type) and pa.types.is_floating(kind)):
        return False
    number = value.as_py()
    return number is None or number != number or cast(cast(value, kind, safe=False), value.type, safe=False) == value


def _dates_as_stamps(value: Value) -> Value:
    return cast(cast(value, pa.date32(), safe=False), pa.timestamp("us")) if family_of(value.type) == "date" else value


def _divide(left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type):
        return pc.divide(left, right)
    is_zero = pc.equal(right, cast(constant(0, pa.int64()), right.type))
    if pc.any(pc.and_(is_zero, pc.is_valid(left))).as_py():
        raise FilterError("division by zero", cure="Guard it: `nullif(x, 0)`.")
    return pc.divide(left, pc.if_else(is_zero, constant(None, right.type), right))


def _modulo(left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type):
        return _float_modulo(left, right)
    return pc.subtract(left, pc.multiply(_divide(left, right), right))


def _float_modulo(left: Value, right: Value) -> Value:
    rows = next((len(side) for side in (left, right) if not is_scalar(side)), 1)
    columns = [repeat(side, rows) if is_scalar(side) else side for side in (left, right)]
    with np.errstate(invalid="ignore"):
        result = np.fmod(*(numpy_of(column, may_copy=True) for column in columns))
    mask = numpy_of(pc.or_(columns[0].is_null(), columns[1].is_null()), may_copy=True)
    made = arrow_of(result, columns[0].type, mask=mask)
    return made[0] if is_scalar(left) and is_scalar(right) else made


def _concatenate(left: Value, right: Value) -> Value:
    if "text" not in (family_of(left.type), family_of(right.type)) and {left.type, right.type} != {pa.null()}:
        raise FilterError(f"{left.type} || {right.type}: one side must be a string", cure="CAST it to string.")
    kind = pa.large_string() if pa.large_string() in (left.type, right.type) else pa.string()
    texts = [cast(side, kind) for side in (left, right)]
    return pc.binary_join_element_wise(*texts, constant("", kind), null_handling="emit_null")


def negate(value: Value) -> Value:
    """`-value`. Raises FilterError for what has no sign."""
    subject = plain(value)
    if family_of(subject.type) not in ("int", "float", "decimal", "duration", "null"):
        raise FilterError(f"-({subject.type}) is not a supported operation")
    made = pc.negate(cast(subject, pa.int64()) if family_of(subject.type) in ("int", "null") else subject)
    return cast(made, pa.float16()) if pa.types.is_float16(value.type) else made


_KERNELS: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType(
    {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": _divide, "%": _modulo}
)
