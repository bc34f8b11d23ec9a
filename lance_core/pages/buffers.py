"""Asking for parts of a page's buffers, and checking what came back.

::

    words, = yield [part(page, 0)]                       the whole of buffer 0
    rows,  = yield [part(page, 0, 128, 512)]             bytes 128..512 of it; outside the buffer: CorruptFileError
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange, JointBuffers, ManyRanges
from lance_core.format.layout import Page

Many = Generator[Sequence[ByteRange], Sequence[Buffer], tuple[Bytes, Ints]]
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
        raise CorruptFileError(f"bytes {start}..{stop} are outside buffer {number} of {whole.size} bytes")
    return ByteRange(whole.start + start, whole.start + stop)


def request(ranges: Sequence[ByteRange]) -> Request:
    """Fetch ranges as uint8 arrays (views); empty ones are not requested. Yields nothing when all are empty."""
    wanted = [item for item in ranges if item.size > 0]
    buffers = (yield wanted) if wanted else []
    answers = iter(buffers)
    result = []
    for item in ranges:
        data = np.frombuffer(next(answers), np.uint8) if item.size > 0 else np.empty(0, np.uint8)
        if len(data) != item.size:
            raise CorruptFileError(f"got {len(data)} bytes at {item.start}, expected {item.size}")
        result.append(data)
    return result


def request_many(page: Page, number: int, starts: Ints, ends: Ints) -> Many:
    """Fetch many ranges of a buffer: (their bytes, where each range begins in them). What is between is anything."""
    check_part(page, number, starts, ends)
    first = page.buffers[number].start
    return (yield from request_ranges(starts + first, ends + first))


def check_part(page: Page, number: int, starts: Ints, ends: Ints) -> None:
    """Refuse ranges that leave a buffer."""
    whole = page.buffers[number]
    bad = (starts < 0) | (ends < starts) | (ends > whole.size)
    if bad.any():
        first = int(np.argmax(bad))
        raise CorruptFileError(f"bytes {starts[first]}..{ends[first]} are outside buffer {number} of {whole.size} bytes")


def request_ranges(starts: Ints, ends: Ints) -> Many:
    """The same for ranges of the file."""
    sizes = ends - starts
    kept = sizes > 0
    positions = np.zeros(len(starts), np.int64)
    if not kept.any():
        return np.empty(0, np.uint8), positions
    answer = yield ManyRanges(starts[kept], ends[kept])
    if isinstance(answer, JointBuffers):
        data, found, lengths = np.frombuffer(answer.data, np.uint8), answer.starts, answer.sizes
    else:
        parts = [np.frombuffer(item, np.uint8) for item in answer]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        data, found = join(parts), np.cumsum(lengths) - lengths
    if not np.array_equal(lengths, sizes[kept]):
        raise CorruptFileError(f"got {int(lengths.sum())} bytes, expected {int(sizes.sum())}")
    positions[kept] = found
    return data, positions


def join(parts: Sequence[Bytes]) -> Bytes:
    """Several arrays as one; a single one stays a view."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])
