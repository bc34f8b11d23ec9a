"""Storing blobs: the bytes go where `blob_sink` puts them, the column keeps descriptors.

2.2   {data: b"abc", uri: null}    kind 0, position 4096, size 3        bytes of this file (or of one beside it)
      {data: null, uri: "s3://x"}  kind 3, blob_uri "s3://x"            somebody else's object
2.1   b"abc"                       position 4096, size 3; a null is size 0 at position 1 << 16 (its level)
2.0   b"abc"                       position 4096, size 3; a null is size 0 at position 1

Blobs may be below structs and lists; there, too, only the blobs are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import buffer_of
from lance_core.arrow.extension import BLOB_V2
from lance_core.arrow.kinds import as_list, as_struct
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import InputError
from lance_core.fetch import ByteRange
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.file.blob.sink import BlobSink, BlobSizes
from lance_core.file.blob_descriptors import DESCRIPTOR, KIND_EXTERNAL, PAIR
from lance_core.file.convert.tree import LeafNode, ListNode, Node, StructNode, is_old_blob, leaves
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.format.version import FileVersion

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
    _sizes: dict[int, BlobSizes] = field(default_factory=dict)

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
        for row, value in enumerate(array):
            if value.is_valid:
                data = value.as_buffer()
                spot = self.sink.inline(data) if data.size else ByteRange(0, 0)
                positions[row], sizes[row] = spot.start, spot.size
        return pa.StructArray.from_arrays([arrow_of(positions), arrow_of(sizes)], fields=list(PAIR))

    def _new(self, item: Field, array: pa.StructArray) -> pa.Array[Any]:
        columns: dict[str, Any] = {kind.name: array.field(number) for number, kind in enumerate(array.type)}
        valid = array.is_valid()
        rows = [self._describe(item, _Value(columns, row)) if valid[row].as_py() else None for row in range(len(array))]
        stored = [(0, 0, 0, 0, "") if found is None else found for found in rows]
        children = [pa.array([found[number] for found in stored], kind.type) for number, kind in enumerate(DESCRIPTOR)]
        mask = pa.array([found is None for found in rows], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(DESCRIPTOR), mask=mask)

    def _describe(self, item: Field, value: _Value) -> tuple[int, int, int, int, str] | None:
        """(kind, position, size, blob id, uri) of one value; None when it is neither here nor elsewhere."""
        data, uri = value.get("data"), value.get("uri")
        if data is not None:
            if item.id not in self._sizes:
                self._sizes[item.id] = BlobSizes.of(item.metadata, name=item.name)
            return (*self.sink.put(data.as_buffer(), field_id=item.id, sizes=self._sizes[item.id]), "")
        if uri is not None:
            position, size = value.get("position"), value.get("size")
            numbers = [0 if number is None else number.as_py() for number in (position, size)]
            base_id, text = self.external.place(uri.as_py())
            return KIND_EXTERNAL, numbers[0], numbers[1], base_id, text
        return None


@dataclass(frozen=True, slots=True)
class _Value:
    """One row of a blob column, as the table's schema says it."""

    columns: Mapping[str, Any]
    row: int

    def get(self, name: str) -> Any:
        """A part of the value; None where there is none."""
        found = self.columns[name][self.row] if name in self.columns else None
        return found if found is not None and found.is_valid else None


def _list_type(node: ListNode, item: pa.DataType) -> pa.DataType:
    types, value = pa.types, pa.field(node.item.field.name, item)
    if types.is_map(node.type):
        return pa.list_(value)
    if types.is_fixed_size_list(node.type):
        return pa.list_(value, node.dimension)
    return pa.large_list(value) if types.is_large_list(node.type) else pa.list_(value)
