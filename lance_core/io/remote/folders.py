"""File systems with folders and open files (HDFS), where others have names and requests. Imports no fsspec.

::

    40 ranges of a.lance     8 threads, each opens the file once and reads 5 of them
    put a.lance              written as .a.lance.77ab0c12.…, then renamed
    list data/               folder by folder; one that cannot be listed is an error

fsspec's own call for ranges opens the file again for every one, one after the other, and fails at ranges from byte 0; its
own `find` leaves out in silence what it could not list.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from lance_core.errors import NotFoundError
from lance_core.fetch import ByteRange
from lance_core.io.paths import UNFINISHED_SUFFIX
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


def files_below(folder: str, listed: Callable[[str], Sequence[Any]]) -> dict[str, Any]:
    """What is known of each file below a folder, by name. `listed` raises NotFoundError for a folder that is not there."""
    files: dict[str, Any] = {}
    left = [folder]
    while left:
        with contextlib.suppress(NotFoundError):  # gone since it was seen
            for info in listed(left.pop()):
                if info["type"] == "directory":
                    left.append(info["name"])
                else:
                    files[info["name"]] = info
    return files


def put_by_name(fs: Any, full: str, data: bytes) -> None:
    """Write an object where it is seen while it is written: under another name first."""
    temporary = temporary_name(full)
    try:
        fs.pipe_file(temporary, data)
        give_name(fs, temporary, full)
    except BaseException:
        with contextlib.suppress(Exception):
            fs.rm_file(temporary)
        raise


def give_name(fs: Any, temporary: str, full: str) -> None:
    """Rename over whatever is there; a file system that does not replace is made to."""
    try:
        fs.mv(temporary, full)
    except Exception:
        if not fs.exists(temporary) or not fs.exists(full):
            raise
        fs.rm_file(full)
        fs.mv(temporary, full)


def temporary_name(full: str) -> str:
    folder, _, name = full.rpartition("/")
    return f"{folder}/.{name}.{secrets.token_hex(4)}{UNFINISHED_SUFFIX}"
