"""Reading without IO: a reader *yields* the byte ranges it needs and *is sent* the buffers.

::

    def read_word(position: int) -> Fetch[int]:
        (buffer,) = yield [ByteRange(position, position + 4)]
        return int.from_bytes(buffer, "little")

    run_fetch(read_word(0), lambda ranges: [data[r.start:r.end] for r in ranges])

Whoever drives it decides how bytes are got: a test from one `bytes` object, `lance_core.io.drive` from a store with
many readers at once and neighbouring ranges joined. Nothing here does IO.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

Buffer = bytes | memoryview
"""Bytes as a store hands them out. Readers must not write into them."""


class ByteRange(NamedTuple):
    """Bytes `start` (inclusive) to `end` (exclusive) of one file."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of bytes in the range."""
        return self.end - self.start


Fetch = Generator[Sequence[ByteRange], Sequence[Buffer], T]
"""A reader: yields ranges of one file, is sent one buffer per range in the same order, returns its result."""


def run_fetch(fetch: Fetch[T], get_ranges: Callable[[Sequence[ByteRange]], Sequence[Buffer]]) -> T:
    """Drive one reader to its end with a function that answers each request."""
    try:
        ranges = next(fetch)
        while True:
            ranges = fetch.send(get_ranges(ranges))
    except StopIteration as stop:
        result: T = stop.value
        return result


def fetch_nothing(value: T) -> Fetch[T]:
    """A reader that needs no bytes."""
    return value
    yield  # pragma: no cover - makes this function a generator
