"""Taking the fragments out of a serialized manifest without building the message.

12 02 08 01 18 07 12 02 08 02       fragments 08 01 and 08 02; left over: 18 07
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.rowids.walk import BYTES, FIXED32, FIXED64, VARINT, damaged, read_varint


def split_repeated(data: bytes, number: int) -> tuple[list[bytes], bytes]:
    """All values of one repeated message field (`number` < 16), and the message without them."""
    (chunks,), rest = split_all_repeated(data, (number,))
    return chunks, rest


def split_all_repeated(data: bytes, numbers: Sequence[int]) -> tuple[list[list[bytes]], bytes]:
    """The values of each of some repeated message fields (numbers < 16), and the message without them.

    A manifest is nearly nothing but its fragments and the fields of its schema: taking them out first leaves little for
    the protobuf runtime to build.
    """
    chunks: list[list[bytes]] = [[] for _ in numbers]
    wanted = {number << 3 | BYTES: found for number, found in zip(numbers, chunks, strict=True)}
    rest: list[bytes] = []
    position, total, kept = 0, len(data), 0
    while position < total:
        start = position
        tag = data[position]
        if tag & 7 == BYTES and 8 <= tag < 0x80:
            size, position = _size(data, position + 1)
            stop = position + size
            if stop > total:
                raise damaged(start, total)
            found = wanted.get(tag)
            if found is None:
                position = stop
                continue
            if kept < start:
                rest.append(data[kept:start])
            found.append(data[position:stop])
            position = kept = stop
        else:
            position = field_end(data, position)
    rest.append(data[kept:])
    return chunks, b"".join(rest)


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
