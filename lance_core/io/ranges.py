"""Which reads to make for which ranges: neighbours are joined, because a gap costs less than a request.

::

    asked    [0,10) [12,20) [900,910)         gap 64
    reads    [0,20)         [900,910)
    slices   (0, 0,10) (0, 12,20) (1, 0,10)   read number, start and end within it

Pure: no IO, no store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange

LOCAL_GAP = 4 << 10
"""Joining costs a copy, a `pread` about a microsecond: only very near neighbours are joined."""

REMOTE_GAP = 256 << 10
"""A request costs some ten milliseconds, in which a connection brings about this much."""

WIDE_GAP = 64 << 10
"""Where requests go side by side one more of them delays nothing; what is left is its price, that of these bytes."""

MAX_READ_SIZE = 16 << 20
"""Joined reads do not grow beyond this, so that big scans spread over several connections."""


class Slice(NamedTuple):
    """Where one asked range is: in which read, from where to where."""

    read: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The reads to make, ascending by start, and one slice per asked range."""

    reads: tuple[ByteRange, ...]
    slices: tuple[Slice, ...]

    def cut(self, buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
        """The asked ranges out of the buffers of the reads, without copying."""
        return tuple(_cut(buffers[read], start, end) if read >= 0 else b"" for read, start, end in self.slices)


def plan_reads(ranges: Sequence[ByteRange], *, gap: int, max_size: int = MAX_READ_SIZE) -> ReadPlan:
    """Join ranges whose distance is at most `gap` bytes, up to `max_size` bytes a read (one asked range is never cut).

    Empty ranges become empty slices of any read; an answer to only empty ranges needs no read.
    """
    if len(ranges) == 1 and ranges[0].end > ranges[0].start:
        return ReadPlan((ranges[0],), (Slice(0, 0, ranges[0].end - ranges[0].start),))
    order = sorted((number for number, item in enumerate(ranges) if item.end > item.start), key=ranges.__getitem__)
    reads: list[ByteRange] = []
    slices = [Slice(-1, 0, 0)] * len(ranges)
    start = end = 0
    for number in order:
        item = ranges[number]
        joins = reads and item.start <= end + gap and max(end, item.end) - start <= max_size
        if joins:
            end = max(end, item.end)
            reads[-1] = ByteRange(start, end)
        else:
            start, end = item
            reads.append(item)
        slices[number] = Slice(len(reads) - 1, item.start - start, item.end - start)
    return ReadPlan(tuple(reads), tuple(slices))


def _cut(buffer: Buffer, start: int, end: int) -> Buffer:
    if start == 0 and end == len(buffer):
        return buffer
    return memoryview(buffer)[start:end]


def refuse_beyond(path: str, ranges: Sequence[ByteRange], *, size: int, uri: str) -> None:
    """CorruptFileError for a range that does not end within an object of `size` bytes."""
    for item in ranges:
        if item.end > size:
            raise CorruptFileError(
                f"{path!r} ends at byte {size}, but bytes {item.start} to {item.end} were requested",
                uri=uri,
                cure="The file is truncated, or the metadata that refers to it is damaged.",
            )
