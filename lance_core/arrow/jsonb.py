"""JSONB: JSON as the format stores it, a binary tree of headers, entries and payloads; big-endian.

    42            20000000 20000002 502a            scalar container, one entry: number of 2 bytes, unsigned 42
    {"b":1}       40000001 10000001 20000002 62 5001

    container header   scalar 0x20000000 | object 0x40000000 + n | array 0x80000000 + n
    entry (u32)        type << 28 | bytes; types: 0 null, 1 string, 2 number, 3 false, 4 true, 5 container, 6 extension
    numbers            tag, then the value: 00 zero, 10 NaN, 20 +inf, 30 -inf, 40 signed, 50 unsigned, 60 f64, 70 decimal

An object has n key entries and n value entries; keys are sorted by their UTF-8 bytes. (Spec: table format, "JSONB".)
"""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lance_core.arrays import Bools
from lance_core.errors import CorruptFileError, InputError

_SCALAR, _OBJECT, _ARRAY = 0x20000000, 0x40000000, 0x80000000
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = range(6)
_MAX_DEPTH = 200
_U32 = struct.Struct(">I")
_ENTRY_SIZE = (1 << 28) - 1
_HIDDEN = _U32.pack(_SCALAR) + _U32.pack(_NULL << 28)
_WIDTHS = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))


def encode_jsonb(texts: pa.Array[Any]) -> pa.Array[Any]:
    """A string array of JSON texts as large_binary JSONB; nulls stay null. InputError names the row that is no JSON."""
    return pa.array([_encode_text(text, row) for row, text in enumerate(texts.to_pylist())], pa.large_binary())


def decode_jsonb(values: pa.Array[Any], visible: Bools | None = None) -> pa.Array[Any]:
    """A binary array of JSONB as a string array of compact JSON texts. CorruptFileError for malformed values.

    Values that are not `visible`, since they are under a null, are not decoded: they become the text `null`.
    """
    found = values.to_pylist()
    if visible is not None:
        found = [value if value is None or is_visible else _HIDDEN for value, is_visible in zip(found, visible, strict=True)]
    return pa.array([None if value is None else _decode_text(value) for value in found], pa.string())


def _encode_text(text: str | None, row: int) -> bytes | None:
    if text is None:
        return None
    try:
        parsed = json.loads(text)
        return encode_value(parsed)
    except (ValueError, RecursionError) as error:
        raise InputError(f"row {row} is not valid JSON: {error}", cure="Write valid JSON strings or nulls.") from error


def encode_value(value: Any) -> bytes:
    """One parsed JSON value as a JSONB container."""
    if isinstance(value, (dict, list)):
        return _encode_container(value)
    kind, payload = _encode_item(value)
    return _U32.pack(_SCALAR) + _U32.pack(kind << 28 | len(payload)) + payload


def _encode_container(value: dict[str, Any] | list[Any]) -> bytes:
    if isinstance(value, list):
        items = [_encode_item(item) for item in value]
        header = _ARRAY | len(items)
    else:
        keys = sorted(value, key=lambda key: key.encode("utf-8"))
        items = [(_STRING, key.encode("utf-8")) for key in keys]
        items.extend(_encode_item(value[key]) for key in keys)
        header = _OBJECT | len(value)
    entries = b"".join(_U32.pack(kind << 28 | len(payload)) for kind, payload in items)
    return _U32.pack(header) + entries + b"".join(payload for _, payload in items)


def _encode_item(value: Any) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if value is True:
        return _TRUE, b""
    if value is False:
        return _FALSE, b""
    if isinstance(value, str):
        return _STRING, value.encode("utf-8")
    if isinstance(value, (int, float)):
        return _NUMBER, _encode_number(value)
    return _CONTAINER, _encode_container(value)


def _encode_number(value: float) -> bytes:
    if isinstance(value, float):
        if math.isnan(value):
            return b"\x10"
        if math.isinf(value):
            return b"\x20" if value > 0 else b"\x30"
        return b"\x60" + struct.pack(">d", value)
    if value == 0:
        return b"\x00"
    if value > 0:
        for width, code in _WIDTHS:
            if value < 1 << (8 * width):
                return b"\x50" + struct.pack(f">{code}", value)
    else:
        for width, code in _WIDTHS:
            if value >= -(1 << (8 * width - 1)):
                return b"\x40" + struct.pack(f">{code.lower()}", value)
    return b"\x60" + struct.pack(">d", float(value))


def _decode_text(data: bytes) -> str:
    try:
        value = decode_value(data)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_decimal)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise CorruptFileError(f"malformed JSONB value ({error})") from error


def _decimal(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    raise ValueError(f"{type(value).__name__} cannot be encoded as JSON")


def decode_value(data: bytes) -> Any:
    """The Python value of one JSONB container."""
    return _decode_container(memoryview(data), 0)


def _decode_container(data: memoryview, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    (header,) = _U32.unpack(data[:4])
    count = header & 0x1FFFFFFF
    kind = header & 0xE0000000
    if kind == _SCALAR:
        return _decode_items(data, 1, depth)[0]
    if kind == _ARRAY:
        return _decode_items(data, count, depth)
    if kind == _OBJECT:
        items = _decode_items(data, 2 * count, depth)
        return dict(zip(items[:count], items[count:], strict=True))
    raise ValueError(f"unknown container header {header:#x}")


def _decode_items(data: memoryview, count: int, depth: int) -> list[Any]:
    if 4 + 4 * count > len(data):
        raise ValueError(f"{count} entries do not fit in {len(data)} bytes")
    position = 4 + 4 * count
    items = []
    for (entry,) in struct.iter_unpack(">I", data[4:position]):
        size = entry & _ENTRY_SIZE
        if position + size > len(data):
            raise ValueError(f"an entry of {size} bytes at {position} ends outside the value of {len(data)} bytes")
        items.append(_decode_item(entry >> 28, data[position : position + size], depth))
        position += size
    return items


def _decode_item(kind: int, payload: memoryview, depth: int) -> Any:
    if kind == _STRING:
        return str(payload, "utf-8")
    if kind == _NUMBER:
        return _decode_number(bytes(payload))
    if kind == _CONTAINER:
        return _decode_container(payload, depth + 1)
    if kind in (_NULL, _FALSE, _TRUE):
        return {_NULL: None, _FALSE: False, _TRUE: True}[kind]
    raise ValueError(f"unknown entry type {kind}")


def _decode_number(payload: bytes) -> int | float | Decimal:
    tag, rest = payload[0], payload[1:]
    fixed = {0x00: 0, 0x10: math.nan, 0x20: math.inf, 0x30: -math.inf}
    if tag in fixed:
        return fixed[tag]
    if tag in (0x40, 0x50):
        return int.from_bytes(rest, "big", signed=tag == 0x40)
    if tag == 0x60:
        return float(struct.unpack(">d", rest)[0])
    if tag == 0x70:
        return Decimal(int.from_bytes(rest[:-1], "big", signed=True)).scaleb(-rest[-1])
    raise ValueError(f"unknown number tag {tag:#x}")
