"""From a pyarrow schema to a Lance schema: ids in pre-order from 0, logical type strings, extension metadata.

list<item: struct<a: int8>>      0  -1  c     list.struct
                                 1   0  item  struct
                                 2   1  a     int8
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_core.arrow.logical import (
    ARROW_JSON,
    BLOB_METADATA,
    BLOB_V2,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON,
    LANCE_JSON,
    MAP,
    NO_ITEMS,
    STRUCT,
    logical_of,
    refused,
    text_metadata,
    unwrap,
)
from lance_core.arrow.storable import check_storable
from lance_core.errors import InputError
from lance_core.format.schema import CLUSTERING_KEY, NO_PARENT, PRIMARY_KEY, Field, FieldEncoding, Schema, is_true
from lance_core.format.version import DEFAULT_VERSION, FileVersion

_VARIABLE_WIDTH = frozenset({"string", "large_string", "binary", "large_binary", JSON})
# The writer of the format uses this key to pass ids around; it is never stored.
_FIELD_ID = "lance:field_id"


def schema_from_arrow(schema: pa.Schema, *, version: FileVersion = DEFAULT_VERSION, check: bool = True) -> Schema:
    """The Lance schema of a pyarrow schema, field ids assigned in pre-order from 0.

    `version` is the storage version of the table: from 2.2 on, large_binary columns with blob metadata become blob v2
    structs. Raises InputError, naming the column, for types that the format, or files of the version, cannot hold (see
    `storable`), and for names it cannot hold. Without `check` the caller asks what files of the version can hold.
    (Spec: table format, "schema".)
    """
    builder = _Builder(version)
    _check_names(schema.names)
    for item in schema:
        builder.add(item, NO_PARENT, item.name)
    made = Schema(tuple(builder.fields), text_metadata(schema.metadata))
    if check:
        check_storable(made, version)
    return made


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if "." in name:
            raise InputError(f"column name {name!r} contains a dot", cure="Rename it, or make it a struct field.")
        if name in seen:
            raise InputError(f"two columns are named {name!r}", cure="Rename one of them.")
        seen.add(name)


@dataclass
class _Builder:
    version: FileVersion
    fields: list[Field] = field(default_factory=list)

    def add(self, item: pa.Field[Any], parent_id: int, path: str) -> None:
        arrow_type, metadata, extension = unwrap(item)
        metadata.pop(_FIELD_ID, None)
        if extension in (ARROW_JSON, LANCE_JSON):
            self._leaf(item, parent_id, JSON, {**metadata, EXTENSION_NAME: LANCE_JSON.encode(), EXTENSION_METADATA: b""})
        elif self._becomes_blob_v2(arrow_type, metadata, extension):
            self._add_blob(item, parent_id, metadata, path)
        else:
            self._add_plain(item, arrow_type, metadata, parent_id, path)

    def _becomes_blob_v2(self, arrow_type: pa.DataType, metadata: dict[str, bytes], extension: str) -> bool:
        if self.version < FileVersion.V2_2 or extension:
            return False
        return is_true(metadata.get(BLOB_METADATA)) and (
            pa.types.is_large_binary(arrow_type) or pa.types.is_binary(arrow_type)
        )

    def _add_blob(self, item: pa.Field[Any], parent_id: int, metadata: dict[str, bytes], path: str) -> None:
        # From 2.2 on every blob column is described by a blob v2 struct, whatever its metadata said.
        kept = {key: value for key, value in metadata.items() if key != BLOB_METADATA}
        blob_id = self._append(item, parent_id, STRUCT, {**kept, EXTENSION_NAME: BLOB_V2.encode()})
        self.add(pa.field("data", pa.large_binary()), blob_id, f"{path}.data")
        self.add(pa.field("uri", pa.string()), blob_id, f"{path}.uri")

    def _add_plain(
        self, item: pa.Field[Any], arrow_type: pa.DataType, metadata: dict[str, bytes], parent_id: int, path: str
    ) -> None:
        types = pa.types
        if types.is_struct(arrow_type):
            children = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
            self._parent(item, parent_id, STRUCT, metadata, children, path)
        elif types.is_map(arrow_type):
            self._add_map(item, arrow_type, metadata, parent_id, path)
        elif types.is_list(arrow_type) or types.is_large_list(arrow_type):
            name = "list" if types.is_list(arrow_type) else "large_list"
            suffix = ".struct" if types.is_struct(_storage(arrow_type.value_type)) else ""
            self._parent(item, parent_id, name + suffix, metadata, [arrow_type.value_field], path)
        elif types.is_fixed_size_list(arrow_type) and types.is_struct(arrow_type.value_type):
            if not arrow_type.list_size:
                raise refused(arrow_type, path=path, why=NO_ITEMS)
            name = f"fixed_size_list:struct:{arrow_type.list_size}"
            self._parent(item, parent_id, name, metadata, [arrow_type.value_field], path)
        else:
            self._leaf(item, parent_id, logical_of(arrow_type, path=path), metadata)

    def _add_map(
        self,
        item: pa.Field[Any],
        arrow_type: pa.MapType[Any, Any, Any],
        metadata: dict[str, bytes],
        parent_id: int,
        path: str,
    ) -> None:
        if arrow_type.keys_sorted:
            raise refused(arrow_type, path=path, why="the Lance format has no maps with sorted keys")
        entries = pa.field("entries", pa.struct([arrow_type.key_field, arrow_type.item_field]), nullable=False)
        self._parent(item, parent_id, MAP, metadata, [entries], path)

    def _parent(
        self,
        item: pa.Field[Any],
        parent_id: int,
        logical_type: str,
        metadata: dict[str, bytes],
        children: list[pa.Field[Any]],
        path: str,
    ) -> None:
        own_id = self._append(item, parent_id, logical_type, metadata)
        if logical_type == STRUCT and len({child.name for child in children}) < len(children):
            raise InputError(f"struct {path!r} has two fields with the same name", cure="Rename one of them.")
        for child in children:
            self.add(child, own_id, f"{path}.{child.name}")

    def _leaf(self, item: pa.Field[Any], parent_id: int, logical_type: str, metadata: dict[str, bytes]) -> None:
        self._append(item, parent_id, logical_type, metadata)

    def _append(self, item: pa.Field[Any], parent_id: int, logical_type: str, metadata: dict[str, bytes]) -> int:
        own_id = len(self.fields)
        primary = is_true(metadata.get(PRIMARY_KEY))
        clustering = is_true(metadata.get(CLUSTERING_KEY))
        self.fields.append(
            Field(
                id=own_id,
                name=item.name,
                parent_id=parent_id,
                logical_type=logical_type,
                nullable=item.nullable,
                encoding=_encoding_of(logical_type),
                metadata=metadata,
                extension_name=metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace"),
                unenforced_primary_key=primary,
                unenforced_primary_key_position=_position(metadata, PRIMARY_KEY),
                unenforced_clustering_key=clustering,
                unenforced_clustering_key_position=_position(metadata, CLUSTERING_KEY),
            )
        )
        return own_id


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    return arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type


def _position(metadata: dict[str, bytes], key: str) -> int:
    if key not in metadata:
        return 0
    text = metadata.get(f"{key}:position", b"0")
    if not text.isdigit():
        raise InputError(f"field metadata {key}:position must be a number, got {text!r}")
    return int(text)


def _encoding_of(logical_type: str) -> FieldEncoding:
    if logical_type in _VARIABLE_WIDTH:
        return FieldEncoding.VAR_BINARY
    if logical_type in ("null", STRUCT):
        return FieldEncoding.NONE
    if logical_type.startswith("dict:"):
        return FieldEncoding.DICTIONARY
    return FieldEncoding.PLAIN
