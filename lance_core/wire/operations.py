"""Operations that carry no rows: indices, configuration, references, bases (arms of `lance.table.Transaction`).

d2 06 02 08 03        restore (field 106) { version = 3 }
"""

from __future__ import annotations

from typing import Any

from lance_core.table.operations import (
    Clone,
    CompactedSsTable,
    CreateIndex,
    MapUpdate,
    Project,
    ReserveFragments,
    Restore,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lance_core.wire.indices import Coverages, decode_index_message, decode_uuid, encode_index_message, encode_uuid
from lance_core.wire.pb import table_pb2
from lance_core.wire.pb.transaction_pb2 import Transaction as Message
from lance_core.wire.schema import decode_schema, encode_fields
from lance_core.wire.table import decode_base_path, encode_base_path


def decode_create_index(message: Any) -> CreateIndex:
    """CreateIndex."""
    coverages = Coverages()
    return CreateIndex(
        new_indices=tuple(decode_index_message(item, coverages) for item in message.new_indices),
        removed_indices=tuple(decode_index_message(item, coverages) for item in message.removed_indices),
    )


def encode_create_index(operation: CreateIndex) -> Any:
    """CreateIndex."""
    return Message.CreateIndex(
        new_indices=[encode_index_message(item) for item in operation.new_indices],
        removed_indices=[encode_index_message(item) for item in operation.removed_indices],
    )


def decode_restore(message: Any) -> Restore:
    """Restore."""
    return Restore(version=message.version)


def encode_restore(operation: Restore) -> Any:
    """Restore."""
    return Message.Restore(version=operation.version)


def decode_reserve(message: Any) -> ReserveFragments:
    """ReserveFragments."""
    return ReserveFragments(num_fragments=message.num_fragments)


def encode_reserve(operation: ReserveFragments) -> Any:
    """ReserveFragments."""
    return Message.ReserveFragments(num_fragments=operation.num_fragments)


def decode_project(message: Any) -> Project:
    """Project: the message holds fields only, so the metadata of the schema is the table's (the draft keeps it)."""
    return Project(schema=decode_schema(message.schema, {}), preserves_nullability=message.preserves_nullability)


def encode_project(operation: Project) -> Any:
    """Project."""
    return Message.Project(schema=encode_fields(operation.schema), preserves_nullability=operation.preserves_nullability)


def _decode_map(message: Any) -> MapUpdate:
    entries = {item.key: item.value if item.HasField("value") else None for item in message.update_entries}
    return MapUpdate(entries=entries, replace=message.replace)


def _encode_map(update: MapUpdate) -> Any:
    entries = [Message.UpdateMapEntry(key=key, value=value) for key, value in update.entries.items()]
    return Message.UpdateMap(update_entries=entries, replace=update.replace)


def decode_update_config(message: Any) -> UpdateConfig:
    """UpdateConfig, also in the form that old releases wrote (upserts and deleted keys; whole maps of metadata)."""

    def optional(name: str) -> MapUpdate | None:
        return _decode_map(getattr(message, name)) if message.HasField(name) else None

    config, schema = optional("config_updates"), optional("schema_metadata_updates")
    if config is None and (message.upsert_values or message.delete_keys):
        config = MapUpdate(entries={**message.upsert_values, **dict.fromkeys(message.delete_keys)})
    if schema is None and message.schema_metadata:
        schema = MapUpdate(entries=dict(message.schema_metadata), replace=True)
    fields = {field_id: _decode_map(update) for field_id, update in message.field_metadata_updates.items()}
    for field_id, update in message.field_metadata.items():
        fields.setdefault(field_id, MapUpdate(entries=dict(update.metadata), replace=True))
    return UpdateConfig(
        config_updates=config,
        table_metadata_updates=optional("table_metadata_updates"),
        schema_metadata_updates=schema,
        field_metadata_updates=fields,
    )


def encode_update_config(operation: UpdateConfig) -> Any:
    """UpdateConfig, in today's form."""

    def optional(update: MapUpdate | None) -> Any:
        return None if update is None else _encode_map(update)

    message = Message.UpdateConfig(
        config_updates=optional(operation.config_updates),
        table_metadata_updates=optional(operation.table_metadata_updates),
        schema_metadata_updates=optional(operation.schema_metadata_updates),
    )
    for field_id, update in operation.field_metadata_updates.items():
        message.field_metadata_updates[field_id].CopyFrom(_encode_map(update))
    return message


def decode_sstables(messages: Any) -> tuple[CompactedSsTable, ...]:
    """Sorted runs."""
    return tuple(
        CompactedSsTable(shard_id=decode_uuid(item.shard_id, what="a shard"), generation=item.generation)
        for item in messages
    )


def encode_sstables(items: tuple[CompactedSsTable, ...]) -> list[table_pb2.CompactedSsTable]:
    """Sorted runs."""
    return [table_pb2.CompactedSsTable(shard_id=encode_uuid(item.shard_id), generation=item.generation) for item in items]


def decode_mem_wal(message: Any) -> UpdateMemWalState:
    """UpdateMemWalState."""
    return UpdateMemWalState(compacted_sstables=decode_sstables(message.compacted_sstables))


def encode_mem_wal(operation: UpdateMemWalState) -> Any:
    """UpdateMemWalState."""
    return Message.UpdateMemWalState(compacted_sstables=encode_sstables(operation.compacted_sstables))


def decode_clone(message: Any) -> Clone:
    """Clone."""
    return Clone(
        is_shallow=message.is_shallow,
        ref_version=message.ref_version,
        ref_path=message.ref_path,
        ref_name=message.ref_name if message.HasField("ref_name") else None,
        branch_name=message.branch_name if message.HasField("branch_name") else None,
    )


def encode_clone(operation: Clone) -> Any:
    """Clone."""
    return Message.Clone(
        is_shallow=operation.is_shallow,
        ref_version=operation.ref_version,
        ref_path=operation.ref_path,
        ref_name=operation.ref_name,
        branch_name=operation.branch_name,
    )


def decode_update_bases(message: Any) -> UpdateBases:
    """UpdateBases."""
    return UpdateBases(new_bases=tuple(decode_base_path(item) for item in message.new_bases))


def encode_update_bases(operation: UpdateBases) -> Any:
    """UpdateBases."""
    return Message.UpdateBases(new_bases=[encode_base_path(item) for item in operation.new_bases])
