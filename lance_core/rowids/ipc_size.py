"""The memory that the compressed buffers of an Arrow file claim, computed before anything is decompressed.

::

    37 KB deletion file whose one buffer says "1.2 GB follow"     -> 1_200_000_000

Each compressed buffer begins with its size when decompressed (int64, little-endian); Arrow allocates that much at once. Only
the places of the buffers are read from the messages' tables (flatbuffers).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from lance_core.errors import CorruptFileError

_MAGIC = b"ARROW1"
_BLOCK = struct.Struct("<qiiq")
"""Of each record batch, in the footer: where its message begins, bytes of metadata (and padding), bytes of the body."""
_BUFFER = struct.Struct("<qq")
_RECORD_BATCHES = 3
_HEADER = 2
_BUFFERS = 2


def claimed_size(data: bytes | memoryview, *, what: str) -> int:
    """Bytes that the buffers of all record batches of an Arrow file say they have. CorruptFileError when it is none."""
    view = memoryview(data)
    try:
        return sum(_claimed(view, *block) for block in _blocks(view))
    except (struct.error, IndexError, OverflowError) as error:
        raise CorruptFileError(f"{what} is not an Arrow file: {error}", cure="The file is damaged.") from error


def _blocks(view: memoryview) -> Iterator[tuple[int, int, int]]:
    if len(view) < 18 or bytes(view[-6:]) != _MAGIC:
        raise struct.error("it does not end with the Arrow magic bytes")
    (size,) = struct.unpack_from("<i", view, len(view) - 10)
    start = len(view) - 10 - size
    if size <= 0 or start < 8:
        raise struct.error("its footer is larger than the file")
    footer = view[start : len(view) - 10]
    place, count = _vector(footer, _table(footer, 0), _RECORD_BATCHES)
    for number in range(count):
        offset, metadata, _, body = _BLOCK.unpack_from(footer, place + number * _BLOCK.size)
        yield offset, metadata, body


def _claimed(view: memoryview, offset: int, metadata: int, body: int) -> int:
    if min(offset, metadata, body) < 0 or offset + metadata + body > len(view):
        raise struct.error("a record batch is outside the file")
    message = view[offset : offset + metadata]
    skipped = 8 if bytes(message[:4]) == b"\xff\xff\xff\xff" else 4
    message = message[skipped:]
    header = _field(message, _table(message, 0), _HEADER)
    if header is None:
        return 0
    place, count = _vector(message, header + _uint(message, header), _BUFFERS)
    content = view[offset + metadata : offset + metadata + body]
    total = 0
    for number in range(count):
        at, size = _BUFFER.unpack_from(message, place + number * _BUFFER.size)
        if size >= 8 and 0 <= at <= len(content) - 8:
            total += max(size, struct.unpack_from("<q", content, at)[0])
    return total


def _uint(view: memoryview, at: int) -> int:
    if at < 0:
        raise struct.error("a table points outside the message")
    return int(struct.unpack_from("<I", view, at)[0])


def _table(view: memoryview, at: int) -> int:
    return at + _uint(view, at)


def _field(view: memoryview, table: int, number: int) -> int | None:
    """Where a field of a table is; None when it is left out."""
    vtable = table - int(struct.unpack_from("<i", view, table)[0])
    if vtable < 0:
        raise struct.error("a table points outside the message")
    (size,) = struct.unpack_from("<H", view, vtable)
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", view, vtable + place)
    return table + offset if offset else None


def _vector(view: memoryview, table: int, number: int) -> tuple[int, int]:
    """Where the items of a vector begin, and how many there are."""
    field = _field(view, table, number)
    if field is None:
        return 0, 0
    start = field + _uint(view, field)
    count = _uint(view, start)
    if count > len(view):
        raise struct.error("a vector is longer than its message")
    return start + 4, count
