"""Stored arrays -> arrays users see: JSONB becomes JSON text, storage types get their extension types.

large_binary (JSONB)         extension<arrow.json>
fixed_size_binary[16]        extension<arrow.uuid>
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_core.arrow.jsonb import decode_jsonb
from lance_core.arrow.kinds import as_list, as_struct, list_type


def finish(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
    """`array` as `target`; the same object when the types agree."""
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, finish(array, target.storage_type))
    if pa.types.is_large_binary(array.type) and pa.types.is_string(target):
        return decode_jsonb(array)
    if pa.types.is_struct(target):
        children = [finish(_raw_child(as_struct(array), i), target.field(i).type) for i in range(target.num_fields)]
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], offset=array.offset, children=children)
    if pa.types.is_fixed_size_list(target):
        values = finish(as_list(array).values, target.value_type)
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], offset=array.offset, children=[values])
    item = pa.struct([target.key_field, target.item_field]) if pa.types.is_map(target) else list_type(target).value_type
    values = finish(as_list(array).values, item)
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _raw_child(array: pa.StructArray, number: int) -> pa.Array[Any]:
    # `field` applies the parent's offset; what is assembled here never has one.
    return array.field(number)
