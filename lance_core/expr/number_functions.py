"""Functions over numbers: one row each in a table, as in `functions`.

::

    ln(0.0) -> -inf     log(8.0) -> 0.903...     log(2, 8.0) -> 3.0     greatest(1, NULL, 3) -> 3     7 << 2 -> 28
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, constant, numpy_of
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, plain, repeat
from lance_core.expr.common_type import as_common, cast_common, integer_type, shown_type
from lance_core.expr.compare import compare, total_order
from lance_core.expr.decimals import with_carry
from lance_core.expr.rows import made_of, rows_of
from lance_core.expr.text_functions import by_row
from lance_core.expr.value_text import is_list

pc: Any = compute  # the stubs know only some of what the kernels take
_NUMBERS = ("int", "float", "decimal", "null")


def shift(op: str, left: Value, right: Value, *, bends: bool = True) -> Value:
    """`left << right` or `left >> right` of whole numbers, bits that leave their type lost. Raises FilterError.

    With `bends` a constant takes the type of the column beside it. Other numbers lose their fraction.
    """
    first, second = plain(left), plain(right)
    families = {family_of(first.type), family_of(second.type)}
    if not families <= {"int", "null"} and not ("int" in families and families <= set(_NUMBERS)):
        raise FilterError(f"{first.type} {op} {second.type} is not a supported operation", cure="CAST to an integer.")
    kind = _shifted_type(first, second, bends=bends)
    rows = next((len(side) for side in (first, second) if not is_scalar(side)), 1)
    sides = (cast_common(side, kind) for side in (first, second))
    columns = [repeat(side, rows) if is_scalar(side) else side for side in sides]
    numbers, counts = (numpy_of(column.fill_null(0), may_copy=True) for column in columns)
    masked = counts & kind.bit_width - 1
    found = numbers << masked if op == "<<" else numbers >> masked
    mask = numpy_of(pc.or_(columns[0].is_null(), columns[1].is_null()), may_copy=True)
    made = arrow_of(found, kind, mask=mask)
    return made[0] if is_scalar(first) and is_scalar(second) else made


def _shifted_type(left: Value, right: Value, *, bends: bool) -> pa.DataType:
    """The type of both, the column's own beside a constant."""
    whole = [side for side in (left, right) if family_of(side.type) == "int"]
    sides = [side for side in whole if not (bends and is_scalar(side))]
    kinds = [side.type for side in sides]
    if pa.uint64() in kinds:
        return pa.uint64()
    return (integer_type(kinds[0], kinds[-1]) or pa.int64()) if kinds else pa.int64()


def _float(kernel: Callable[..., Any]) -> Callable[..., Value]:
    """A function of floats: float32 stays, all other numbers become float64."""

    def function(*values: Value) -> Value:
        for value in values:
            if family_of(value.type) not in _NUMBERS:
                raise FilterError(f"expected a number, got {value.type}", cure="CAST it.")
        narrow = all(value.type == pa.float32() or is_scalar(value) for value in values)
        kind = pa.float32() if narrow and any(value.type == pa.float32() for value in values) else pa.float64()
        return kernel(*(cast(value, kind, safe=False) for value in values))

    return function


def _numpy(ufunc: Callable[..., Any]) -> Callable[..., Value]:
    """A function that Arrow has no kernel for."""

    def kernel(*values: Value) -> Value:
        rows = next((len(value) for value in values if not is_scalar(value)), 1)
        columns = [repeat(value, rows) if is_scalar(value) else value for value in values]
        with np.errstate(all="ignore"):
            found = ufunc(*(numpy_of(column.fill_null(0), may_copy=True) for column in columns))
        mask = np.logical_or.reduce([numpy_of(column.is_null(), may_copy=True) for column in columns])
        made = arrow_of(found, columns[0].type, mask=mask)
        return made[0] if all(is_scalar(value) for value in values) else made

    return _float(kernel)


def _log(value: Value, other: Value | None = None) -> Value:
    """log(x): to the base ten; log(base, x): the base has the type of x, and of half floats single ones reckon."""
    number = plain(value if other is None else other)
    if other is None:
        return _numpy(lambda each: np.log(each) / np.log(each.dtype.type(10.0)))(number)
    base = value if pa.types.is_float16(value.type) else plain(value)
    if family_of(base.type) not in _NUMBERS:
        raise FilterError(f"expected a number, got {base.type}", cure="CAST it.")
    kind = pa.float32() if number.type == pa.float32() else pa.float64()
    if pa.types.is_float16(other.type):
        base = cast(cast(base, pa.float64(), safe=False), pa.float16(), safe=False)
    return _numpy(lambda one, each: np.log(each) / np.log(one))(cast(base, kind, safe=False), number)


def _trunc(value: Value, digits: Value | None = None) -> Value:
    return _float(lambda number: _whole_of(number) if digits is None else by_digits(number, digits, _trunc_to))(value)


def _whole_of(number: Value) -> Value:
    """Where no digits are given, -0.0 of a column becomes 0.0."""
    if is_scalar(number):
        return pc.trunc(number)
    zero = constant(0.0, number.type)
    return pc.if_else(pc.equal(number, zero), zero, pc.trunc(number))


def _trunc_to(number: Value, places: int) -> Value:
    if places >= 0:
        return pc.round(number, ndigits=places, round_mode="towards_zero")
    step = constant(10.0 ** min(-places, 300), number.type)
    return pc.multiply(pc.trunc(pc.divide(number, step)), step)


def by_digits(number: Value, digits: Value | None, function: Callable[[Value, int], Value]) -> Value:
    """A function of numbers and of a count of digits, which may be a column; null where a side is null."""
    if digits is None:
        return function(number, 0)
    if family_of(digits.type) not in ("int", "null"):
        raise FilterError(f"a count of digits is a whole number, got {digits.type}", cure="CAST it.")
    if isinstance(digits, pa.Scalar):
        whole = function(number, 0 if not digits.is_valid else max(min(int(digits.as_py()), 400), -400))
        return whole if digits.is_valid else pc.if_else(constant(False), whole, constant(None, whole.type))
    numbers = repeat(number, len(digits)) if is_scalar(number) else number
    kind = with_carry(number.type, number.type.scale) if pa.types.is_decimal(number.type) else number.type
    found: Value = pa.nulls(len(digits), kind)
    for places in pc.unique(digits).drop_null().to_pylist():
        made = function(numbers, max(min(places, 400), -400))
        here = pc.fill_null(pc.equal(digits, constant(places, digits.type)), False)
        found = pc.if_else(here, made.cast(kind), found)
    return found


def _nanvl(value: Value, other: Value) -> Value:
    kind = _floating(value.type, other.type)
    left, right = (cast(each, kind, safe=False) for each in (value, other))
    made = pc.if_else(pc.is_nan(left), right, left)
    return cast(made, pa.float16(), safe=False) if _are_halves(value.type, other.type) else made


def _are_halves(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether the numbers are half floats, one of them maybe whole and as short."""
    others = [kind for kind in (left, right) if not pa.types.is_float16(kind)]
    return len(others) < 2 and all(pa.types.is_integer(kind) and kind.bit_width <= 16 for kind in others)


def _atan2(y: Value, x: Value) -> Value:
    kind = _floating(y.type, x.type)
    return pc.atan2(*(cast(value, kind, safe=False) for value in (y, x)))


def _floating(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of floats that two numbers become: single where both are floats or short integers that it holds."""
    if any(kind == pa.float64() or pa.types.is_decimal(kind) for kind in (left, right)):
        return pa.float64()
    return pa.float32()


def _extreme(name: str) -> Callable[..., Value]:
    def function(*values: Value) -> Value:
        given = as_common(values, compared=True) if len(values) > 1 else [*values]
        result = given[0]
        for value in given[1:]:
            result = _extreme_of(name, result, value)
        return result

    return function


def _extreme_of(name: str, left: Value, right: Value) -> Value:
    wins = _first_wins(name, left, right)
    if not pa.types.is_nested(left.type):
        return pc.if_else(wins, left, right)
    rows = len(wins) if not is_scalar(wins) else 1
    first, second = (repeat(side, rows) if is_scalar(side) else side for side in (left, right))
    taken = pc.if_else(wins, arrow_of(np.arange(rows)), arrow_of(np.arange(rows, 2 * rows)))
    made = pa.concat_arrays([first, second]).take(repeat(taken, rows) if is_scalar(taken) else taken)
    return made[0] if is_scalar(left) and is_scalar(right) else made


def _first_wins(name: str, left: Value, right: Value) -> Value:
    """By the order of comparisons: NaN is above all numbers, and -0.0 below 0.0. Nulls never win."""
    if pa.types.is_null(left.type):
        return constant(True)
    if pa.types.is_floating(left.type):
        keys = total_order(plain(left)), total_order(plain(right))
        wins = pc.greater_equal(*keys) if name == "greatest" else pc.less_equal(*keys)
    else:
        wins = compare(">=" if name == "greatest" else "<=", left, right)
    return pc.coalesce(wins, pc.is_valid(left))


def _nvl2(test: Value, then: Value, otherwise: Value) -> Value:
    kind = shown_type((then.type, otherwise.type))
    return pc.if_else(pc.is_valid(test), cast_common(then, kind), cast_common(otherwise, kind))


def _whole(function: Callable[..., int]) -> Callable[..., Value]:
    def called(*values: Value) -> Value:
        for value in values:
            if family_of(value.type) not in ("int", "null"):
                raise FilterError(f"expected an integer, got {value.type}", cure="CAST it.")
        return by_row(function, pa.int64(), *values)

    return called


def _factorial(number: int) -> int:
    if number > 20:
        raise FilterError(f"the factorial of {number} does not fit in 64 bits")
    return math.factorial(max(number, 0))


def _hex(number: int) -> str:
    return format(number & (1 << 64) - 1, "x")


def _vectors(function: Callable[..., Any], *, makes_list: bool = False) -> Callable[..., Value]:
    """A function of lists of numbers, all of one length; null where a list or one of its numbers is."""

    def one(row: tuple[Any, ...]) -> Any:
        if any(items is None or None in items for items in row):
            return None
        if len({len(items) for items in row}) > 1:
            raise FilterError(f"vectors of different lengths: {', '.join(str(len(items)) for items in row)}")
        with np.errstate(divide="ignore", invalid="ignore"):
            found = function(*(np.array(items, np.float64) for items in row))
        return None if found is None else found.tolist() if makes_list else float(found)

    def call(*given: Value) -> Value:
        for value in given:
            kind = value.type
            if not is_list(kind) or family_of(kind.value_type) not in ("int", "float", "null"):
                raise FilterError(f"expected a list of numbers, got {kind}")
        return made_of(map(one, rows_of(given)), pa.list_(pa.float64()) if makes_list else pa.float64(), given)

    return call


def _distance(left: Any, right: Any) -> Any:
    return np.sqrt(((left - right) ** 2).sum()) if len(left) else -0.0


def _cosine_distance(left: Any, right: Any) -> Any:
    squares = left @ left, right @ right
    return None if 0 in squares else 1 - (left @ right) / (np.sqrt(squares[0]) * np.sqrt(squares[1]))


def _normalized(items: Any) -> Any:
    length = np.sqrt(items @ items)
    return None if length == 0 else items / length


def _cube_root(number: Any) -> Any:
    """To the last bit in all but one of a thousand, as officially: libraries of C differ from machine to machine."""
    root = np.cbrt(number)
    if root.dtype != np.float64:
        return root
    wide = root.astype(np.longdouble)
    better = (wide - (wide * wide * wide - number) / (3 * wide * wide)).astype(np.float64)
    return np.where(np.isfinite(better), better, root)


_VECTORS: Mapping[str, tuple[int, int, Callable[..., Value]]] = MappingProxyType(
    {
        "array_distance": (2, 2, _vectors(_distance)),
        "inner_product": (2, 2, _vectors(lambda left, right: left @ right)),
        "cosine_distance": (2, 2, _vectors(_cosine_distance)),
        "array_normalize": (1, 1, _vectors(_normalized, makes_list=True)),
    }
)
NUMBER_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Value]]] = MappingProxyType(
    {
        "greatest": (1, 255, _extreme("greatest")),
        "least": (1, 255, _extreme("least")),
        "nvl2": (3, 3, _nvl2),
        "nanvl": (2, 2, _nanvl),
        "sqrt": (1, 1, _float(pc.sqrt)),
        "exp": (1, 1, _float(pc.exp)),
        "ln": (1, 1, _float(pc.ln)),
        "log": (1, 2, _log),
        "log10": (1, 1, _float(pc.log10)),
        "log2": (1, 1, _float(pc.log2)),
        "sin": (1, 1, _float(pc.sin)),
        "cos": (1, 1, _float(pc.cos)),
        "tan": (1, 1, _float(pc.tan)),
        "asin": (1, 1, _float(pc.asin)),
        "acos": (1, 1, _float(pc.acos)),
        "atan": (1, 1, _float(pc.atan)),
        "atan2": (2, 2, _atan2),
        "sinh": (1, 1, _numpy(np.sinh)),
        "cosh": (1, 1, _numpy(np.cosh)),
        "tanh": (1, 1, _numpy(np.tanh)),
        "asinh": (1, 1, _numpy(np.arcsinh)),
        "acosh": (1, 1, _numpy(np.arccosh)),
        "atanh": (1, 1, _numpy(np.arctanh)),
        "cot": (1, 1, _numpy(lambda number: 1.0 / np.tan(number))),
        "pi": (0, 0, lambda: constant(math.pi)),
        "cbrt": (1, 1, _numpy(_cube_root)),
        "degrees": (1, 1, _numpy(np.degrees)),
        "radians": (1, 1, _numpy(np.radians)),
        "signum": (1, 1, _float(pc.sign)),
        "trunc": (1, 2, _trunc),
        "iszero": (1, 1, _float(lambda value: pc.equal(value, cast(constant(0.0), value.type)))),
        "factorial": (1, 1, _whole(_factorial)),
        "gcd": (2, 2, _whole(math.gcd)),
        "lcm": (2, 2, _whole(math.lcm)),
        **_VECTORS,
        "list_distance": _VECTORS["array_distance"],
        "dot_product": _VECTORS["inner_product"],
        "list_normalize": _VECTORS["array_normalize"],
        "to_hex": (1, 1, lambda value: by_row(_hex, pa.string(), value)),
    }
)
