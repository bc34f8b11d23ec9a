"""Values of blob v2 columns (2.2), and the shape of files that hold them.

A table says `c: struct<data, uri>` with the extension lance.blob.v2; the file stores descriptors in one column and says so
in a schema of its own, whose children have no ids:

    table   1 c struct (lance.blob.v2), 2 data, 3 uri          file   1 c struct (packed, blob), -1 kind, -1 position, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import pyarrow as pa

from lance_core.arrow.kinds import as_list, as_struct, list_type
from lance_core.arrow.logical import BLOB_METADATA, BLOB_V2
from lance_core.arrow.to_arrow import schema_to_arrow
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.file.blob_descriptors import (
    BLOB_ROW_SIZE,
    DESCRIPTOR,
    KIND_DEDICATED,
    KIND_EXTERNAL,
    KIND_INLINE,
    KIND_PACKED,
    PAIR,
    sidecar_path,
)
from lance_core.file.convert.tree import LeafNode, Node, StructNode, blob_below, build_tree, is_old_blob, is_packed
from lance_core.file.to_user_types import finish
from lance_core.format.schema import NO_PARENT, Field, Schema, is_true
from lance_core.io.fetcher import drive
from lance_core.io.store import Store
from lance_core.pages.rows import RowSelection

_DESCRIBED = {b"lance-encoding:blob": b"true", b"lance-encoding:packed": b"true"}


def described_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a read that gives descriptors for blob columns."""
    arrow = schema_to_arrow(schema)
    for number, item in enumerate(schema.top_level):
        arrow = arrow.set(number, _described_field(schema, item, arrow.field(number)))
    return arrow


def _described_field(schema: Schema, field: Field, arrow: pa.Field[Any]) -> pa.Field[Any]:
    kind = DESCRIPTOR if field.extension_name == BLOB_V2 else PAIR if is_old_blob(field) else None
    if kind is not None:
        return pa.field(field.name, kind, nullable=field.nullable, metadata=_DESCRIBED)
    below = [item for item in schema.descend(field.id) if item.extension_name == BLOB_V2 or is_old_blob(item)]
    return arrow.with_type(build_tree(schema, field, {}, described=True).type) if below else arrow


def own_schema(schema: Schema) -> Schema:
    """A file's own schema with the id-less children of descriptors taken out and their parents marked as blob v2."""
    if all(item.id >= 0 for item in schema.fields):
        return schema
    fields = []
    for item in schema.fields:
        if item.id < 0:
            continue
        is_blob = is_packed(item) and is_true(item.metadata.get(BLOB_METADATA))
        fields.append(replace(item, extension_name=BLOB_V2) if is_blob else item)
    next_id = max((item.id for item in fields), default=-1) + 1
    return Schema(tuple(_with_children(fields, next_id)), schema.metadata)


def _with_children(fields: Sequence[Field], next_id: int) -> list[Field]:
    """What the table's schema would say below a blob: its data and its uri. The ids are this reader's own."""
    result: list[Field] = []
    for item in fields:
        result.append(item)
        if item.extension_name == BLOB_V2:
            result.append(Field(next_id, "data", item.id, "large_binary"))
            result.append(Field(next_id + 1, "uri", item.id, "string"))
            next_id += 2
    return result


def stored_schema(schema: Schema) -> Schema:
    """The schema a new file says of itself: blob v2 fields as descriptors without ids."""
    if all(item.extension_name != BLOB_V2 for item in schema.fields):
        return schema
    below = {child.id for item in schema.fields if item.extension_name == BLOB_V2 for child in schema.descend(item.id)}
    fields: list[Field] = []
    for item in schema.fields:
        if item.extension_name == BLOB_V2:
            metadata = {key.decode(): value for key, value in _DESCRIBED.items()}
            fields.append(replace(item, extension_name="", metadata=metadata))
            fields.extend(_DESCRIPTOR_FIELDS)
        elif item.id not in below:
            fields.append(item)
    return replace(schema, fields=tuple(fields))


_DESCRIPTOR_FIELDS = tuple(
    Field(-1, name, NO_PARENT, logical, nullable=False)
    for name, logical in (
        ("kind", "uint8"),
        ("position", "uint64"),
        ("size", "uint64"),
        ("blob_id", "uint32"),
        ("blob_uri", "string"),
    )
)


class _Inner(Protocol):
    @property
    def node(self) -> Node: ...

    def jobs(self, window: RowSelection) -> list[Fetch[object]]: ...

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]: ...

    def pages_of(self, window: RowSelection) -> str | None: ...

    @property
    def num_columns(self) -> int: ...


@dataclass(frozen=True, eq=False)
class BlobReader:
    """A blob v2 column read as its values: descriptors first, then the bytes from wherever they are."""

    inner: _Inner
    store: Store
    path: str
    file_size: int
    type: pa.DataType

    @property
    def node(self) -> Node:
        """The field."""
        return self.inner.node

    @property
    def num_columns(self) -> int:
        """As many as there are leaves."""
        return self.inner.num_columns

    def jobs(self, window: RowSelection) -> list[Fetch[object]]:
        """The readers of the descriptors."""
        return self.inner.jobs(window)

    def pages_of(self, window: RowSelection) -> str | None:
        """The pages of the descriptors."""
        return self.inner.pages_of(window)

    def row_size(self) -> float:
        """An assumption."""
        return BLOB_ROW_SIZE

    def assemble(self, results: Sequence[object], num_rows: int) -> list[pa.Array[Any]]:
        """The values, as the type the table's schema names."""
        return [self._filled(self.inner.node, chunk, self.type) for chunk in self.inner.assemble(results, num_rows)]

    def _filled(self, node: Node, array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any]:
        """The array with values in place of the descriptors anywhere in it."""
        if not blob_below(node):
            return finish(array, target)
        if isinstance(node, LeafNode):
            return self._values(as_struct(array), target)
        if isinstance(node, StructNode):
            children = [
                self._filled(child, as_struct(array).field(number), target.field(number).type)
                for number, child in enumerate(node.children)
            ]
            return pa.Array.from_buffers(target, len(array), array.buffers()[:1], children=children)
        item = pa.struct([target.key_field, target.item_field]) if pa.types.is_map(target) else list_type(target).value_type
        values = self._filled(node.item, as_list(array).values, item)
        num_buffers = 1 if pa.types.is_fixed_size_list(target) else 2
        return pa.Array.from_buffers(target, len(array), array.buffers()[:num_buffers], children=[values])

    def _values(self, chunk: pa.StructArray, target: pa.DataType) -> pa.Array[Any]:
        wanted = _Wanted()
        rows: list[Any] = cast("pa.Array[Any]", chunk).to_pylist()
        for row, item in enumerate(rows):
            if item is not None:
                wanted.add(row, item, self.path, self.file_size)
        found = self._fetch(wanted.ranges)
        values: list[dict[str, Any] | None] = []
        for row, item in enumerate(rows):
            values.append(None if item is None else _value(item, found.get(row)))
        storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
        array = pa.array(values, storage)
        return array if storage is target else pa.ExtensionArray.from_storage(cast("pa.BaseExtensionType", target), array)

    def _fetch(self, ranges: Mapping[str, list[tuple[int, ByteRange]]]) -> dict[int, bytes]:
        jobs = [(path, _get([item for _, item in pairs])) for path, pairs in ranges.items()]
        found: dict[int, bytes] = {}
        for pairs, buffers in zip(ranges.values(), drive(self.store, jobs), strict=True):
            found.update((row, bytes(data)) for (row, _), data in zip(pairs, buffers, strict=True))
        return found


@dataclass
class _Wanted:
    """Which bytes of which file each row needs."""

    ranges: dict[str, list[tuple[int, ByteRange]]] = field(default_factory=dict)

    def add(self, row: int, item: Mapping[str, Any], path: str, file_size: int) -> None:
        kind, position, size = item["kind"], item["position"], item["size"]
        if kind == KIND_EXTERNAL or size == 0:
            return
        if kind == KIND_INLINE:
            if position + size > file_size:
                raise CorruptFileError(f"a blob of {size} bytes at {position} is outside its file of {file_size} bytes")
            target = path
        elif kind in (KIND_PACKED, KIND_DEDICATED):
            target = sidecar_path(path, item["blob_id"])
        else:
            raise UnsupportedFeatureError(f"blobs of kind {kind} are not supported by this library")
        self.ranges.setdefault(target, []).append((row, ByteRange(position, position + size)))


def _value(item: Mapping[str, Any], data: bytes | None) -> dict[str, Any]:
    if item["kind"] == KIND_EXTERNAL:
        if item["blob_id"]:
            raise UnsupportedFeatureError(
                f"a blob is at {item['blob_uri']!r} below base path {item['blob_id']}, which a plain value cannot express",
                cure="Read it with `take_blobs`.",
            )
        return {"data": None, "uri": item["blob_uri"], "position": item["position"], "size": item["size"]}
    return {"data": data or b"", "uri": None}


def _get(ranges: Sequence[ByteRange]) -> Fetch[Sequence[Buffer]]:
    return (yield ranges) if ranges else []
