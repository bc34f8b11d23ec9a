"""Names of types as Arrow's Rust library writes and reads them: `arrow_typeof`, `arrow_cast`.

::

    list<item: int64> <-> List(Int64)
    timestamp[ns, tz=UTC] <-> Timestamp(ns, "UTC"), or Timestamp(Nanosecond, Some("UTC"))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError

_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "second": "s",
        "millisecond": "ms",
        "microsecond": "us",
        "nanosecond": "ns",
        "s": "s",
        "ms": "ms",
        "us": "us",
        "ns": "ns",
    }
)
_CALL = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)
_FIXED = re.compile(r"(\d+) x (.+)\Z|(.+), (\d+)\Z", re.DOTALL)


def arrow_type(name: str) -> pa.DataType | None:
    """The type of a name, in any case; None: no such name."""
    text = name.strip()
    known = _PLAIN.get(text.lower())
    match = _CALL.match(text)
    if known is not None or match is None:
        return known
    kind, inside = match[1].lower(), match[2].strip()
    try:
        return _of_parameters(kind, inside)
    except (ValueError, TypeError):
        return None


def _of_parameters(kind: str, inside: str) -> pa.DataType | None:
    if kind in ("list", "largelist"):
        item = arrow_type(inside)
        return None if item is None else (pa.list_ if kind == "list" else pa.large_list)(item)
    if kind == "fixedsizelist":
        match = _FIXED.match(inside)
        item = None if match is None else arrow_type(match[2] or match[3])
        return None if match is None or item is None else pa.list_(item, int(match[1] or match[4]))
    if kind == "fixedsizebinary":
        return pa.binary(int(inside))
    first, _, second = (part.strip() for part in inside.partition(","))
    if kind in ("decimal32", "decimal64", "decimal128", "decimal256"):
        return getattr(pa, kind)(int(first), int(second or 0))  # type: ignore[no-any-return]
    unit = _UNITS.get(first.lower().replace("\u00b5s", "us"))
    if unit is None or kind not in ("timestamp", "time32", "time64", "duration"):
        return None
    if kind != "timestamp":
        return getattr(pa, kind)(unit)  # type: ignore[no-any-return]
    zone = re.search(r'"([^"]+)"', second)
    make: Any = pa.timestamp
    found: pa.DataType = make(unit) if zone is None else make(unit, zone[1])
    return found


def type_name(kind: pa.DataType) -> str:
    """A type as Arrow's Rust library writes it, which `arrow_typeof` tells: `List(Int64)`."""
    t, known = pa.types, _TYPE_NAMES.get(kind)
    any_kind: Any = kind
    if known is not None:
        return known
    if t.is_list(kind) or t.is_large_list(kind):
        return f"{'Large' if t.is_large_list(kind) else ''}List({_item_name(any_kind.value_field)})"
    if t.is_fixed_size_list(kind):
        return f"FixedSizeList({any_kind.list_size} x {_item_name(any_kind.value_field)})"
    if t.is_struct(kind):
        return f"Struct({', '.join(map(_field_name, any_kind))})"
    if t.is_map(kind):
        entries = f"{_field_name(any_kind.key_field)}, {_field_name(any_kind.item_field)}"
        return f'Map("entries": non-null Struct({entries}), {"sorted" if any_kind.keys_sorted else "unsorted"})'
    if t.is_dictionary(kind):
        return f"Dictionary({type_name(any_kind.index_type)}, {type_name(any_kind.value_type)})"
    if t.is_decimal(kind):
        return f"Decimal{any_kind.bit_width}({any_kind.precision}, {any_kind.scale})"
    if t.is_fixed_size_binary(kind):
        return f"FixedSizeBinary({any_kind.byte_width})"
    if t.is_temporal(kind):
        name = "Timestamp" if t.is_timestamp(kind) else "Duration" if t.is_duration(kind) else f"Time{any_kind.bit_width}"
        zone = f', "{any_kind.tz}"' if t.is_timestamp(kind) and any_kind.tz else ""
        return f"{name}({any_kind.unit.replace('us', 'µs')}{zone})"
    raise FilterError(f"arrow_typeof has no name for {kind}")


def _item_name(field: Any) -> str:
    name = "" if field.name == "item" else f", field: '{field.name}'"
    return f"{'' if field.nullable else 'non-null '}{type_name(field.type)}{name}"


def _field_name(field: Any) -> str:
    return f'"{field.name}": {"" if field.nullable else "non-null "}{type_name(field.type)}'


_TYPE_NAMES: Mapping[pa.DataType, str] = MappingProxyType(
    {
        pa.null(): "Null", pa.bool_(): "Boolean", pa.float16(): "Float16", pa.float32(): "Float32", pa.float64(): "Float64",
        pa.string(): "Utf8", pa.large_string(): "LargeUtf8", pa.string_view(): "Utf8View", pa.binary(): "Binary",
        pa.large_binary(): "LargeBinary", pa.binary_view(): "BinaryView", pa.date32(): "Date32", pa.date64(): "Date64",
        **{getattr(pa, f"{sign}int{bits}")(): f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    }
)  # fmt: skip
_PLAIN: Mapping[str, pa.DataType] = MappingProxyType({name.lower(): kind for kind, name in _TYPE_NAMES.items()})
