"""One blob as a file object: ranges of it are read when asked for, never the whole unless the whole is asked for.

(file,) = open_blobs(store, "data/a.lance", descriptors)
file.seek(1 << 20); file.read(100)          one request of 100 bytes
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.fetch import ByteRange
from lance_core.file.blob_descriptors import KIND_DEDICATED, KIND_INLINE, KIND_PACKED, sidecar_path
from lance_core.io.store import Store


class BlobFile(io.RawIOBase):
    """A read-only, seekable view of `size` bytes at `position` of a file in a store."""

    def __init__(self, store: Store, path: str, *, position: int, size: int) -> None:
        self._store = store
        self._path = path
        self._start = position
        self._size = size
        self._at = 0

    def size(self) -> int:
        """Bytes of the blob."""
        return self._size

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position within the blob."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move within the blob; positions past its end read as nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to byte {base + offset} of a blob")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes from here; all the rest when negative or None."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        (data,) = self._store.get_ranges(self._path, [ByteRange(self._start + self._at, self._start + end)])
        self._at = end
        return bytes(data)

    def readall(self) -> bytes:
        """The rest of the blob."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; returns how many bytes there were."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def __repr__(self) -> str:
        return f"<BlobFile size={self._size}>"


def open_blobs(store: Store, path: str, descriptors: pa.Array, *, file_size: int | None = None) -> list[BlobFile | None]:
    """A file object for each descriptor of the data file at `path` (see `OpenFile.project(blobs="descriptions")`).

    None for nulls. Raises UnsupportedFeatureError for blobs outside the table, CorruptFileError for impossible positions.
    """
    return [None if item is None else _open(store, path, item, file_size) for item in descriptors.to_pylist()]


def _open(store: Store, path: str, item: dict[str, Any], file_size: int | None) -> BlobFile | None:
    kind = item.get("kind", KIND_INLINE)
    position, size = item["position"], item["size"]
    if "kind" not in item and size == 0 and position:
        return None
    if kind not in (KIND_INLINE, KIND_PACKED, KIND_DEDICATED):
        raise UnsupportedFeatureError(
            f"a blob of kind {kind} at {item.get('blob_uri')!r} lies outside the table", cure="Open its uri directly."
        )
    if kind == KIND_INLINE and file_size is not None and position + size > file_size:
        raise CorruptFileError(f"{path}: a blob of {size} bytes at {position} in a file of {file_size} bytes")
    target = path if kind == KIND_INLINE else sidecar_path(path, item["blob_id"])
    return BlobFile(store, target, position=position, size=size)
