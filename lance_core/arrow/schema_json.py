"""A pyarrow schema as JSON data, in the layout of the official library, and back.

::

    schema_to_json(pa.schema([pa.field("id", pa.int64())]))
    {"fields": [{"name": "id", "type": {"type": "int64"}, "nullable": True}]}

A type is its logical name; types of parts add `fields`, those of a fixed size add `length`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa

from lance_core.errors import InputError

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(), "bool": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(), "halffloat": pa.float16(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.utf8(), "large_string": pa.large_utf8(),
    "binary": pa.binary(), "large_binary": pa.large_binary(), "date32:day": pa.date32(), "date64:ms": pa.date64(),
}  # fmt: skip
_NAMES = {stored: name for name, stored in _PLAIN.items()}
_NO_ZONE = "-"


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """The schema as JSON data. InputError for a type that has no such form (maps, unions, views)."""
    plain: dict[str, Any] = {"fields": [_field_to_json(field) for field in schema]}
    metadata = _texts(schema.metadata)
    return {**plain, "metadata": metadata} if metadata else plain


def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """The schema that JSON data describes. InputError when it describes none."""
    try:
        fields = [_field_from_json(field) for field in schema_json["fields"]]
        return pa.schema(fields, metadata=schema_json.get("metadata") or None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"this JSON does not describe a schema: {error!r}") from error


def _field_to_json(field: pa.Field[Any]) -> dict[str, Any]:
    plain = {"name": field.name, "type": _type_to_json(field.type), "nullable": field.nullable}
    metadata = _texts(field.metadata)
    return {**plain, "metadata": metadata} if metadata else plain


def _field_from_json(plain: Mapping[str, Any]) -> pa.Field[Any]:
    return pa.field(plain["name"], _type_from_json(plain["type"]), bool(plain["nullable"]), plain.get("metadata") or None)


def _type_to_json(stored: Any) -> dict[str, Any]:
    if pa.types.is_fixed_size_list(stored):
        return {"type": "fixed_size_list", "fields": [_field_to_json(stored.value_field)], "length": stored.list_size}
    if pa.types.is_list(stored) or pa.types.is_large_list(stored):
        name = "large_list" if pa.types.is_large_list(stored) else "list"
        return {"type": name, "fields": [_field_to_json(stored.value_field)]}
    if pa.types.is_struct(stored):
        return {"type": "struct", "fields": [_field_to_json(stored.field(number)) for number in range(stored.num_fields)]}
    if pa.types.is_fixed_size_binary(stored):
        return {"type": "fixed_size_binary", "length": stored.byte_width}
    return {"type": _name_of(stored)}


def _name_of(stored: Any) -> str:
    if pa.types.is_timestamp(stored):
        return f"timestamp:{stored.unit}:{stored.tz or _NO_ZONE}"
    for test, name in ((pa.types.is_time32, "time32"), (pa.types.is_time64, "time64"), (pa.types.is_duration, "duration")):
        if test(stored):
            return f"{name}:{stored.unit}"
    if pa.types.is_decimal(stored):
        return f"decimal:{stored.bit_width}:{stored.precision}:{stored.scale}"
    if pa.types.is_dictionary(stored):
        values, codes = _name_of(stored.value_type), _name_of(stored.index_type)
        return f"dict:{values}:{codes}:{str(stored.ordered).lower()}"
    if stored not in _NAMES:
        raise InputError(f"a schema with the type {stored} cannot be encoded as JSON")
    return _NAMES[stored]


def _type_from_json(plain: Mapping[str, Any]) -> pa.DataType:
    name = str(plain["type"])
    if name in ("list", "large_list", "fixed_size_list"):
        (item,) = (_field_from_json(field) for field in plain["fields"])
        if name == "fixed_size_list":
            return pa.list_(item, int(plain["length"]))
        return pa.large_list(item) if name == "large_list" else pa.list_(item)
    if name == "struct":
        return pa.struct([_field_from_json(field) for field in plain["fields"]])
    return pa.binary(int(plain["length"])) if name == "fixed_size_binary" else _type_named(name)


def _type_named(name: str) -> pa.DataType:
    if name in _PLAIN:
        return _PLAIN[name]
    kind, _, rest = name.partition(":")
    parts = rest.split(":")
    if kind == "timestamp":
        unit, _, zone = rest.partition(":")
        return cast("pa.DataType", pa.timestamp(unit, None if zone == _NO_ZONE else zone))
    made: Any = None
    if kind in ("time32", "time64", "duration"):
        made = getattr(pa, kind)(rest)
    elif kind == "decimal":
        made = getattr(pa, f"decimal{parts[0]}")(int(parts[1]), int(parts[2]))
    elif kind == "dict":
        made = pa.dictionary(_type_named(parts[1]), _type_named(parts[0]), parts[2] == "true")
    if made is None:
        raise InputError(f"unknown type {name!r} in a schema's JSON")
    found: pa.DataType = made
    return found


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
