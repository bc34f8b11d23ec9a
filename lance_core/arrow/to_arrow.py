"""From a Lance schema to pyarrow: the types users see, and the storage types files hold.

field        arrow type (users)          storage type (files)
json         arrow.json (utf8)           large_binary
uuid         arrow.uuid                  fixed_size_binary[16]
struct       struct of the children      struct of the children's storage types
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import pyarrow as pa

from lance_core.arrow.logical import (
    ARROW_JSON,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    FIXED_SIZE_LIST_OF_STRUCT,
    JSON,
    LIST_TYPES,
    MAP,
    MAX_VALUE_SIZE,
    STRUCT,
    holds_extension_items,
    parse_logical,
    parse_struct_dimension,
    resolve_extensions,
    value_size,
)
from lance_core.errors import FormatError, UnsupportedFeatureError
from lance_core.format.schema import Field, Schema

_Convert: TypeAlias = "Callable[[Schema, Field], pa.Field[Any]]"


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The pyarrow schema of a table; extension types registered with pyarrow appear as such.

    Raises FormatError for a logical type it does not know.
    """
    fields = [_to_arrow(schema, item) for item in schema.top_level]
    plain = pa.schema(fields, metadata={key.encode(): value for key, value in schema.metadata.items()} or None)
    if any(_has_extension(item) for item in schema.fields):
        return resolve_extensions(plain)
    return plain


def field_to_arrow(schema: Schema, field: Field) -> pa.Field[Any]:
    """The pyarrow field of one field of the schema, with its children."""
    plain = _to_arrow(schema, field)
    if any(_has_extension(item) for item in schema.descend(field.id)):
        return resolve_extensions(pa.schema([plain])).field(0)
    return plain


def _has_extension(field: Field) -> bool:
    return bool(field.extension_name) or EXTENSION_NAME in field.metadata or holds_extension_items(field.logical_type)


def storage_type(schema: Schema, field: Field) -> pa.DataType:
    """The Arrow type of a field's values as files hold them: no extension types, JSON as large_binary."""
    if field.logical_type == JSON:
        return pa.large_binary()
    return _type_of(schema, field, _storage_field)


def _storage_field(schema: Schema, field: Field) -> pa.Field[Any]:
    return pa.field(field.name, storage_type(schema, field), nullable=field.nullable)


def _to_arrow(schema: Schema, field: Field) -> pa.Field[Any]:
    metadata = {key.encode(): value for key, value in field.metadata.items()}
    if field.extension_name and EXTENSION_NAME not in field.metadata:
        metadata[EXTENSION_NAME.encode()] = field.extension_name.encode()
    if field.logical_type == JSON:
        metadata[EXTENSION_NAME.encode()] = ARROW_JSON.encode()
        metadata.setdefault(EXTENSION_METADATA.encode(), b"")
        return pa.field(field.name, pa.string(), nullable=field.nullable, metadata=metadata)
    return pa.field(field.name, _type_of(schema, field, _to_arrow), nullable=field.nullable, metadata=metadata or None)


def _type_of(schema: Schema, field: Field, convert: _Convert) -> pa.DataType:
    logical = field.logical_type
    if logical == STRUCT:
        return pa.struct([convert(schema, child) for child in schema.children(field.id)])
    if logical in LIST_TYPES:
        item = convert(schema, _only_child(schema, field))
        return pa.large_list(item) if logical.startswith("large_") else pa.list_(item)
    if logical == MAP:
        return _map_type(schema, field, convert)
    if logical.startswith(FIXED_SIZE_LIST_OF_STRUCT):
        return _list_of_structs(field, convert(schema, _only_child(schema, field)))
    return parse_logical(logical, path=field.name)


def _map_type(schema: Schema, field: Field, convert: _Convert) -> pa.DataType:
    entries = schema.children(_only_child(schema, field).id)
    if len(entries) != 2:
        raise FormatError(f"map {field.name!r} must have a key and a value field, got {len(entries)} fields")
    key, value = convert(schema, entries[0]), convert(schema, entries[1])
    return cast("pa.DataType", pa.map_(cast("Any", key), cast("Any", value)))


def _only_child(schema: Schema, field: Field) -> Field:
    children = schema.children(field.id)
    if len(children) != 1:
        raise FormatError(f"{field.logical_type} {field.name!r} must have one child field, got {len(children)}")
    return children[0]


def _list_of_structs(field: Field, item: pa.Field[Any]) -> pa.DataType:
    made = pa.list_(item, parse_struct_dimension(field.logical_type, path=field.name))
    if value_size(made) > MAX_VALUE_SIZE:
        raise UnsupportedFeatureError(
            f"column {field.name!r}: a value of type {field.logical_type} has more than {MAX_VALUE_SIZE >> 20} MiB",
            cure="Read the other columns of the table.",
        )
    return made


def value_type_of(schema: Schema, item: Field) -> pa.DataType:
    """The Arrow type of a field's values."""
    found: pa.DataType = field_to_arrow(schema, item).type
    return found
