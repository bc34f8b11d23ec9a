"""Comparisons and membership with SQL nulls and the format's order of floats.

::

    NaN = NaN -> true      NaN > inf -> true      -0.0 = 0.0 -> true      null = 1 -> null
    2 IN (1, null) -> null

Floats order as the official library orders them: -NaN < -inf < ... < inf < NaN, the two zeros equal.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import TRUE, array_of, arrow_of, constant, number_type, numpy_of
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, plain, repeat, unify
from lance_core.expr.common_type import cast_common, compared_type
from lance_core.expr.rows import rows_of
from lance_core.expr.value_text import is_list

pc: Any = compute  # the stubs know only some of what the kernels take

_KERNELS: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: str, left: Value, right: Value) -> Value:
    """`left op right` as booleans; null when a side is null."""
    if pa.types.is_nested(left.type) or pa.types.is_nested(right.type):
        return compare_nested(op, left, right)
    first, second = unify(*plain_pair(left, right))
    family = family_of(first.type)
    if family == "float" and (_has_nan(first) or _has_nan(second)):
        first, second = order_keys(first), order_keys(second)
    return _KERNELS[op](first, second)


def plain_pair(left: Value, right: Value) -> tuple[Value, Value]:
    """Both as plain types; a constant beside half floats as one of them."""
    for one, other in ((left, right), (right, left)):
        if pa.types.is_float16(one.type) and not is_scalar(one) and is_scalar(other) and pa.types.is_floating(other.type):
            half = cast(cast(other, pa.float16(), safe=False), pa.float32())
            return (plain(left), half) if one is left else (half, plain(right))
    return plain(left), plain(right)


def compare_nested(op: str, left: Value, right: Value) -> Value:
    """The same of lists, structs and maps: by their first items that differ, nulls in them first."""
    pairs = rows_of(_one_type(left, right))
    known = _ORDERS[op]
    made = pa.array([None if None in pair else known(*map(order_key, pair)) for pair in pairs], pa.bool_())
    return made[0] if is_scalar(left) and is_scalar(right) else made


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _one_type(left: Value, right: Value) -> tuple[Value, Value]:
    """Both with the type that they have in common; as texts, where they have none but are lists."""
    if left.type == right.type:
        return left, right
    for one, other in ((left, right), (right, left)):
        if is_scalar(one) and is_list(one.type) and is_list(other.type) and _are_lists(other) and not _are_lists(one):
            inner = _in_lists(one, other.type)
            return (inner, right) if one is left else (left, inner)
    kinds = [family_of(side.type.value_type) for side in (left, right) if is_list(side.type)]
    if set(kinds) == {"bool", "int"}:
        return cast_common(left, pa.list_(pa.int64())), cast_common(right, pa.list_(pa.int64()))
    kind: pa.DataType = pa.list_(pa.string())
    if "text" not in kinds or kinds == ["text", "text"]:
        try:
            kind = compared_type((left.type, right.type))
        except FilterError:
            if len(kinds) < 2:
                raise FilterError(f"cannot compare {left.type} with {right.type}", cure="CAST one of them.") from None
    return cast_common(left, kind), cast_common(right, kind)


def _are_lists(side: Value) -> bool:
    """Whether the items of lists are lists."""
    return is_list(side.type.value_type)


def _in_lists(constant_list: Value, kind: Any) -> Value:
    """A constant list beside lists of lists: each of its items a list of one, null where it does not convert."""
    from lance_core.expr.casts import cast_as

    item = kind.value_type.value_type
    items = (
        None if not constant_list.is_valid else [[cast_as(each, item, safe=True).as_py()] for each in constant_list.values]
    )
    return pa.array([items], pa.list_(pa.list_(item)))[0]


def order_key(item: Any) -> Any:
    """What orders and equals as SQL's values in lists and structs do: NaN above all numbers, -0.0 below 0.0, null first."""
    if item is None:
        return (0,)
    if isinstance(item, float):
        return (1, item != item, 0.0 if item != item else item, math.copysign(1.0, item) if item == item else 0.0)
    if isinstance(item, dict):
        return (1, tuple(map(order_key, item.values())))
    return (1, tuple(map(order_key, item)) if isinstance(item, (list, tuple)) else item)


def key_of(item: Any) -> Any:
    """What is equal where SQL's values in lists and structs are: NaN equals itself, -0.0 is not 0.0."""
    if isinstance(item, float):
        return ("nan",) if item != item else (item, math.copysign(1.0, item))
    if isinstance(item, (list, tuple)):
        return tuple(map(key_of, item))
    return tuple((name, key_of(value)) for name, value in item.items()) if isinstance(item, dict) else item


def distinct(left: Value, right: Value) -> Value:
    """Whether two values differ, nulls being equal to each other; never null."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    either_null = pc.or_(pc.is_null(left), pc.is_null(right))
    differs = compare("!=", left, right)
    return pc.if_else(both_null, False, pc.if_else(either_null, True, differs))


def is_in(item: Value, values: Sequence[Value]) -> Value:
    """`item IN (values)`: true on a match, else null when the item or one of the values is null."""
    constants = [value for value in values if isinstance(value, pa.Scalar)]
    if is_scalar(item) or len(constants) < len(values) or len(values) < 4:
        return _any_equal(item, values)
    subject = plain(item)
    wanted = [value for value in constants if value.is_valid]
    groups: dict[pa.DataType, list[pa.Scalar[Any]]] = {}
    odd: list[Value] = []
    for value in wanted:
        same, other = unify(*plain_pair(item, value))
        if same.type == subject.type:
            groups.setdefault(other.type, []).append(other)
        else:
            odd.append(value)
    found = _any_equal(item, odd) if odd else constant(False)
    for data_type, members in groups.items():
        found = pc.or_(found, _member(subject, array_of([member.as_py() for member in members], data_type)))
    return _with_nulls(found, subject, has_null=len(wanted) < len(constants))


def is_in_literals(item: Value, values: Sequence[object]) -> Value | None:
    """`item IN (values)` in one lookup, for numbers or texts of Python; None where `is_in` must compare each.

    Making a scalar of each of 200,000 values, for each batch, took most of the time of such a filter.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if is_scalar(item) or len(values) < 4 or not kinds:
        return None
    subject, wanted = plain(item), [value for value in values if value is not None]
    if float in kinds and kinds <= {int, float}:
        numbers = _exact(wanted)
        if numbers is None or not (pa.types.is_integer(subject.type) or subject.type == pa.float64()):
            return None
        if subject.type == pa.float64():
            members = array_of([float(number) for number in numbers], pa.float64())
            return _with_nulls(_member(subject, members), subject, has_null=None in values)
        # No whole number equals one that has a fraction.
        wanted, kinds = [int(number) for number in numbers if number == int(number)], {int}
    if len(kinds) != 1:
        return None
    if kinds == {int} and pa.types.is_integer(subject.type):
        limits = np.iinfo(number_type(subject.type))
        least, most = int(limits.min), int(limits.max)
        wanted = [value for value in wanted if isinstance(value, int) and least <= value <= most]
    elif kinds != {str} or subject.type not in (pa.string(), pa.large_string()):
        return None
    found = pc.is_in(subject, value_set=array_of(wanted, subject.type))
    return _with_nulls(found, subject, has_null=None in values)


def _exact(values: Sequence[object]) -> list[int | float] | None:
    """Numbers that whole numbers and doubles hold alike; None where one is not."""
    found = [value for value in values if isinstance(value, (int, float)) and -(2**53) < value < 2**53]
    return found if len(found) == len(values) else None


def _member(subject: Value, members: Value) -> Value:
    if family_of(subject.type) == "float":
        return pc.is_in(order_keys(subject).cast(pa.int64()), value_set=order_keys(members).cast(pa.int64()))
    return pc.is_in(subject, value_set=members.cast(subject.type))


def _with_nulls(found: Value, subject: Value, *, has_null: bool) -> Value:
    unknown = constant(None, pa.bool_())
    misses = unknown if has_null else constant(False)
    return pc.if_else(pc.is_null(subject), unknown, pc.if_else(found, TRUE, misses))


def _any_equal(item: Value, values: Sequence[Value]) -> Value:
    found: Value = constant(False)
    for value in values:
        found = pc.or_kleene(found, compare("=", item, value))
    return found


def _has_nan(value: Value) -> bool:
    if isinstance(value, pa.Scalar):
        return value.is_valid and bool(np.isnan(value.as_py()))
    return bool(np.isnan(_floats(value)).any())


def _floats(value: Value) -> np.ndarray[Any, np.dtype[Any]]:
    """The values buffer, whatever is under nulls included; no copy."""
    dtype = np.dtype(f"f{value.type.bit_width // 8}")
    buffer = value.buffers()[1]
    if buffer is None or len(value) == 0:
        return np.zeros(len(value), dtype)
    values: np.ndarray[Any, np.dtype[Any]] = np.frombuffer(buffer, dtype, len(value), value.offset * dtype.itemsize)
    return values


def order_keys(value: Value) -> Value:
    """Integers that order as the floats should; nulls stay null."""
    return _keys(value, lambda floats: floats + 0.0)  # -0.0 + 0.0 is 0.0


def total_order(value: Value) -> Value:
    """The same, -0.0 below 0.0."""
    return _keys(value, lambda floats: floats)


def _keys(value: Value, prepare: Callable[[Any], Any]) -> Value:
    array = repeat(value, 1) if is_scalar(value) else value
    floats = prepare(_floats(array))
    bits = floats.view(np.int64 if floats.itemsize == 8 else np.int32)
    keys = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    valid = None if array.null_count == 0 else ~numpy_of(array.is_valid(), may_copy=True)
    result = arrow_of(keys, mask=valid)
    return result[0] if isinstance(value, pa.Scalar) else result
