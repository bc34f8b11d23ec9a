"""Checksums of the files of an index segment, so that a flipped bit is detected.

::

    _indices/{uuid}/checksums     crc32 of the second line
                                  {"chunk": 262144, "files": {"page_data.lance": [471, "9ae0…"]}}

Lance files carry no checksums, and a wrong posting list is as readable as a right one. Segments of ours therefore have this
file beside those of the official layout (it is in no list; nobody else reads it): where it is there, it counts. A chunk is
checked when it is first read, and the ranges read are widened to whole chunks only then.
"""

from __future__ import annotations

import bisect
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer, ByteRange
from lance_core.io.store import Store, StoreWriter
from lance_core.io.wrapped import WrappedStore

T = TypeVar("T")
CHUNK = 1 << 18
_PIECE = CHUNK << 7


@dataclass(frozen=True, slots=True)
class FileSums:
    """Size in bytes and crc32 of each chunk."""

    size: int
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FolderSums:
    """Those of the files of a folder. `is_written`: they come from the file `checksums`."""

    files: Mapping[str, FileSums]
    chunk: int
    is_written: bool


class SummingStore(WrappedStore):
    """Sums up what is written through it: `sums_of()` after the file was closed."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._size = 0
        self._sums: list[int] = []

    def sums_of(self) -> FileSums:
        """Of all that was written."""
        return FileSums(self._size, tuple(self._sums))

    def open_writer(self, path: str) -> StoreWriter:
        """A writer that sums."""
        return _SummingWriter(self.inner.open_writer(path), self._add)

    def _add(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        while len(view):
            inside = self._size % CHUNK
            part = view[: CHUNK - inside]
            if inside == 0:
                self._sums.append(0)
            self._sums[-1] = zlib.crc32(part, self._sums[-1])
            self._size += len(part)
            view = view[len(part) :]

    def _around(self, inner: Store) -> WrappedStore:
        return SummingStore(inner)

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        return action()


class _SummingWriter:
    def __init__(self, inner: StoreWriter, add: Callable[[Buffer], None]) -> None:
        self._inner, self._add = inner, add

    def write(self, data: Buffer) -> None:
        self._add(data)
        self._inner.write(data)

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()


class CheckedStore(WrappedStore):
    """Checks each chunk of one file when it is first read. Raises CorruptFileError."""

    def __init__(self, inner: Store, sums: FileSums, *, chunk: int) -> None:
        super().__init__(inner)
        self._sums, self._chunk = sums, chunk
        self._known: set[int] = set()

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """The ranges, of bytes that are as they were written."""
        fresh = [not self._known.issuperset(self._chunks(item)) for item in ranges]
        if not any(fresh):
            return self.inner.get_ranges(path, ranges)
        # Each chunk is read once, however many of the ranges are in it.
        wide = _joined(self._widened(path, item) for item, is_fresh in zip(ranges, fresh, strict=True) if is_fresh)
        known = [item for item, is_fresh in zip(ranges, fresh, strict=True) if not is_fresh]
        parts = [memoryview(data).cast("B") for data in self.inner.get_ranges(path, [*wide, *known])]
        for item, view in zip(wide, parts, strict=False):
            self._check(path, item, view)
        starts, others = [item.start for item in wide], iter(parts[len(wide) :])
        found: list[Buffer] = []
        for item, is_fresh in zip(ranges, fresh, strict=True):
            if not is_fresh:
                found.append(next(others))
                continue
            at = bisect.bisect_right(starts, item.start) - 1
            found.append(parts[at][item.start - starts[at] : item.end - starts[at]])
        return found

    def _chunks(self, item: ByteRange) -> range:
        return range(item.start // self._chunk, -(-item.end // self._chunk))

    def _widened(self, path: str, item: ByteRange) -> ByteRange:
        if item.end > self._sums.size:
            raise CorruptFileError(
                f"{path}: bytes {item.start} to {item.end} were requested, the file has {self._sums.size}"
            )
        chunks = self._chunks(item)
        return ByteRange(chunks.start * self._chunk, min(chunks.stop * self._chunk, self._sums.size))

    def _check(self, path: str, wide: ByteRange, view: memoryview) -> None:
        if len(view) != wide.end - wide.start:
            raise CorruptFileError(f"{path} is truncated: it was written with {self._sums.size} bytes")
        for number in self._chunks(wide):
            start = number * self._chunk - wide.start
            if number not in self._known and zlib.crc32(view[start : start + self._chunk]) != self._sums.sums[number]:
                raise CorruptFileError(
                    f"{path}: the checksum of the bytes from {number * self._chunk} on does not match",
                    cure="Rebuild the index.",
                )
            self._known.add(number)

    def _around(self, inner: Store) -> WrappedStore:
        raise NotImplementedError

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        return action()


def _joined(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The bytes of all ranges, those that touch as one."""
    found: list[ByteRange] = []
    for item in sorted(ranges, key=lambda item: item.start):
        if found and item.start <= found[-1].end:
            found[-1] = ByteRange(found[-1].start, max(found[-1].end, item.end))
        else:
            found.append(item)
    return found


def sums_of_file(store: Store, path: str) -> FileSums:
    """Of a file as it is now, read in large pieces. Raises NotFoundError."""
    size = store.size(path)
    sums: list[int] = []
    for start in range(0, size, _PIECE):
        (data,) = store.get_ranges(path, [ByteRange(start, min(start + _PIECE, size))])
        view = memoryview(data).cast("B")
        sums.extend(zlib.crc32(view[at : at + CHUNK]) for at in range(0, len(view), CHUNK))
    return FileSums(size, tuple(sums))


def encode_sums(files: Mapping[str, FileSums]) -> bytes:
    """What the file `checksums` holds."""
    told = {name: [item.size, "".join(f"{number:08x}" for number in item.sums)] for name, item in files.items()}
    body = json.dumps({"chunk": CHUNK, "files": told}, separators=(",", ":")).encode()
    return b"%08x\n" % zlib.crc32(body) + body


def decode_sums(data: Buffer, *, what: str) -> FolderSums:
    """What the file `checksums` tells. Raises CorruptFileError."""
    raw = bytes(data)
    body = raw[9:]
    if raw[:9] != b"%08x\n" % zlib.crc32(body):
        raise CorruptFileError(f"{what} is damaged", cure="Rebuild the index.")
    # A CRC is no signature: anyone who can write the file can write a matching one.
    try:
        value = json.loads(body)
        chunk = value["chunk"]
        if type(chunk) is not int or not 0 < chunk <= _PIECE:
            raise ValueError(f"invalid chunk size {chunk!r}")
        files = {str(name): _file_sums(size, sums, chunk) for name, (size, sums) in value["files"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"{what} is not a valid checksum file: {error}", cure="Rebuild the index.") from error
    return FolderSums(files, chunk, is_written=True)


def _file_sums(size: int, sums: str, chunk: int) -> FileSums:
    if type(size) is not int or size < 0:
        raise ValueError(f"invalid file size {size!r}")
    if len(sums) != -(-size // chunk) * 8:
        raise ValueError(f"{len(sums) // 8} checksums for {size} bytes in chunks of {chunk}")
    return FileSums(size, tuple(int(sums[at : at + 8], 16) for at in range(0, len(sums), 8)))
