"""Logical type strings: how a Lance schema writes down the type of one field.

Only types without child fields live here; struct, list and map are built from their children in `from_arrow` and
`to_arrow`. (Spec: table format, "schema", logical types.)

    int64                               int64
    timestamp:us:UTC                    timestamp[us, tz=UTC]          "-" stands for "no zone"
    decimal:128:20:2                    decimal128(20, 2)
    fixed_size_list:float:768           fixed_size_list<item: float>[768]
    fixed_size_list:fixed_size_list:float:2:3                          the innermost size comes first
    dict:string:int32:false             dictionary<values=string, indices=int32>
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from lance_core.arrow.extension import BFLOAT16, EXTENSION_METADATA, EXTENSION_NAME
from lance_core.errors import FormatError, InputError

STRUCT = "struct"
MAP = "map"
JSON = "json"
LIST_TYPES = frozenset({"list", "large_list", "list.struct", "large_list.struct"})

_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "duration:ms": pa.duration("ms"),
    "duration:us": pa.duration("us"),
    "duration:ns": pa.duration("ns"),
}
_NAMES: dict[pa.DataType, str] = {arrow_type: name for name, arrow_type in _SIMPLE.items()}
_NAMES_OF_VIEWS = {"string_view": "string", "binary_view": "binary"}
"""Views are stored, and read back, as what they view."""


def logical_of(arrow_type: pa.DataType, *, path: str) -> str:
    """The logical type string of an Arrow type without child fields.

    `path` names the column in the InputError raised for types the format does not have.
    """
    simple = _NAMES.get(arrow_type) or _NAMES_OF_VIEWS.get(str(arrow_type))
    if simple is not None:
        return simple
    types = pa.types
    if types.is_timestamp(arrow_type):
        return f"timestamp:{arrow_type.unit}:{arrow_type.tz or '-'}"
    if types.is_decimal128(arrow_type) or types.is_decimal256(arrow_type):
        return f"decimal:{arrow_type.bit_width}:{arrow_type.precision}:{arrow_type.scale}"
    if types.is_fixed_size_binary(arrow_type):
        return f"fixed_size_binary:{arrow_type.byte_width}"
    if types.is_dictionary(arrow_type):
        return _logical_of_dictionary(arrow_type, path=path)
    if types.is_fixed_size_list(arrow_type):
        return _logical_of_fixed_size_list(arrow_type, path=path)
    raise refused(arrow_type, path=path)


def refused(arrow_type: pa.DataType, *, path: str, why: str = "the Lance format has no such type") -> InputError:
    """The error for an Arrow type that cannot be stored."""
    return InputError(f"column {path!r} has type {arrow_type}: {why}", cure="Cast the column before writing it.")


def _logical_of_dictionary(arrow_type: pa.DictionaryType[Any, Any, Any], *, path: str) -> str:
    value = _NAMES.get(arrow_type.value_type) or _NAMES_OF_VIEWS.get(str(arrow_type.value_type), "")
    # The string is split at colons when it is read, so a value type that contains one cannot be written.
    if not value or ":" in value or value == "null":
        raise refused(arrow_type, path=path, why=f"the Lance format has no dictionaries of {arrow_type.value_type}")
    return f"dict:{value}:{_NAMES[arrow_type.index_type]}:false"


def _logical_of_fixed_size_list(arrow_type: pa.FixedSizeListType[Any, Any], *, path: str) -> str:
    item = arrow_type.value_type
    if _item_extension(arrow_type) == BFLOAT16:
        return f"fixed_size_list:{BFLOAT16}:{arrow_type.list_size}"
    if isinstance(item, pa.BaseExtensionType):
        # The string has room for that extension only; items of others are stored, and read back, as what they extend.
        item = item.storage_type
    if pa.types.is_nested(item) and not pa.types.is_fixed_size_list(item):
        raise refused(arrow_type, path=path, why=f"fixed-size lists of {item} are not supported")
    # Items without a fixed width can be written down; rows of them cannot be stored.
    return f"fixed_size_list:{logical_of(item, path=path)}:{arrow_type.list_size}"


def _item_extension(arrow_type: pa.FixedSizeListType[Any, Any]) -> str:
    """The extension of a list's items, registered in this process or not; "" for none."""
    if isinstance(arrow_type.value_type, pa.BaseExtensionType):
        return str(arrow_type.value_type.extension_name)
    name: bytes = (arrow_type.value_field.metadata or {}).get(EXTENSION_NAME.encode(), b"")
    return name.decode("utf-8", "replace")


def holds_extension_items(text: str) -> bool:
    """Whether the type is a fixed-size list whose items are of an extension type."""
    return text.startswith("fixed_size_list:") and BFLOAT16 in text


def parse_logical(text: str, *, path: str = "") -> pa.DataType:
    """The Arrow type a logical type string stands for; types with child fields are not accepted.

    Raises FormatError naming the column and the string when it cannot be parsed.
    """
    simple = _SIMPLE.get(text)
    if simple is not None:
        return simple
    kind, _, rest = text.partition(":")
    parse = _PARSERS.get(kind)
    if parse is None:
        raise FormatError(f"column {path!r}: unknown logical type {text!r}")
    try:
        return parse(rest)
    except (ValueError, KeyError, IndexError, pa.ArrowException) as error:
        raise FormatError(f"column {path!r}: malformed logical type {text!r} ({error})") from error


def _parse_timestamp(rest: str) -> pa.DataType:
    # A zone may itself hold a colon ("+05:30"), so only the first one separates.
    unit, _, zone = rest.partition(":")
    return cast("pa.DataType", pa.timestamp(cast("Any", unit), None if zone in ("", "-") else zone))


def _parse_decimal(rest: str) -> pa.DataType:
    width, precision, scale = rest.split(":")
    make: Any = {"128": pa.decimal128, "256": pa.decimal256}[width]
    made: pa.DataType = make(int(precision), int(scale))
    return made


def _parse_fixed_size_binary(rest: str) -> pa.DataType:
    width = int(rest)
    if width < 0:
        raise ValueError("negative width")
    return pa.binary(width)


def _parse_fixed_size_list(rest: str) -> pa.DataType:
    item, _, size = rest.rpartition(":")
    dimension = int(size)
    if dimension <= 0:
        raise ValueError(f"invalid list size {dimension}")
    if item == BFLOAT16:
        return pa.list_(
            pa.field("item", pa.binary(2), metadata={EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}), dimension
        )
    return pa.list_(parse_logical(item), dimension)


def _parse_dictionary(rest: str) -> pa.DataType:
    value, index, _ordered = rest.rsplit(":", 2)
    index_type = _SIMPLE[index]
    if not pa.types.is_integer(index_type):
        raise ValueError(f"invalid index type {index}")
    return cast("pa.DataType", pa.dictionary(index_type, cast("Any", parse_logical(value))))


_PARSERS = {
    "timestamp": _parse_timestamp,
    "decimal": _parse_decimal,
    "fixed_size_binary": _parse_fixed_size_binary,
    "fixed_size_list": _parse_fixed_size_list,
    "dict": _parse_dictionary,
}
