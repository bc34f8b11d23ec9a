"""Stored arrays -> arrays users see: JSONB becomes JSON text, storage types get their extension types.

large_binary (JSONB)         extension<arrow.json>
fixed_size_binary[16]        extension<arrow.uuid>

What is under a null of a struct or fixed-size list is not JSONB at all times: packed structs hold empty bytes there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools
from lance_core.arrow.jsonb import decode_jsonb
from lance_core.arrow.kinds import as_list, as_struct, list_type
from lance_core.arrow_numpy import numpy_of


def finish(array: pa.Array[Any], target: pa.DataType, visible: Bools | None = None) -> pa.Array[Any]:
    """`array` as `target`; the same object when the types agree. Slots that are not `visible` are under a null."""
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, finish(array, target.storage_type, visible))
    if pa.types.is_large_binary(array.type) and pa.types.is_string(target):
        return decode_jsonb(array, visible)
    if pa.types.is_struct(target):
        below = _visible_below(array, visible)
        children = [finish(_raw_child(as_struct(array), i), target.field(i).type, below) for i in range(target.num_fields)]
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], offset=array.offset, children=children)
    if pa.types.is_fixed_size_list(target):
        values = finish(as_list(array).values, target.value_type, _visible_items(array, target.list_size, visible))
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], offset=array.offset, children=[values])
    item = pa.struct([target.key_field, target.item_field]) if pa.types.is_map(target) else list_type(target).value_type
    values = finish(as_list(array).values, item)
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _visible_below(array: pa.Array[Any], visible: Bools | None) -> Bools | None:
    if not array.null_count:
        return visible
    valid: Bools = numpy_of(array.is_valid(), may_copy=True)
    return valid if visible is None else valid & visible


def _visible_items(array: pa.Array[Any], size: int, visible: Bools | None) -> Bools | None:
    """Whether the items of fixed-size lists are visible; those before the array's offset are not."""
    below = _visible_below(array, visible)
    if below is None:
        return None
    items = np.zeros(len(as_list(array).values), np.bool_)
    items[array.offset * size : (array.offset + len(array)) * size] = np.repeat(below, size)
    return items


def _raw_child(array: pa.StructArray, number: int) -> pa.Array[Any]:
    # `field` applies the parent's offset; what is assembled here never has one.
    return array.field(number)
