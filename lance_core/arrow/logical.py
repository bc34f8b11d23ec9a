"""Logical type strings: how a Lance schema writes down the type of one field.

Only types without child fields live here; struct, list and map are built from their children in `from_arrow` and
`to_arrow`. (Spec: table format, "schema", logical types.)

    int64                               int64
    timestamp:us:UTC                    timestamp[us, tz=UTC]          "-" stands for "no zone"
    decimal:128:20:2                    decimal128(20, 2)
    fixed_size_list:float:768           fixed_size_list<item: float>[768]
    fixed_size_list:fixed_size_list:float:2:3                          the innermost size comes first
    dict:string:int32:false             dictionary<values=string, indices=int32>

The grammar; `simple` is a row of the table below, `number` has up to ten digits without a sign or leading zeros:

    type      = simple | timestamp | decimal | binary | list | dict
    timestamp = "timestamp:" ("s" | "ms" | "us" | "ns") [":" [zone | "-"]]      older writers leave "-", or ":-", out
    zone      = a name that exists | ("+" | "-") hh [[":"] mm]                  kept as Arrow has them: +05:30
    decimal   = "decimal:" ("128" | "256") ":" precision ":" scale
    binary    = "fixed_size_binary:" number
    list      = "fixed_size_list:" (type | "lance.bfloat16") ":" number         at most 16 inside each other
    dict      = "dict:" simple without ":" ":" integer type ":" ["false" | "true"]    order is not kept; written as "false"

A value of a fixed size has at most 256 MiB.

Extension types: a storage type plus a name, kept in field metadata.

    user gives         stored as                        extension name     read back as
    arrow.json         json (JSONB in large_binary)     lance.json         arrow.json
    arrow.uuid         fixed_size_binary:16             arrow.uuid         arrow.uuid
    lance.bfloat16     fixed_size_binary:2              lance.bfloat16     as it was
    lance.blob.v2      struct(data, uri, ...)           lance.blob.v2      as it was

Types that this process has registered with pyarrow come back as such; others stay storage plus metadata.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import pyarrow as pa

from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError

STRUCT = "struct"
MAP = "map"
JSON = "json"
LIST_TYPES = frozenset({"list", "large_list", "list.struct", "large_list.struct"})
FIXED_SIZE_LIST_OF_STRUCT = "fixed_size_list:struct:"

MAX_DIMENSIONS = 16
"""Lists of a fixed size inside each other."""
MAX_VALUE_SIZE = 1 << 28
"""Bytes of one value of a fixed size. A batch has at least one row, so this is what a claimed size can ask for."""

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
_UNITS: dict[str, Literal["s", "ms", "us", "ns"]] = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}
_DECIMALS: dict[str, tuple[Callable[[int, int], pa.DataType], int]] = {
    "128": (pa.decimal128, 38),
    "256": (pa.decimal256, 76),
}
NO_ITEMS = "a fixed-size list has at least one item"
_ORDERED = frozenset({"false", "true", ""})
_NUMBER = re.compile("0|[1-9][0-9]{0,9}")
_DECIMAL = re.compile("([1-9][0-9]{0,3}):(0|[1-9][0-9]{0,2}):(0|-?[1-9][0-9]{0,2})")
_ZONE = re.compile("[A-Za-z0-9_+:/-]{1,64}")
_OFFSET = re.compile("([+-](?:[01][0-9]|2[0-3])):?([0-5][0-9])?")
_WELL_FORMED = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,63}(:[A-Za-z0-9_.+/-]{1,64}){0,16}")
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
        if arrow_type.tz and (not _ZONE.fullmatch(arrow_type.tz) or known_zone(arrow_type.tz) is None):
            raise refused(arrow_type, path=path, why="there is no such time zone on this machine")
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


def value_size(arrow_type: pa.DataType) -> int:
    """The bytes of one value that its type alone promises: of texts, bytes and lists, their offset."""
    types = pa.types
    if types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * value_size(arrow_type.value_type)
    if types.is_struct(arrow_type):
        return 1 + sum(value_size(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    if isinstance(arrow_type, pa.BaseExtensionType):
        return value_size(arrow_type.storage_type)
    if types.is_dictionary(arrow_type):
        return value_size(arrow_type.index_type)
    try:
        return max(1, arrow_type.bit_width // 8)
    except ValueError:  # of no fixed width
        return 8


def _logical_of_dictionary(arrow_type: pa.DictionaryType[Any, Any, Any], *, path: str) -> str:
    value = _NAMES.get(arrow_type.value_type) or _NAMES_OF_VIEWS.get(str(arrow_type.value_type), "")
    # The string is split at colons when it is read, so a value type that contains one cannot be written.
    if not value or ":" in value or value == "null":
        raise refused(arrow_type, path=path, why=f"the Lance format has no dictionaries of {arrow_type.value_type}")
    return f"dict:{value}:{_NAMES[arrow_type.index_type]}:false"


def _logical_of_fixed_size_list(arrow_type: pa.FixedSizeListType[Any, Any], *, path: str) -> str:
    item = arrow_type.value_type
    if not arrow_type.list_size:
        raise refused(arrow_type, path=path, why=NO_ITEMS)
    if _item_extension(arrow_type) == BFLOAT16:
        return f"fixed_size_list:{BFLOAT16}:{arrow_type.list_size}"
    if isinstance(item, pa.BaseExtensionType):
        # The string has room for that extension only; items of others are stored, and read back, as what they extend.
        item = item.storage_type
    if pa.types.is_nested(item) and not pa.types.is_fixed_size_list(item):
        raise refused(arrow_type, path=path, why=f"fixed-size lists of {item} are not supported")
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

    The string is of the grammar in the module's docstring, or it is refused before Arrow sees it: some types that it cannot
    hold end the process inside of it. `logical_of(parse_logical(text))` is `text`, up to the spellings named there. Raises
    CorruptFileError, naming the column and the string, for what the grammar does not have, and UnsupportedFeatureError for a
    type that is well-formed and unknown, or too large.
    """
    return _parse(text, _Place(path, text), 0)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a string was found, for the message of an error."""

    path: str
    text: str

    def malformed(self, why: str) -> CorruptFileError:
        return CorruptFileError(
            f"column {self.path!r}: malformed logical type {self._shown} ({why})",
            cure="The schema is damaged; check out another version of the table, or restore the file from a copy.",
        )

    def unsupported(
        self, why: str, *, cure: str = "Read the table with a release that knows it."
    ) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"column {self.path!r}: logical type {self._shown}: {why}", cure=cure)

    @property
    def _shown(self) -> str:
        return repr(self.text if len(self.text) <= 100 else f"{self.text[:100]}...")


def _parse(text: str, place: _Place, depth: int) -> pa.DataType:
    simple = _SIMPLE.get(text)
    if simple is not None:
        return simple
    kind, _, rest = text.partition(":")
    parse = _PARSERS.get(kind)
    if parse is not None:
        return parse(rest, place, depth)
    if _WELL_FORMED.fullmatch(text):
        raise place.unsupported("this release does not know it")
    raise place.malformed("it is not the name of a type")


def _parse_timestamp(rest: str, place: _Place, depth: int) -> pa.DataType:
    # A zone may itself hold a colon ("+05:30"), so only the first one separates.
    unit, _, zone = rest.partition(":")
    if unit not in _UNITS:
        raise place.malformed(f"expected one of the units {', '.join(_UNITS)}")
    if zone in ("", "-"):
        return pa.timestamp(_UNITS[unit])
    if not _ZONE.fullmatch(zone):
        raise place.malformed("expected the name of a time zone")
    known = known_zone(zone)
    if known is None:
        cure = "Update the package tzdata; the zone may be a new one."
        raise place.unsupported("there is no such time zone on this machine", cure=cure)
    return cast("pa.DataType", pa.timestamp(_UNITS[unit], known))


def known_zone(zone: str) -> str | None:
    """The name by which Arrow knows a time zone: offsets get their colon ("+0530" is "+05:30"). None when nobody does."""
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        return f"{offset[1]}:{offset[2] or '00'}"
    try:
        pa.lib.string_to_tzinfo(zone)
    except Exception:  # each library of time zones has errors of its own
        return None
    return zone


def _parse_decimal(rest: str, place: _Place, depth: int) -> pa.DataType:
    found = _DECIMAL.fullmatch(rest)
    if found is None:
        raise place.malformed("expected decimal:<width>:<precision>:<scale>")
    if found[1] not in _DECIMALS:
        raise place.unsupported("this release knows decimals of 128 and 256 bits")
    (make, most), precision, scale = _DECIMALS[found[1]], int(found[2]), int(found[3])
    if not 1 <= precision <= most or not -128 <= scale <= 127:
        raise place.malformed(f"expected a precision of 1 to {most}, and a scale of -128 to 127")
    return make(precision, scale)


def _parse_fixed_size_binary(rest: str, place: _Place, depth: int) -> pa.DataType:
    return pa.binary(_size(rest, place, least=0))


def _parse_fixed_size_list(rest: str, place: _Place, depth: int) -> pa.DataType:
    item, _, size = rest.rpartition(":")
    dimension = _size(size, place, least=1)
    if item == BFLOAT16:
        metadata = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        return pa.list_(pa.field("item", pa.binary(2), metadata=metadata), dimension)
    if depth == MAX_DIMENSIONS:
        raise place.unsupported(f"it is nested more than {MAX_DIMENSIONS} levels deep")
    made = pa.list_(_parse(item, place, depth + 1), dimension)
    if value_size(made) > MAX_VALUE_SIZE:
        raise place.unsupported(f"a value has more than {MAX_VALUE_SIZE >> 20} MiB")
    return made


def parse_struct_dimension(text: str, *, path: str) -> int:
    """The number of items that each value of a `fixed_size_list:struct:<number>` has."""
    return _size(text.removeprefix(FIXED_SIZE_LIST_OF_STRUCT), _Place(path, text), least=1)


def _size(text: str, place: _Place, *, least: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) < least:
        raise place.malformed(f"expected a size of at least {least}")
    if int(text) > MAX_VALUE_SIZE:
        raise place.unsupported(f"a value has more than {MAX_VALUE_SIZE >> 20} MiB")
    return int(text)


def _parse_dictionary(rest: str, place: _Place, depth: int) -> pa.DataType:
    value, _, rest = rest.partition(":")
    index, _, ordered = rest.partition(":")
    index_type = _SIMPLE.get(index)
    if index_type is None or not pa.types.is_integer(index_type) or ordered not in _ORDERED:
        raise place.malformed("expected dict:<type of the values>:<integer type>:false")
    value_type = _SIMPLE.get(value)
    if value_type is None or value == "null":
        raise place.unsupported("this release knows dictionaries of numbers, booleans, texts and bytes")
    return cast("pa.DataType", pa.dictionary(index_type, cast("Any", value_type)))


_Parser: TypeAlias = "Callable[[str, _Place, int], pa.DataType]"

_PARSERS: dict[str, _Parser] = {
    "timestamp": _parse_timestamp,
    "decimal": _parse_decimal,
    "fixed_size_binary": _parse_fixed_size_binary,
    "fixed_size_list": _parse_fixed_size_list,
    "dict": _parse_dictionary,
}


EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
ARROW_JSON = "arrow.json"
LANCE_JSON = "lance.json"
BFLOAT16 = "lance.bfloat16"
BLOB_V2 = "lance.blob.v2"
BLOB_METADATA = "lance-encoding:blob"


def text_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, bytes]:
    """Arrow metadata with text keys, as Lance keeps it."""
    return {key.decode("utf-8"): bytes(value) for key, value in (metadata or {}).items()}


def unwrap(field: pa.Field[Any]) -> tuple[pa.DataType, dict[str, bytes], str]:
    """(storage type, metadata with the extension's two keys, extension name or "") of an Arrow field."""
    metadata = text_metadata(field.metadata)
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        metadata.update(_exported_metadata(field))
        arrow_type = arrow_type.storage_type
    return arrow_type, metadata, metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace")


def resolve_extensions(schema: pa.Schema) -> pa.Schema:
    """The schema with every extension this process has registered turned from metadata into its type.

    CorruptFileError when an extension does not accept the metadata, or the type, that its field has.
    """
    # Arrow resolves extension names whenever a schema crosses a process; a round trip does exactly that.
    try:
        return pa.ipc.read_schema(schema.serialize())
    except Exception as error:  # the code of an extension raises what it likes
        columns, why = ", ".join(schema.names[:3]), str(error)[:200]
        raise CorruptFileError(
            f"a column of {columns} names an extension type that refuses its metadata ({why})",
            cure="The schema is damaged; check out another version of the table, or restore the file from a copy.",
        ) from error


class _ArrowSchema(ctypes.Structure):
    """The head of the C data interface's ArrowSchema."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _exported_metadata(field: pa.Field[Any]) -> dict[str, bytes]:
    """The two metadata keys that stand for an extension type outside this process.

    pyarrow shows the serialized form of built-in extension types only through the C data interface.
    Layout there: i32 count, then for each key and each value an i32 length and the bytes.
    """
    capsule = field.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    exported = ctypes.cast(get_pointer(capsule, b"arrow_schema"), ctypes.POINTER(_ArrowSchema)).contents
    position = exported.metadata

    def take_int() -> int:
        nonlocal position
        (value,) = struct.unpack("=i", ctypes.string_at(position, 4))
        position += 4
        return int(value)

    def take_bytes() -> bytes:
        nonlocal position
        size = take_int()
        position += size
        return ctypes.string_at(position - size, size)

    pairs = {take_bytes().decode(): take_bytes() for _ in range(take_int())}
    return {key: pairs.get(key, b"") for key in (EXTENSION_NAME, EXTENSION_METADATA)}
