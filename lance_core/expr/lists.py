"""List functions: membership, length, elements; maps of two lists.

::

    tags = ['a', null]      array_has(tags, 'a') -> true      array_has(tags, null) -> null      tags[1] -> 'a'

Each row's items are found in one flat child array: compare that once, then ask per row whether any item matched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import FALSE, TRUE, arrow_of, constant, numpy_of, true_of
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, cast, family_of, is_scalar, repeat
from lance_core.expr.compare import compare, is_in

pc: Any = compute  # the stubs know only some of what the kernels take


def _require_list(value: Value, what: str) -> Value:
    t = value.type
    if not (pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)):
        raise FilterError(f"{what} expects a list, got {t}")
    return repeat(value, 1) if is_scalar(value) else value


def array_contains(lists: Value, item: Value) -> Value:
    """Whether each list holds the item; null for a null list or a null item."""
    rows = _require_list(lists, "array_has")
    if not isinstance(item, pa.Scalar):
        raise FilterError(
            "the value of array_has must be a constant", cure="To compare two columns, use columns of single values."
        )
    if not item.is_valid:
        return pa.nulls(len(rows), pa.bool_())
    return _any_item(rows, compare("=", pc.list_flatten(rows), item))


def array_has_any(lists: Value, wanted: Value) -> Value:
    """Whether each list holds any of the items; nulls equal each other here, as the official library has it."""
    rows, items = _require_list(lists, "array_has_any"), _constants(wanted, "array_has_any")
    flat = pc.list_flatten(rows)
    found = pc.fill_null(is_in(flat, [item for item in items if item.is_valid]), FALSE) if items else _none(flat)
    if any(not item.is_valid for item in items):
        found = pc.or_(found, pc.is_null(flat))
    return _any_item(rows, found)


def array_has_all(lists: Value, wanted: Value) -> Value:
    """Whether each list holds every one of the items."""
    rows = _require_list(lists, "array_has_all")
    result: Value = pc.is_valid(rows)
    result = pc.if_else(result, TRUE, constant(None, pa.bool_()))
    flat = pc.list_flatten(rows)
    for item in _constants(wanted, "array_has_all"):
        found = pc.is_null(flat) if not item.is_valid else compare("=", flat, item)
        result = pc.and_kleene(result, _any_item(rows, found))
    return result


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


def length_of(value: Value) -> Value:
    """Number of items of each list."""
    if family_of(value.type) in ("text", "bytes"):
        raise FilterError(f"expected a list, got {value.type}", cure="Use length() for strings.")
    result = pc.list_value_length(_require_list(value, "array_length"))
    return cast(result, pa.int64())[0] if is_scalar(value) else cast(result, pa.int64())


def cardinality(value: Value) -> Value:
    """Number of items of each list, or of entries of each map."""
    if not pa.types.is_map(value.type):
        return length_of(value)
    entry = pa.struct([pa.field("key", value.type.key_type, nullable=False), pa.field("value", value.type.item_type)])
    return length_of(cast(value, pa.list_(entry)))


def element(lists: Value, index: Value) -> Value:
    """The item at a position counted from 1, from the end when negative; null beyond the ends."""
    if (
        pa.types.is_struct(lists.type)
        and isinstance(index, pa.Scalar)
        and lists.type.get_field_index(str(index.as_py())) >= 0
    ):
        return pc.struct_field(lists, str(index.as_py()))
    rows = _require_list(lists, "an index")
    if not isinstance(index, pa.Scalar) or not pa.types.is_integer(index.type):
        raise FilterError("a list index must be a constant integer, counted from 1")
    position = index.as_py()
    lengths = numpy_of(pc.fill_null(pc.list_value_length(rows), 0), may_copy=True).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    offsets = np.full(len(rows), position - 1) if position is not None and position > 0 else lengths + (position or -(2**40))
    inside = (offsets >= 0) & (offsets < lengths)
    indices = arrow_of(np.where(inside, starts + offsets, 0), pa.int64(), mask=~inside)
    return pc.list_flatten(rows).take(indices)


def map_of(keys: Value, values: Value) -> Value:
    """`map(keys, values)`: a map of the two lists of each row. Raises FilterError: a null key, one twice, other lengths."""
    for value, what in ((keys, "the keys of map"), (values, "the values of map")):
        _require_list(value, what)
    kind = pa.map_(keys.type.value_type, values.type.value_type)
    if is_scalar(keys) and is_scalar(values):
        return constant(_entries(keys.as_py(), values.as_py()), kind)
    count = len(values) if is_scalar(keys) else len(keys)
    given = ((repeat(value, count) if is_scalar(value) else value).to_pylist() for value in (keys, values))
    rows = zip(*given, strict=True)
    return pa.array([_entries(*row) for row in rows], kind)


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
