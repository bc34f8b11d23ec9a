"""Storing blobs: the bytes go where `blob_sink` puts them, the column keeps descriptors.

2.2   {data: b"abc", uri: null}    kind 0, position 4096, size 3        bytes of this file (or of one beside it)
      {data: null, uri: "s3://x"}  kind 3, blob_uri "s3://x"            somebody else's object
2.1   b"abc"                       position 4096, size 3; a null is size 0 at position 1 << 16 (its level)
2.0   b"abc"                       position 4096, size 3; a null is size 0 at position 1

Blobs may be below structs and lists; there, too, only the blobs are replaced.

Where the bytes of blobs go while a file is written: into the file, into one shared by several, or into one of their own.

    40 KB     inline      a buffer of the data file                    kind 0, position 4096, size 40000
    2 MB      packed      data/a/1000…0.blob, behind the one before    kind 1, position 500000, size 2000000, id 1
    9 MB      dedicated   data/a/0100…0.blob, all of it                kind 2, size 9000000, id 2

The limits are those of the official writer; a field's metadata may move them. (Spec: blob columns.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bools, Bytes, Ints
from lance_core.arrow.buffers import buffer_of, bytes_of
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.arrow.logical import BLOB_V2
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import InputError, LanceError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.file.blob_descriptors import (
    DESCRIPTOR,
    KIND_DEDICATED,
    KIND_EXTERNAL,
    KIND_INLINE,
    KIND_PACKED,
    PAIR,
    Numbers,
    sidecar_path,
)
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_old_blob, leaves
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.format.version import FileVersion
from lance_core.io.store import Store, StoreWriter

_NUMBERS = {"kind": np.uint8, "position": np.uint64, "size": np.uint64, "blob_id": np.uint32}
"""The descriptor's parts that are numbers, in its order."""
_NULL_POSITION = {FileVersion.V2_0: 1, FileVersion.V2_1: 1 << 16}


def is_blob(item: Field, version: FileVersion) -> bool:
    """Whether a field's values go out of line."""
    if version.is_legacy:
        return False
    return item.extension_name == BLOB_V2 or (version in _NULL_POSITION and is_old_blob(item))


def check_blobs(schema: Schema, version: FileVersion) -> None:
    """InputError for blob columns in places, or of a kind, that the version does not have."""
    for item in schema.fields:
        # The official reader takes them below structs only, and below those in an encoding of their own.
        if version is FileVersion.V2_1 and is_blob(item, version) and item.parent_id != NO_PARENT:
            raise InputError(
                f"column {schema.path_of(item.id)!r} is a nested blob, which 2.1 files cannot hold",
                cure="Use storage version 2.2.",
            )
        if item.extension_name == BLOB_V2 and version < FileVersion.V2_2:
            raise InputError(
                f"column {schema.path_of(item.id)!r} is a blob v2 column, which files of version {version.text} cannot hold",
                cure="Use storage version 2.2.",
            )
        if is_blob(item, version):
            BlobSizes.of(item.metadata, name=schema.path_of(item.id))


@dataclass(frozen=True)
class BlobStore:
    """Puts the blobs of one file away. `has_blobs` is false for fields that nothing need be done about."""

    version: FileVersion
    sink: BlobSink
    external: ExternalUris = BASES_ONLY
    _limits: dict[int, BlobSizes] = field(default_factory=dict)

    def has_blobs(self, node: Node) -> bool:
        """Whether the field is, or holds, a blob column."""
        return any(is_blob(leaf.field, self.version) for leaf in leaves(node))

    def replaced(self, node: Node, array: pa.Array[Any]) -> pa.Array[Any]:
        """The array (of the field's storage type) with descriptors in place of blobs."""
        if not self.has_blobs(node):
            return array
        if isinstance(node, LeafNode):
            return self._new(node.field, as_struct(array)) if pa.types.is_struct(array.type) else self._old(array)
        if isinstance(node, StructNode):
            children = [self.replaced(child, as_struct(array).field(number)) for number, child in enumerate(node.children)]
            fields = [pa.field(child.field.name, made.type) for child, made in zip(node.children, children, strict=True)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
        return self._list(node, array)

    def _list(self, node: ListNode, array: pa.Array[Any]) -> pa.Array[Any]:
        if node.dimension:
            start, end = array.offset * node.dimension, (array.offset + len(array)) * node.dimension
        else:
            ends = as_list(array).offsets
            start, end = (ends[0].as_py(), ends[-1].as_py()) if len(array) else (0, 0)
        # Only the items of these rows: the array may be a slice of a batch whose other rows come another time.
        values = self.replaced(node.item, as_list(array).values.slice(start, end - start))
        validity = array.is_valid() if array.null_count else None
        buffers = [None if validity is None else validity.buffers()[1]]
        kind = _list_type(node, values.type)
        if not node.dimension:
            width = np.int64 if pa.types.is_large_list(array.type) else np.int32
            offsets = numpy_of(as_list(array).offsets) - start if len(array) else np.zeros(1)
            buffers.append(buffer_of(np.ascontiguousarray(offsets, width)))
        return pa.Array.from_buffers(kind, len(array), buffers, children=[values])

    def _old(self, array: pa.Array[Any]) -> pa.Array[Any]:
        positions = np.full(len(array), _NULL_POSITION[self.version], np.uint64)
        sizes = np.zeros(len(array), np.uint64)
        rows, values = _values(array, _valid(array))
        positions[rows], sizes[rows] = self.sink.inline(values), values.sizes
        return pa.StructArray.from_arrays([arrow_of(positions), arrow_of(sizes)], fields=list(PAIR))

    def _new(self, item: Field, array: pa.StructArray) -> pa.Array[Any]:
        columns = {kind.name: array.field(number) for number, kind in enumerate(array.type)}
        nowhere = np.zeros(len(array), np.bool_)
        is_here = _valid(array) & (_valid(columns["data"]) if "data" in columns else nowhere)
        is_there = _valid(array) & ~is_here & (_valid(columns["uri"]) if "uri" in columns else nowhere)
        stored = {name: np.zeros(len(array), kind) for name, kind in _NUMBERS.items()}
        uris = [""] * len(array)
        if is_here.any():
            rows, values = _values(columns["data"], is_here)
            limits = self._limits.setdefault(item.id, BlobSizes.of(item.metadata, name=item.name))
            spots = self.sink.put(values, field_id=item.id, limits=limits)
            parts: tuple[npt.NDArray[Any], ...] = (spots.kinds, spots.positions, values.sizes, spots.blob_ids)
            for numbers, part in zip(stored.values(), parts, strict=True):
                numbers[rows] = part
        for row in np.flatnonzero(is_there).tolist():
            position, size = [columns[name][row].as_py() or 0 if name in columns else 0 for name in ("position", "size")]
            base_id, uris[row] = self.external.place(columns["uri"][row].as_py())
            for numbers, number in zip(stored.values(), (KIND_EXTERNAL, position, size, base_id), strict=True):
                numbers[row] = number
        children = [*map(arrow_of, stored.values()), pa.array(uris, pa.string())]
        mask = arrow_of(~(is_here | is_there))
        return pa.StructArray.from_arrays(children, fields=list(DESCRIPTOR), mask=mask)


def _valid(array: pa.Array[Any]) -> Bools:
    return numpy_of(array.is_valid(), may_copy=True)


def _values(array: pa.Array[Any], is_wanted: Bools) -> tuple[Ints, Values]:
    """Which rows are wanted, and the bytes of these."""
    if not pa.types.is_binary(array.type) and not pa.types.is_large_binary(array.type):
        array = array.cast(pa.large_binary())
    width = np.dtype(np.int32 if pa.types.is_binary(array.type) else np.int64)
    _, held, data = array.buffers()
    rows = np.flatnonzero(is_wanted)
    if held is None or data is None:
        return rows, Values(memoryview(b""), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    first, size = array.offset * width.itemsize, (len(array) + 1) * width.itemsize
    offsets = bytes_of(held)[first : first + size].view(width).astype(np.int64)
    return rows, Values(memoryview(data).cast("B"), offsets[rows], offsets[rows + 1] - offsets[rows])


def _list_type(node: ListNode, item: pa.DataType) -> pa.DataType:
    types, value = pa.types, pa.field(node.item.field.name, item)
    if types.is_map(node.type):
        return pa.list_(value)
    if types.is_fixed_size_list(node.type):
        return pa.list_(value, node.dimension)
    return pa.large_list(value) if types.is_large_list(node.type) else pa.list_(value)


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
