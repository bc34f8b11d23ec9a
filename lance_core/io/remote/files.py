"""Range reads on a file system with open files (HDFS) instead of requests.

::

    40 ranges of a.lance     8 threads, each opens the file once and reads 5 of them

fsspec's own call for this opens the file again for every range, one after the other, and fails at ranges from byte 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_core.fetch import ByteRange
from lance_core.io.pool import in_io_pool, io_pool

_NUM_SHARES = 8


def read_opened(fs: Any, full: str, ranges: Sequence[ByteRange]) -> list[bytes]:
    """One piece of bytes per range, in order; shorter ones where the file ends."""

    def read(share: Sequence[ByteRange]) -> list[bytes]:
        with fs.open(full, "rb") as file:
            return [_read(file, item) for item in share]

    if len(ranges) == 1 or in_io_pool():
        return read(ranges)
    size = -(-len(ranges) // _NUM_SHARES)
    shares = [ranges[start : start + size] for start in range(0, len(ranges), size)]
    return [piece for found in io_pool(full).map(read, shares) for piece in found]


def _read(file: Any, item: ByteRange) -> bytes:
    # The end is checked first: some files allocate any requested length.
    file.seek(0, 2)
    size = min(item.size, max(0, file.tell() - item.start))
    if not size:
        return b""
    file.seek(item.start)
    return bytes(file.read(size))
