"""Arrays users give -> storage arrays: extension wrappers come off, JSON text becomes JSONB.

extension<arrow.json> '{"a":1}'      large_binary 40000001 ...
extension<arrow.uuid>                fixed_size_binary[16]
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_core.arrow.jsonb import encode_jsonb
from lance_core.arrow.kinds import as_extension, as_list, as_struct, list_type


def prepare(array: pa.Array[Any], storage: pa.DataType) -> pa.Array[Any]:
    """`array` (of the type users see) as its storage type; the same object when nothing changes."""
    if isinstance(array.type, pa.BaseExtensionType):
        return prepare(as_extension(array).storage, storage)
    if array.type == storage:
        return array
    types = pa.types
    if types.is_large_binary(storage) and (types.is_string(array.type) or types.is_large_string(array.type)):
        return encode_jsonb(array)
    if types.is_struct(storage):
        children = [prepare(as_struct(array).field(i), storage.field(i).type) for i in range(storage.num_fields)]
        fields = [storage.field(i) for i in range(storage.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    item = pa.struct([storage.key_field, storage.item_field]) if types.is_map(storage) else list_type(storage).value_type
    values = prepare(as_list(array).values, item)
    num_buffers = 1 if types.is_fixed_size_list(storage) else 2
    return pa.Array.from_buffers(storage, len(array), array.buffers()[:num_buffers], offset=array.offset, children=[values])
