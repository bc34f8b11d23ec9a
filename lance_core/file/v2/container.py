"""Writing the 2.x container: aligned buffers, then metadata, tables and the footer.

offset 0     page buffers and global buffers as they come, each at a multiple of 64, gaps filled with 'H'
then         column metadata blocks | column table | buffer table | footer (40 bytes)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from lance_core.arrays import Addresses, Ints
from lance_core.fetch import Buffer, ByteRange
from lance_core.file.footer import Footer, encode_footer
from lance_core.format.layout import FileColumn
from lance_core.format.version import FileVersion
from lance_core.io.store import StoreWriter
from lance_core.wire.columns import encode_columns

ALIGNMENT = 64
_JOINED = 4 << 20
"""Bytes of small buffers that are written at once."""
_FILLER = b"H" * ALIGNMENT


class ContainerWriter:
    """Appends buffers to a file and closes it with its tables."""

    def __init__(self, out: StoreWriter) -> None:
        self._out = out
        self._global_buffers: list[ByteRange] = []
        self.position = 0

    def add_buffer(self, data: Buffer) -> ByteRange:
        """Write one buffer, aligned; says where it is."""
        gap = -self.position % ALIGNMENT
        if gap:
            self._write(_FILLER[:gap])
        start = self.position
        if len(data):
            self._write(data)
        return ByteRange(start, self.position)

    def extend_buffer(self, last: ByteRange, data: Buffer) -> ByteRange:
        """Go on writing a buffer that nothing was written behind (`ends_with`); says where the whole of it is."""
        self._write(data)
        return ByteRange(last.start, self.position)

    def ends_with(self, last: ByteRange) -> bool:
        """Whether the next byte of the file would stand right behind this buffer."""
        return last.end == self.position

    def add_buffers(self, data: memoryview, starts: Ints, sizes: Ints) -> Addresses:
        """Write `data[starts[i] : starts[i] + sizes[i]]`, each aligned; says where each is, 0 for an empty one."""
        positions = np.zeros(len(sizes), np.uint64)
        filled = np.flatnonzero(sizes)
        ends = np.cumsum(sizes[filled] + -sizes[filled] % ALIGNMENT)
        first, done = 0, 0
        while first < len(filled):
            last = max(first + 1, int(np.searchsorted(ends, done + _JOINED, side="right")))
            rows = filled[first:last]
            steps = np.diff(ends[first:last], prepend=done)
            spot = self.add_buffer(_aligned(data, starts[rows], sizes[rows], steps))
            positions[rows] = spot.start + (ends[first:last] - done) - steps
            first, done = last, int(ends[last - 1])
        return positions

    def add_global_buffer(self, data: Buffer) -> int:
        """Write a global buffer; its number counts from 1, because 0 is the descriptor that `finish` writes."""
        self._global_buffers.append(self.add_buffer(data))
        return len(self._global_buffers)

    def finish(self, columns: Sequence[FileColumn], descriptor: bytes, version: FileVersion) -> int:
        """Write descriptor, metadata, tables and footer; returns the file's size. The caller closes the file."""
        buffers = [self.add_buffer(descriptor), *self._global_buffers]
        metadata_start = self.position
        encoded = encode_columns(columns, planar=version is FileVersion.V2_3)
        ends = [*accumulate(map(len, encoded), initial=self.position)]
        blocks = [ByteRange(start, end) for start, end in pairwise(ends)]
        self._write(b"".join(encoded))
        column_table = self.position
        self._write(_table(blocks))
        buffer_table = self.position
        self._write(_table(buffers))
        footer = Footer(metadata_start, column_table, buffer_table, len(buffers), len(blocks), version)
        self._write(encode_footer(footer))
        return self.position

    def _write(self, data: Buffer) -> None:
        self._out.write(data)
        # The length of a view counts its items, which need not be bytes.
        self.position += len(data) if isinstance(data, bytes) else memoryview(data).nbytes


def _aligned(data: memoryview, starts: Ints, sizes: Ints, steps: Ints) -> Buffer:
    """Buffers with gaps between them, as `add_buffer` would write them one by one."""
    if len(starts) == 1:
        return data[int(starts[0]) : int(starts[0] + sizes[0])]
    parts: list[Buffer] = []
    for start, size, step in zip(starts.tolist(), sizes.tolist(), steps.tolist(), strict=True):
        parts += (data[start : start + size], _FILLER[: step - size])
    return b"".join(parts[:-1])


def _table(ranges: Sequence[ByteRange]) -> bytes:
    return struct.pack(f"<{2 * len(ranges)}Q", *(number for item in ranges for number in (item.start, item.size)))
