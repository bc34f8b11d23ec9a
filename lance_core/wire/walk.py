"""Walking over the fields of serialized messages, header by header, without building any.

18 07 12 02 08 02       a field ends at byte 2, the next at byte 6
"""

from __future__ import annotations

from lance_core.rowids.walk import BYTES, FIXED32, FIXED64, VARINT, damaged, read_varint


def entry_end(data: bytes, position: int) -> int:
    """The position behind the length-delimited field whose one-byte tag is at `position`."""
    size, start = _size(data, position + 1)
    if start + size > len(data):
        raise damaged(position, len(data))
    return start + size


def _size(data: bytes, position: int) -> tuple[int, int]:
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    return read_varint(data, position)


def field_end(data: bytes, position: int) -> int:
    """The position behind the field whose header is at `position`."""
    start, total = position, len(data)
    if position + 1 < total and 8 <= (tag := data[position]) < 0x80 and (value := data[position + 1]) < 0x80:
        # Both are one byte, as in nearly all fields.
        if tag & 7 == VARINT:
            return position + 2
        if tag & 7 == BYTES and position + 2 + value <= total:
            return position + 2 + value
    tag, position = read_varint(data, position)
    kind = tag & 7
    if kind == VARINT:
        return read_varint(data, position)[1]
    if kind == BYTES:
        size, position = read_varint(data, position)
    elif kind == FIXED64:
        size = 8
    elif kind == FIXED32:
        size = 4
    else:
        raise damaged(start, total)
    if size > total - position or tag < 8:
        raise damaged(start, total)
    return position + size


def last_values(data: bytes, number: int, message: int) -> tuple[int, bytes]:
    """(varint field `number`, length-delimited field `message`) of a message, 0 and empty where absent; both numbers < 16.

    Called for each fragment of a table, hence one loop without calls for the headers that occur.
    """
    wanted, nested = number << 3 | VARINT, message << 3 | BYTES
    value, inner = 0, b""
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 not in (VARINT, BYTES) or tag < 8:
            position = field_end(data, position)
            continue
        found, stop = _size(data, position + 1)
        if tag & 7 == BYTES:
            stop += found
            if stop > total:
                raise damaged(position, total)
            if tag == nested:
                inner = data[stop - found : stop]
        elif tag == wanted:
            value = found
        position = stop
    return value, inner


def last_varints(data: bytes, first: int, second: int) -> tuple[int, int]:
    """Varint fields `first` and `second` of a message, 0 where absent; both numbers < 16. One loop, as `last_values`."""
    one, other = first << 3 | VARINT, second << 3 | VARINT
    found, another = 0, 0
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 not in (VARINT, BYTES) or tag < 8:
            position = field_end(data, position)
            continue
        value, stop = _size(data, position + 1)
        if tag & 7 == BYTES:
            stop += value
            if stop > total:
                raise damaged(position, total)
        elif tag == one:
            found = value
        elif tag == other:
            another = value
        position = stop
    return found, another


def all_messages(data: bytes, number: int) -> list[bytes]:
    """The contents of each length-delimited field `number` of a message; the number is < 16."""
    wanted = number << 3 | BYTES
    found = []
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 != BYTES or tag < 8:
            position = field_end(data, position)
            continue
        size, start = _size(data, position + 1)
        position = start + size
        if position > total:
            raise damaged(start, total)
        if tag == wanted:
            found.append(data[start:position])
    return found
