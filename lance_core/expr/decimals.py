"""Decimals: what they become as floats and back, and their arithmetic, digit for digit as the official library has it.

::

    99.99 <-> 99.99 exactly                100.125 as decimal(10, 2) -> 100.13, halves away from zero
    decimal(10, 2) + decimal(5, 3) -> decimal(12, 3)         decimal(10, 2) * decimal(5, 3) -> decimal(16, 5)
    decimal(10, 2) / decimal(10, 2) -> decimal(16, 6), what is beyond the sixth digit cut off

Beyond 38 digits (76 where one side has more) digits of a result type are cut off on the left; a value that needs them is an
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from itertools import repeat as forever
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import FilterError

pc: Any = compute  # the stubs know only some of what the kernels take
Value = Any
_ALL_DIGITS = Context(prec=200)


def to_float(value: Value, target: pa.DataType) -> Value:
    """Decimals as floats: the digits divided by their power of ten."""
    if isinstance(value, pa.Scalar):
        return to_float(_array([value]), target)[0]
    kind = value.type
    if kind.bit_width == 128 and 0 <= kind.scale <= 22 and len(value):
        words = _words(value)
        low, high = words[:, 0], words[:, 1]
        if bool(((high == 0) & (low >= 0) | (high == -1) & (low < 0)).all()):
            found = low.astype(np.float64) / 10.0**kind.scale
            made = (
                arrow_of(found) if not value.null_count else arrow_of(found, mask=numpy_of(value.is_null(), may_copy=True))
            )
            return made.cast(target, safe=False)
    power = 10.0 ** abs(kind.scale)
    nearest = float if kind.bit_width == 128 else _leading
    floats = [
        None if item is None else nearest(item) / power if kind.scale >= 0 else nearest(item) * power
        for item in digits_of(value)
    ]
    return pa.array(floats, pa.float64()).cast(target, safe=False)


def _leading(digits: int) -> float:
    """A whole number of up to 256 bits as a double: of its leading 64 bits, what follows is cut off downwards."""
    spare = 255 - (digits if digits >= 0 else ~digits).bit_length()
    return math.ldexp(float((digits << spare) >> 192), 192 - spare)


def _words(value: Value) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The two 64-bit halves of each decimal, the lower first; zero under nulls."""
    filled = value.fill_null(Decimal(0).scaleb(-value.type.scale)) if value.null_count else value
    buffer = filled.buffers()[1]
    return np.frombuffer(buffer, np.int64, 2 * len(filled), 16 * filled.offset).reshape(-1, 2)


def _array(values: Sequence[Value]) -> Value:
    return pa.array([each.as_py() for each in values], values[0].type)


def digits_of(value: Value) -> list[int | None]:
    """Decimals without their point: 1.50 -> 150."""
    scale = value.type.scale
    return [None if item is None else int(item.scaleb(scale, _ALL_DIGITS)) for item in value.to_pylist()]


def of_digits(digits: Sequence[int | None], target: Any) -> Value:
    """Decimals of a type from their digits. FilterError for more of them than the type has."""
    most = 10**target.precision
    for item in digits:
        if item is not None and abs(item) >= most:
            raise FilterError(f"{item} without its point does not fit {target}", cure="CAST to a decimal of more digits.")
    scale = target.scale
    return pa.array([None if item is None else Decimal(item).scaleb(-scale, _ALL_DIGITS) for item in digits], target)


def from_float(value: Value, target: Any) -> Value:
    """Floats as decimals, halves away from zero. FilterError for NaN, infinities, and more digits than the type has."""
    if isinstance(value, pa.Scalar):
        return from_float(_array([value]), target)[0]
    power = 10.0**target.scale
    found: list[int | None] = []
    for item in value.to_pylist():
        if item is None:
            found.append(None)
            continue
        scaled = np.float64(item) * power
        if not np.isfinite(scaled):
            raise FilterError(f"{item} does not fit {target}", cure="Use TRY_CAST for null instead.")
        found.append(_away(float(scaled)))
    return of_digits(found, target)


def _away(number: float) -> int:
    whole = int(number)
    return whole if abs(number - whole) < 0.5 else whole + 1 if number > 0 else whole - 1


def rescale(value: Value, target: Any) -> Value:
    """Decimals of another precision and scale, halves away from zero."""
    if value.type.scale <= target.scale:
        return pc.cast(value, target) if not isinstance(value, pa.Scalar) else pc.cast(_array([value]), target)[0]
    if isinstance(value, pa.Scalar):
        return rescale(_array([value]), target)[0]
    step = 10 ** (value.type.scale - target.scale)
    return of_digits([None if item is None else _rounded(item, step) for item in digits_of(value)], target)


def to_tens(value: Value, zeros: int, target: Any) -> Value:
    """Decimals rounded to tens (one zero), hundreds (two) and so on, halves away from zero, not digit by digit."""
    if isinstance(value, pa.Scalar):
        return to_tens(_array([value]), zeros, target)[0]
    step, tens = 10 ** (value.type.scale + zeros), 10 ** (zeros + target.scale)
    return of_digits([None if item is None else _rounded(item, step) * tens for item in digits_of(value)], target)


def _rounded(digits: int, step: int) -> int:
    whole, rest = divmod(abs(digits), step)
    whole += 2 * rest >= step
    return -whole if digits < 0 else whole


def result_of(op: str, left: Any, right: Any) -> Any:
    """The decimal type of an operation on two decimal types."""
    wide = 256 in (left.bit_width, right.bit_width)
    most = 76 if wide else 38
    scale, whole = max(left.scale, right.scale), [side.precision - side.scale for side in (left, right)]
    if op in "+-":
        precision = max(whole) + scale + 1
    elif op == "*":
        precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    elif op == "/":
        scale = min(left.scale + 4, most)
        precision = whole[0] + right.scale + scale
    else:
        precision = min(whole) + scale
    if scale > most:
        raise FilterError(
            f"{left} {op} {right} has {scale} digits behind the point, the limit is {most}", cure="CAST one side."
        )
    return pa.decimal256(min(precision, most), scale) if wide else pa.decimal128(min(precision, most), scale)


def like(kind: Any, precision: int, scale: int) -> Any:
    """A decimal type as wide as another."""
    return pa.decimal128(precision, scale) if kind.bit_width == 128 else pa.decimal256(precision, scale)


def with_carry(kind: Any, scale: int) -> Any:
    """A decimal type of one digit more than another, as far as there are so many."""
    return like(kind, min(kind.precision + 1, 76 if kind.bit_width > 128 else 38), scale)


def calculate(op: str, left: Value, right: Value) -> Value:
    """`left op right` of decimals. FilterError for division by zero and for results of more digits than their type."""
    target = result_of(op, left.type, right.type)
    sides = [[side] if isinstance(side, pa.Scalar) else side for side in (left, right)]
    digits = [digits_of(_array(side) if isinstance(side, list) else side) for side in sides]
    rows = next((len(side) for side in digits if len(side) != 1), 1)
    if isinstance(left, pa.Scalar) != isinstance(right, pa.Scalar):
        rows = len(digits[1] if isinstance(left, pa.Scalar) else digits[0])
    columns = [forever(side[0], rows) if isinstance(given, pa.Scalar) else side
               for side, given in zip(digits, (left, right), strict=True)]  # fmt: skip
    step = _STEPS[op]
    scales = left.type.scale, right.type.scale
    found = [None if a is None or b is None else step(a, b, *scales) for a, b in zip(*columns, strict=True)]
    made = of_digits(found, target)
    return made[0] if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar) else made


def _even(a: int, b: int, first: int, second: int) -> tuple[int, int]:
    """Both with as many digits behind the point."""
    scale = max(first, second)
    return a * 10 ** (scale - first), b * 10 ** (scale - second)


def _divide(a: int, b: int, first: int, second: int) -> int:
    if not b:
        raise FilterError("division by zero", cure="Guard it: `nullif(x, 0)`.")
    # The result has four digits more than the dividend, whose scale the divisor's takes away.
    found: int = abs(a) * 10 ** (min(first + 4, 76) - first + second) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _modulo(a: int, b: int, first: int, second: int) -> int:
    if not b:
        raise FilterError("division by zero", cure="Guard it: `nullif(x, 0)`.")
    x, y = _even(a, b, first, second)
    rest: int = abs(x) % abs(y)
    return -rest if x < 0 else rest


_STEPS: Mapping[str, Callable[[int, int, int, int], int]] = MappingProxyType(
    {
        "+": lambda a, b, first, second: sum(_even(a, b, first, second)),
        "-": lambda a, b, first, second: sum(_even(a, -b, first, second)),
        "*": lambda a, b, _first, _second: a * b,
        "/": _divide,
        "%": _modulo,
    }
)
