"""Walking the field headers of a serialized protobuf message without building the message.

    08 96 01          field 1, varint 150
    12 02 61 62       field 2, two bytes

Only what the fast paths need: varints and where length-delimited fields are. Everything is checked against the end of the
buffer, so damaged bytes end in CorruptFileError.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.errors import CorruptFileError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def damaged(position: int, total: int) -> CorruptFileError:
    """The error for a field that its buffer cannot hold."""
    return CorruptFileError(
        f"protobuf field at byte {position} runs past the end of its message ({total} bytes) or has an impossible header",
        cure="The file is damaged; restore it from a copy, or check out another version of the table.",
    )


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """(value, position behind it) of the varint at `position`; at most ten bytes, as the format allows."""
    value = shift = 0
    start, total = position, len(data)
    while position < total and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise damaged(start, total)


_SINGLE = tuple(bytes([value]) for value in range(128))


def encode_varint(value: int) -> bytes:
    """The varint of a non-negative integer."""
    if 0 <= value < 128:
        return _SINGLE[value]
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_field(number: int, value: int | bytes) -> bytes:
    """One field: a varint, or length-delimited bytes. Zero and empty values are written too."""
    if isinstance(value, int):
        return encode_varint(number << 3 | VARINT) + encode_varint(value)
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value


def walk_fields(data: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) for each field: varints as int, length-delimited ones as a view, fixed widths as a view."""
    view = memoryview(data)
    position, total = 0, len(view)
    while position < total:
        start = position
        tag, position = read_varint(view, position)
        kind = tag & 7
        if kind == VARINT:
            value, position = read_varint(view, position)
            yield tag >> 3, value
            continue
        if kind == BYTES:
            size, position = read_varint(view, position)
        elif kind == FIXED64:
            size = 8
        elif kind == FIXED32:
            size = 4
        else:
            raise damaged(start, total)
        if size > total - position or tag < 8:
            raise damaged(start, total)
        yield tag >> 3, view[position : position + size]
        position += size
