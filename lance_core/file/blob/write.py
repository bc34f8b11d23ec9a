"""Storing blobs: the bytes go where `blob_sink` puts them, the column keeps descriptors.

2.2   {data: b"abc", uri: null}    kind 0, position 4096, size 3        bytes of this file (or of one beside it)
      {data: null, uri: "s3://x"}  kind 3, blob_uri "s3://x"            somebody else's object
2.1   b"abc"                       position 4096, size 3; a null is size 0 at position 1 << 16 (its level)
2.0   b"abc"                       position 4096, size 3; a null is size 0 at position 1

Blobs may be below structs and lists; there, too, only the blobs are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow.buffers import buffer_of, bytes_of
from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import InputError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.file.blob.sink import BlobSink, BlobSizes, Values
from lance_core.file.blob_descriptors import DESCRIPTOR, KIND_EXTERNAL, PAIR
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_old_blob, leaves
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.format.version import FileVersion

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
