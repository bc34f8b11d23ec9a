"""Reading without IO: a reader *yields* the byte ranges it needs and *is sent* the buffers.

::

    def read_word(position: int) -> Fetch[int]:
        (buffer,) = yield [ByteRange(position, position + 4)]
        return int.from_bytes(buffer, "little")

    run_fetch(read_word(0), lambda ranges: [data[r.start:r.end] for r in ranges])

Whoever drives it decides how bytes are got: a test from one `bytes` object, `lance_core.io.fetcher` from a store with
many readers at once and neighbouring ranges joined. Nothing here does IO.

Who asks for hundreds of ranges asks with `ManyRanges`: it is such a sequence, and a driver that knows it need not make an
object of each. Its answer may be `JointBuffers`, one buffer and where each range begins in it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

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


class ManyRanges(Sequence[ByteRange]):
    """Ranges as two arrays (int64): none empty; usually ascending and disjoint, which nobody has to rely on."""

    def __init__(self, starts: Ints, ends: Ints) -> None:
        self.starts = starts
        self.ends = ends

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, number: int) -> ByteRange: ...

    @overload
    def __getitem__(self, number: slice) -> ManyRanges: ...

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return ManyRanges(self.starts[number], self.ends[number])
        return ByteRange(int(self.starts[number]), int(self.ends[number]))

    def __iter__(self) -> Iterator[ByteRange]:
        return map(ByteRange, self.starts.tolist(), self.ends.tolist())

    @property
    def num_bytes(self) -> int:
        """Sum of the sizes."""
        return int((self.ends - self.starts).sum())


@dataclass(frozen=True, slots=True, eq=False)
class JointBuffers(Sequence[Buffer]):
    """Buffers that are in one: number i is `data[starts[i] : starts[i] + sizes[i]]` (int64)."""

    data: memoryview
    starts: Ints
    sizes: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return JointBuffers(self.data, self.starts[number], self.sizes[number])
        start = int(self.starts[number])
        return self.data[start : start + int(self.sizes[number])]


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
