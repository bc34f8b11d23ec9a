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
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints
from lance_core.errors import InputError, LanceError
from lance_core.file.blob_descriptors import KIND_DEDICATED, KIND_INLINE, KIND_PACKED, Numbers, sidecar_path
from lance_core.io.store import Store, StoreWriter

INLINE_SIZE = 64 << 10
DEDICATED_SIZE = 4 << 20
PACK_FILE_SIZE = 1 << 30
_KEYS = ("inline-size-threshold", "dedicated-size-threshold", "pack-file-size-threshold")

_WRITTEN = 4 << 20
"""Bytes that a shared file is given at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """The bytes of blobs: number i is `data[starts[i] : starts[i] + sizes[i]]`."""

    data: memoryview
    starts: Ints
    sizes: Ints

    def at(self, rows: Ints) -> Values:
        """Some of them."""
        return Values(self.data, self.starts[rows], self.sizes[rows])


@dataclass(frozen=True, eq=False, slots=True)
class Spots:
    """Where blobs are, as their descriptors say it."""

    kinds: Bytes
    positions: Numbers
    blob_ids: npt.NDArray[np.uint32]


AddAll = Callable[[memoryview, Ints, Ints], Numbers]


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
    """The blobs of one data file. `add_all` stores buffers in the data file itself."""

    def __init__(self, store: Store, path: str, add_all: AddAll) -> None:
        self._store = store
        self._path = path
        self._add_all = add_all
        self._next_id = 1
        self._packs: dict[int, _Pack] = {}
        self._paths: list[str] = []

    def inline(self, values: Values) -> Numbers:
        """Store bytes in the data file, whatever their sizes; says where."""
        return self._add_all(values.data, values.starts, values.sizes)

    def put(self, values: Values, *, field_id: int, limits: BlobSizes) -> Spots:
        """Store the bytes of values where their sizes belong."""
        sizes = values.sizes
        elsewhere = np.where(sizes > limits.dedicated, KIND_DEDICATED, KIND_PACKED)
        kinds = np.where(sizes > min(limits.inline, limits.dedicated), elsewhere, KIND_INLINE).astype(np.uint8)
        spots = Spots(kinds, np.zeros(len(sizes), np.uint64), np.zeros(len(sizes), np.uint32))
        here, others = np.flatnonzero(kinds == KIND_INLINE), np.flatnonzero(kinds != KIND_INLINE)
        spots.positions[here] = self.inline(values.at(here))
        for rows in np.split(others, np.flatnonzero(np.diff(kinds[others])) + 1):
            if len(rows) and kinds[rows[0]] == KIND_DEDICATED:
                spots.blob_ids[rows] = [self._put_alone(values.at(rows[at : at + 1])) for at in range(len(rows))]
            while len(rows) and kinds[rows[0]] == KIND_PACKED:
                rows = self._put_packed(values, rows, spots, field_id, limits)
        return spots

    def _put_alone(self, value: Values) -> int:
        blob_id, out = self._open()
        try:
            _write(out, value)
            out.close()
        except BaseException:
            out.abort()
            raise
        return blob_id

    def _put_packed(self, values: Values, rows: Ints, spots: Spots, field_id: int, limits: BlobSizes) -> Ints:
        """Put as many of the rows as there is room for into the shared file; returns the others."""
        mine = values.at(rows)
        ends = np.cumsum(mine.sizes)
        pack = self._packs.get(field_id)
        many = int(np.searchsorted(ends, limits.pack_file - (pack.size if pack else 0), side="right"))
        if pack is not None and many == 0:
            self._packs.pop(field_id).out.close()
            return rows
        if pack is None:
            pack, many = _Pack(*self._open()), max(1, many)
            self._packs[field_id] = pack
        chosen = rows[:many]
        _write(pack.out, values.at(chosen))
        spots.positions[chosen] = pack.size + ends[:many] - mine.sizes[:many]
        spots.blob_ids[chosen] = pack.blob_id
        pack.size += int(ends[many - 1])
        return rows[many:]

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


def _write(out: StoreWriter, values: Values) -> None:
    """Write values one after the other; those that are already so in memory, together."""
    ends = values.starts + values.sizes
    breaks = np.flatnonzero(values.starts[1:] != ends[:-1]) + 1
    for first, last in pairwise([0, *breaks.tolist(), len(ends)]):
        start, end = int(values.starts[first]), int(ends[last - 1])
        for at in range(start, end, _WRITTEN):
            out.write(values.data[at : min(at + _WRITTEN, end)])
