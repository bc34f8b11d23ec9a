"""Walking the field headers of a serialized protobuf message without building the message.

    08 96 01          field 1, varint 150
    12 02 61 62       field 2, two bytes

Only what the fast paths need: varints and where length-delimited fields lie. Everything is checked against the end of the
buffer, so damaged bytes end in CorruptFileError.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.errors import CorruptFileError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _damaged(position: int, total: int) -> CorruptFileError:
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
    raise _damaged(start, total)


def encode_varint(value: int) -> bytes:
    """The varint of a non-negative integer."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def walk_fields(data: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) for each field: varints as int, length-delimited ones as a view, fixed widths as a view."""
    view = memoryview(data)
    position, total = 0, len(view)
    while position < total:
        start = position
        tag, position = read_varint(view, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = read_varint(view, position)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, position = read_varint(view, position)
        elif kind == _FIXED64:
            size = 8
        elif kind == _FIXED32:
            size = 4
        else:
            raise _damaged(start, total)
        if size > total - position or tag < 8:
            raise _damaged(start, total)
        yield tag >> 3, view[position : position + size]
        position += size


def split_repeated(data: bytes, number: int) -> tuple[list[bytes], bytes]:
    """All values of one repeated message field (`number` < 16), and the message without them.

    A manifest is nearly nothing but its fragments: taking them out first leaves little for the protobuf runtime to build.
    """
    wanted = number << 3 | _BYTES
    chunks: list[bytes] = []
    rest: list[bytes] = []
    position, total, kept = 0, len(data), 0
    while position < total:
        start = position
        if data[position] == wanted:
            size, position = _size(data, position + 1)
            stop = position + size
            if stop > total:
                raise _damaged(start, total)
            if kept < start:
                rest.append(data[kept:start])
            chunks.append(data[position:stop])
            position = kept = stop
        else:
            position = _skip(data, position)
    rest.append(data[kept:])
    return chunks, b"".join(rest)


def _size(data: bytes, position: int) -> tuple[int, int]:
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    return read_varint(data, position)


def _skip(data: bytes, position: int) -> int:
    """The position behind the field whose header is at `position`."""
    start, total = position, len(data)
    tag, position = read_varint(data, position)
    kind = tag & 7
    if kind == _VARINT:
        return read_varint(data, position)[1]
    if kind == _BYTES:
        size, position = read_varint(data, position)
    elif kind == _FIXED64:
        size = 8
    elif kind == _FIXED32:
        size = 4
    else:
        raise _damaged(start, total)
    if size > total - position or tag < 8:
        raise _damaged(start, total)
    return position + size
