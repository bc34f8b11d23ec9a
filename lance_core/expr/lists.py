"""List functions: membership, length, elements; maps of two lists.

::

    tags = ['a', null]      array_has(tags, 'a') -> true      array_has(tags, null) -> null      tags[1] -> 'a'

Each row's items are found in one flat child array: compare that once, then ask per row whether any item matched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import FALSE, TRUE, arrow_of, constant, numpy_of, true_of
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, repeat
from lance_core.expr.common_type import as_common
from lance_core.expr.compare import compare, is_in, key_of, total_order
from lance_core.expr.rows import items_of, made_of, rows_of
from lance_core.expr.value_text import is_list

pc: Any = compute  # the stubs know only some of what the kernels take


def _require_list(value: Value, what: str) -> Value:
    t = value.type
    if not is_list(t):
        raise FilterError(f"{what} expects a list, got {t}")
    return repeat(value, 1) if is_scalar(value) else value


def _of_rows(function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """A function of lists in rows, of two constants, too."""

    @wraps(function)
    def call(lists: Value, other: Value) -> Value:
        if not (is_scalar(lists) and is_scalar(other)):
            return function(lists, other)
        return function(repeat(lists, 1), other)[0]

    return call


@_of_rows
def array_contains(lists: Value, item: Value) -> Value:
    """Whether each list holds the item; null for a null list or a null item."""
    if pa.types.is_null(lists.type):
        return cast(lists, pa.bool_())
    rows = _require_list(lists, "array_has")
    if not isinstance(item, pa.Scalar):
        if is_scalar(lists):
            rows = repeat(lists, len(item))
        found = _equal(pc.list_flatten(rows), item.take(pc.list_parent_indices(rows)))
        return pc.if_else(pc.is_valid(item), _any_item(rows, found), constant(None, pa.bool_()))
    if not item.is_valid:
        return pa.nulls(len(rows), pa.bool_())
    return _any_item(rows, _equal(pc.list_flatten(rows), item))


def _equal(left: Value, right: Value) -> Value:
    """Whether items are equal: NaN is itself, -0.0 is not 0.0."""
    if "float" not in (family_of(left.type), family_of(right.type)):
        return compare("=", left, right)
    first, second = as_common((left, right))
    if not pa.types.is_floating(first.type):
        return compare("=", first, second)
    return pc.equal(total_order(first), total_order(second))


@_of_rows
def array_has_any(lists: Value, wanted: Value) -> Value:
    """Whether each list holds any of the items; nulls equal each other here, as the official library has it."""
    if not is_scalar(wanted) or _has_floats(lists):
        return _by_sets(lists, wanted, "array_has_any", lambda held, asked: not held.isdisjoint(asked))
    rows, items = _require_list(lists, "array_has_any"), _constants(wanted, "array_has_any")
    flat = pc.list_flatten(rows)
    found = pc.fill_null(is_in(flat, [item for item in items if item.is_valid]), FALSE) if items else _none(flat)
    if any(not item.is_valid for item in items):
        found = pc.or_(found, pc.is_null(flat))
    return _any_item(rows, found)


@_of_rows
def array_has_all(lists: Value, wanted: Value) -> Value:
    """Whether each list holds every one of the items; of none also one that is null."""
    if isinstance(wanted, pa.ListScalar) and wanted.is_valid and not len(wanted):
        return TRUE if is_scalar(lists) else repeat(TRUE, len(lists))
    if not is_scalar(wanted) or _has_floats(lists):
        return _by_sets(lists, wanted, "array_has_all", lambda held, asked: asked <= held)
    rows = _require_list(lists, "array_has_all")
    result: Value = pc.is_valid(rows)
    result = pc.if_else(result, TRUE, constant(None, pa.bool_()))
    flat = pc.list_flatten(rows)
    for item in _constants(wanted, "array_has_all"):
        found = pc.is_null(flat) if not item.is_valid else compare("=", flat, item)
        result = pc.and_kleene(result, _any_item(rows, found))
    return result


def _has_floats(lists: Value) -> bool:
    """Whether items are floats, of which -0.0 and 0.0 are two here."""
    kind = lists.type
    return not pa.types.is_null(kind) and hasattr(kind, "value_type") and bool(pa.types.is_floating(kind.value_type))


def _by_sets(lists: Value, wanted: Value, what: str, holds: Callable[[set[Any], set[Any]], bool]) -> Value:
    """The same for lists of a column on both sides, row by row."""
    for value in (lists, wanted):
        _require_list(value, what)
    rows_of = next((len(value) for value in (lists, wanted) if not is_scalar(value)), 1)
    given = [repeat(value, rows_of) if is_scalar(value) else value for value in as_common((lists, wanted))]
    rows = zip(*(keys_of(value) for value in given), strict=True)
    return pa.array([None if None in row else holds(set(row[0] or ()), set(row[1] or ())) for row in rows], pa.bool_())


def keys_of(lists: Value) -> list[list[Any] | None]:
    """The items of each list as values that are equal where SQL's items are: NaN equals itself, -0.0 is not 0.0."""
    return [None if row is None else [key_of(item) for item in row] for row in items_of(lists)]


def _none(flat: Value) -> Value:
    return repeat(constant(False), len(flat))


def _constants(value: Value, what: str) -> list[pa.Scalar[Any]]:
    if not isinstance(value, pa.ListScalar):
        raise FilterError(f"the list of {what} must be a constant", cure="Write it as ['a', 'b'].")
    return list(value.values) if value.is_valid and value.values is not None else []


def _any_item(rows: pa.Array[Any], found: Value) -> pa.Array[Any]:
    parents = numpy_of(pc.list_parent_indices(rows), may_copy=True)
    flags = repeat(found, len(parents)) if is_scalar(found) else found
    hits = np.zeros(len(rows), bool)
    hits[parents[true_of(flags)]] = True
    mask = numpy_of(rows.is_null(), may_copy=True)
    return arrow_of(hits, pa.bool_(), mask=mask)


def length_of(value: Value, dimension: Value | None = None) -> Value:
    """Number of items of each list; of its first item, the first of that, by the number of a dimension from 1."""
    if dimension is not None:
        return made_of((_size_in(*row) for row in rows_of((value, dimension))), pa.uint64(), (value, dimension))
    if pa.types.is_null(value.type):
        return cast(value, pa.uint64())
    if family_of(value.type) in ("text", "bytes"):
        raise FilterError(f"expected a list, got {value.type}", cure="Use length() for strings.")
    result = pc.list_value_length(_require_list(value, "array_length"))
    return cast(result, pa.uint64())[0] if is_scalar(value) else cast(result, pa.uint64())


def _size_in(items: list[Any] | None, dimension: int | None) -> int | None:
    if items is None or dimension is None or dimension < 1:
        return None
    sizes = dims_of(items)
    return sizes[dimension - 1] if dimension <= len(sizes) else None


def cardinality(value: Value) -> Value:
    """Number of items of each list, or of entries of each map."""
    if not pa.types.is_map(value.type):
        return _num_leaves(value) if _holds_lists(value) else length_of(value)
    entry = pa.struct([pa.field("key", value.type.key_type, nullable=False), pa.field("value", value.type.item_type)])
    return length_of(cast(value, pa.list_(entry)))


def _holds_lists(value: Value) -> bool:
    kind = value.type
    return hasattr(kind, "value_type") and not pa.types.is_null(kind) and hasattr(kind.value_type, "value_type")


def _num_leaves(value: Value) -> Value:
    rows = [None if row is None else math.prod(dims_of(row)) for row in items_of(value)]
    made = pa.array(rows, pa.uint64())
    return made[0] if is_scalar(value) else made


def dims_of(items: list[Any]) -> list[int]:
    """The lengths of a list, of its first item, of the first of that, as for an array of many dimensions."""
    found = [len(items)]
    while items and isinstance(items[0], list):
        items = items[0]
        found.append(len(items))
    return found


def element(lists: Value, index: Value) -> Value:
    """The item at a position counted from 1, from the end when negative; null beyond the ends."""
    if (
        pa.types.is_struct(lists.type)
        and isinstance(index, pa.Scalar)
        and lists.type.get_field_index(str(index.as_py())) >= 0
    ):
        return pc.struct_field(lists, str(index.as_py()))
    if pa.types.is_null(lists.type):
        return lists
    rows = _require_list(lists, "an index")
    if not pa.types.is_integer(index.type) and not pa.types.is_null(index.type):
        raise FilterError(f"a list index must be an integer, counted from 1, got {index.type}")
    if is_scalar(lists) and not is_scalar(index):
        rows = repeat(lists, len(index))
    wanted = cast(repeat(index, len(rows)) if is_scalar(index) else index, pa.int64(), safe=False)
    positions = numpy_of(pc.fill_null(wanted, 0), may_copy=True)
    lengths = numpy_of(pc.fill_null(pc.list_value_length(rows), 0), may_copy=True).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    offsets = np.where(positions > 0, positions - 1, np.where(positions < 0, lengths + positions, -1))
    inside = (offsets >= 0) & (offsets < lengths)
    indices = arrow_of(np.where(inside, starts + offsets, 0), pa.int64(), mask=~inside)
    found = pc.list_flatten(rows).take(indices)
    return found[0] if is_scalar(lists) and is_scalar(index) else found


def map_of(keys: Value, values: Value) -> Value:
    """`map(keys, values)`: a map of the two lists of each row. Raises FilterError: a null key, one twice, other lengths."""
    for value, what in ((keys, "the keys of map"), (values, "the values of map")):
        _require_list(value, what)
    kind = pa.map_(keys.type.value_type, values.type.value_type)
    return made_of((_entries(*row) for row in rows_of((keys, values))), kind, (keys, values))


def _entries(keys: list[Any] | None, values: list[Any] | None) -> list[tuple[Any, Any]] | None:
    if keys is None or values is None:
        return None
    if len(keys) != len(values):
        raise FilterError(f"map has {len(keys)} keys and {len(values)} values in a row")
    if any(key is None for key in keys):
        raise FilterError("a key of a map is null")
    if any(key in keys[:place] for place, key in enumerate(keys)):
        raise FilterError("a key of a map is there twice")
    return [*zip(keys, values, strict=True)]
