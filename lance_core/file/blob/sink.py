"""Where the bytes of blobs go while a file is written: into the file, into one shared by several, or into one of their own.

    40 KB     inline      a buffer of the data file                    kind 0, position 4096, size 40000
    2 MB      packed      data/a/1000…0.blob, behind the one before    kind 1, position 500000, size 2000000, id 1
    9 MB      dedicated   data/a/0100…0.blob, all of it                kind 2, size 9000000, id 2

The limits are those of the official writer; a field's metadata may move them. (Spec: blob columns.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from lance_core.errors import InputError, LanceError
from lance_core.fetch import Buffer, ByteRange
from lance_core.file.blob_descriptors import KIND_DEDICATED, KIND_INLINE, KIND_PACKED, sidecar_path
from lance_core.io.store import Store, StoreWriter

INLINE_SIZE = 64 << 10
DEDICATED_SIZE = 4 << 20
PACK_FILE_SIZE = 1 << 30
_KEYS = ("inline-size-threshold", "dedicated-size-threshold", "pack-file-size-threshold")

Add = Callable[[Buffer], ByteRange]


class Spot(NamedTuple):
    """Where a blob is, as its descriptor says it."""

    kind: int
    position: int
    size: int
    blob_id: int


@dataclass(frozen=True, slots=True)
class BlobSizes:
    """Blobs above `dedicated` bytes get a file of their own, others above `inline` share one of at most `pack_file`."""

    inline: int = INLINE_SIZE
    dedicated: int = DEDICATED_SIZE
    pack_file: int = PACK_FILE_SIZE

    @classmethod
    def of(cls, metadata: Mapping[str, bytes], *, name: str) -> BlobSizes:
        """The sizes a field asks for. InputError for what is no number of bytes."""
        found = [metadata.get(f"lance-encoding:blob-{key}") for key in _KEYS]
        for key, text in zip(_KEYS, found, strict=True):
            if text is not None and not text.isdigit():
                raise InputError(f"column {name!r}: lance-encoding:blob-{key} must be a number of bytes, got {text!r}")
        inline, dedicated, pack_file = (None if text is None else int(text) for text in found)
        return cls(INLINE_SIZE if inline is None else inline, dedicated or DEDICATED_SIZE, pack_file or PACK_FILE_SIZE)


@dataclass(slots=True)
class _Pack:
    """A shared file being written."""

    blob_id: int
    out: StoreWriter
    size: int = 0


class BlobSink:
    """The blobs of one data file. `add` stores a buffer in the data file itself."""

    def __init__(self, store: Store, path: str, add: Add) -> None:
        self._store = store
        self._path = path
        self._add = add
        self._next_id = 1
        self._packs: dict[int, _Pack] = {}
        self._paths: list[str] = []

    def inline(self, data: Buffer) -> ByteRange:
        """Store bytes in the data file, whatever their size."""
        return self._add(data)

    def put(self, data: Buffer, *, field_id: int, sizes: BlobSizes) -> Spot:
        """Store the bytes of a value where its size belongs."""
        size = memoryview(data).nbytes
        if size > sizes.dedicated:
            return self._put_alone(data, size)
        if size > sizes.inline:
            return self._put_packed(data, size, field_id, sizes)
        spot = self._add(data) if size else ByteRange(0, 0)
        return Spot(KIND_INLINE, spot.start, size, 0)

    def _put_alone(self, data: Buffer, size: int) -> Spot:
        blob_id, out = self._open()
        try:
            out.write(data)
            out.close()
        except BaseException:
            out.abort()
            raise
        return Spot(KIND_DEDICATED, 0, size, blob_id)

    def _put_packed(self, data: Buffer, size: int, field_id: int, sizes: BlobSizes) -> Spot:
        pack = self._packs.get(field_id)
        if pack is not None and pack.size + size > sizes.pack_file:
            self._packs.pop(field_id).out.close()
            pack = None
        if pack is None:
            pack = self._packs[field_id] = _Pack(*self._open())
        position = pack.size
        pack.out.write(data)
        pack.size += size
        return Spot(KIND_PACKED, position, size, pack.blob_id)

    def _open(self) -> tuple[int, StoreWriter]:
        blob_id, self._next_id = self._next_id, self._next_id + 1
        path = sidecar_path(self._path, blob_id)
        self._paths.append(path)
        return blob_id, self._store.open_writer(path)

    def close(self) -> None:
        """Make the shared files visible; before the data file that refers to them."""
        while self._packs:
            self._packs.popitem()[1].out.close()

    def abort(self) -> None:
        """Remove everything that was written. Never fails: what stays is garbage."""
        for pack in self._packs.values():
            with suppress(LanceError, OSError):
                pack.out.abort()
        self._packs.clear()
        for path in self._paths:
            with suppress(LanceError, OSError):
                self._store.delete(path)
        self._paths.clear()
