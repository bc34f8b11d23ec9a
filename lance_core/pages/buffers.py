"""Asking for parts of a page's buffers, and checking what came back.

::

    words, = yield [part(page, 0)]                       the whole of buffer 0
    rows,  = yield [part(page, 0, 128, 512)]             bytes 128..512 of it; outside the buffer: CorruptFileError
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from lance_core.codecs.blocks import Bytes
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange
from lance_core.format.layout import Page

Request = Generator[Sequence[ByteRange], Sequence[Buffer], list[Bytes]]


def require_buffers(page: Page, count: int, what: str) -> None:
    """Refuse a page that lists fewer buffers than its layout needs."""
    if len(page.buffers) < count:
        raise CorruptFileError(f"{what} page has {len(page.buffers)} buffers, expected {count}")


def part(page: Page, number: int, start: int = 0, end: int | None = None) -> ByteRange:
    """A range of the file: bytes `start` to `end` of the page's buffer `number`."""
    whole = page.buffers[number]
    stop = whole.size if end is None else end
    if not 0 <= start <= stop <= whole.size:
        raise CorruptFileError(f"bytes {start}..{stop} of buffer {number}, which has {whole.size}")
    return ByteRange(whole.start + start, whole.start + stop)


def request(ranges: Sequence[ByteRange]) -> Request:
    """Fetch ranges as uint8 arrays (views); empty ones are not asked for. Yields nothing when all are empty."""
    wanted = [item for item in ranges if item.size > 0]
    buffers = (yield wanted) if wanted else []
    answers = iter(buffers)
    result = []
    for item in ranges:
        data = np.frombuffer(next(answers), np.uint8) if item.size > 0 else np.empty(0, np.uint8)
        if len(data) != item.size:
            raise CorruptFileError(f"{len(data)} bytes at {item.start}, expected {item.size}")
        result.append(data)
    return result


def join(parts: Sequence[Bytes]) -> Bytes:
    """Several arrays as one; a single one stays a view."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])
