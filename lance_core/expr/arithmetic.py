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
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, plain, repeat
from lance_core.expr.number_functions import shift

pc: Any = compute  # the stubs know only some of what the kernels take


def calculate(op: str, left: Value, right: Value) -> Value:
    """`left op right` with op one of + - * / % || << >>. Raises FilterError for other types and for division by zero."""
    if op in ("<<", ">>"):
        return shift(op, left, right)
    first, second = plain(left), plain(right)
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
    first, second = _operands(op, first, second)
    return _KERNELS[op](first, second)


def _operands(op: str, left: Value, right: Value) -> tuple[Value, Value]:
    families = {family_of(left.type), family_of(right.type)}
    if families == {"int"}:
        return cast(left, pa.int64()), cast(right, pa.int64())
    if families == {"decimal"}:
        return left, right
    if families == {"decimal", "int"}:
        return _whole_as_decimal(left), _whole_as_decimal(right)
    if families <= {"int", "float", "decimal"}:
        return cast(left, pa.float64(), safe=False), cast(right, pa.float64(), safe=False)
    if op in "+-" and families <= {"timestamp", "duration", "date", "time"}:
        return _dates_as_stamps(left), _dates_as_stamps(right)
    raise FilterError(f"{left.type} {op} {right.type} is not a supported operation", cure="CAST one side.")


def _whole_as_decimal(value: Value) -> Value:
    return cast(value, pa.decimal128(20, 0)) if family_of(value.type) == "int" else value


def _dates_as_stamps(value: Value) -> Value:
    return cast(cast(value, pa.date32(), safe=False), pa.timestamp("us")) if family_of(value.type) == "date" else value


def _divide(left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type):
        return pc.divide(left, right)
    if pc.any(pc.equal(right, cast(constant(0, pa.int64()), right.type))).as_py():
        raise FilterError("division by zero", cure="Guard it: `nullif(x, 0)`.")
    return pc.divide(left, right)


def _modulo(left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type):
        return _float_modulo(left, right)
    quotient = _divide(left, right)
    whole = pc.trunc(quotient) if pa.types.is_decimal(quotient.type) else quotient
    return pc.subtract(left, pc.multiply(whole, right))


def _float_modulo(left: Value, right: Value) -> Value:
    rows = next((len(side) for side in (left, right) if not is_scalar(side)), 1)
    columns = [repeat(side, rows) if is_scalar(side) else side for side in (left, right)]
    with np.errstate(invalid="ignore"):
        result = np.fmod(*(numpy_of(column, may_copy=True) for column in columns))
    mask = numpy_of(pc.or_(columns[0].is_null(), columns[1].is_null()), may_copy=True)
    return arrow_of(result, pa.float64(), mask=mask)


def _concatenate(left: Value, right: Value) -> Value:
    for side in (left, right):
        if family_of(side.type) not in ("text", "null"):
            raise FilterError(f"|| concatenates strings, got {side.type}", cure="CAST it to string.")
    texts = [cast(side, pa.large_string()) for side in (left, right)]
    return pc.binary_join_element_wise(*texts, constant("", pa.large_string()), null_handling="emit_null")


def negate(value: Value) -> Value:
    """`-value`. Raises FilterError for what has no sign."""
    subject = plain(value)
    if family_of(subject.type) not in ("int", "float", "decimal", "duration", "null"):
        raise FilterError(f"-({subject.type}) is not a supported operation")
    return pc.negate(cast(subject, pa.int64()) if family_of(subject.type) in ("int", "null") else subject)


_KERNELS: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType(
    {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": _divide, "%": _modulo}
)
