"""Operations that carry fragments or files (arms of `lance.table.Transaction`).

a2 06 ..        append (field 100) { fragments ... }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_core.format.fragment import DataOverlayFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexDetails
from lance_core.table.operations import (
    Append,
    DataOverlay,
    DataReplacement,
    Delete,
    KeyBloomFilter,
    KeyFilter,
    Merge,
    OverlayGroup,
    Overwrite,
    Replacement,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateMode,
)
from lance_core.wire.fragments import (
    decode_data_file,
    decode_fragment_message,
    encode_data_file,
    encode_fragment,
    encode_fragment_message,
)
from lance_core.wire.indices import decode_index_files, decode_uuid, encode_index_files, encode_uuid
from lance_core.wire.operations import decode_sstables, encode_sstables
from lance_core.wire.pb import table_pb2
from lance_core.wire.pb.transaction_pb2 import Transaction as Message
from lance_core.wire.schema import decode_schema, encode_fields
from lance_core.wire.table import decode_base_path, encode_base_path


def _fragments(messages: Any) -> tuple[Fragment, ...]:
    return tuple(decode_fragment_message(item) for item in messages)


def _messages(fragments: Sequence[Fragment]) -> list[table_pb2.DataFragment]:
    if isinstance(fragments, FragmentList):
        return [table_pb2.DataFragment.FromString(raw) for raw in fragments.to_bytes(encode_fragment)]
    return [encode_fragment_message(item) for item in fragments]


def decode_append(message: Any) -> Append:
    """Append."""
    return Append(fragments=_fragments(message.fragments))


def encode_append(operation: Append) -> Any:
    """Append."""
    return Message.Append(fragments=_messages(operation.fragments))


def decode_delete(message: Any) -> Delete:
    """Delete."""
    return Delete(
        updated_fragments=_fragments(message.updated_fragments),
        deleted_fragment_ids=tuple(message.deleted_fragment_ids),
        predicate=message.predicate,
    )


def encode_delete(operation: Delete) -> Any:
    """Delete."""
    return Message.Delete(
        updated_fragments=_messages(operation.updated_fragments),
        deleted_fragment_ids=operation.deleted_fragment_ids,
        predicate=operation.predicate,
    )


def decode_overwrite(message: Any) -> Overwrite:
    """Overwrite."""
    return Overwrite(
        fragments=_fragments(message.fragments),
        schema=decode_schema(message.schema, message.schema_metadata),
        config_upsert_values=dict(message.config_upsert_values),
        initial_bases=tuple(decode_base_path(item) for item in message.initial_bases),
    )


def encode_overwrite(operation: Overwrite) -> Any:
    """Overwrite."""
    message = Message.Overwrite(
        fragments=_messages(operation.fragments),
        schema=encode_fields(operation.schema),
        initial_bases=[encode_base_path(item) for item in operation.initial_bases],
    )
    message.schema_metadata.update(operation.schema.metadata)
    message.config_upsert_values.update(operation.config_upsert_values)
    return message


def decode_rewrite(message: Any) -> Rewrite:
    """Rewrite; the group that old releases wrote outside of `groups` becomes one."""
    groups = [RewriteGroup(_fragments(item.old_fragments), _fragments(item.new_fragments)) for item in message.groups]
    if message.old_fragments and not groups:
        groups = [RewriteGroup(_fragments(message.old_fragments), _fragments(message.new_fragments))]
    return Rewrite(groups=tuple(groups), rewritten_indices=tuple(_decode_rewritten(i) for i in message.rewritten_indices))


def _decode_rewritten(message: Any) -> RewrittenIndex:
    details = None
    if message.HasField("new_index_details"):
        details = IndexDetails(type_url=message.new_index_details.type_url, value=message.new_index_details.value)
    return RewrittenIndex(
        old_id=decode_uuid(message.old_id, what="a rewritten index"),
        new_id=decode_uuid(message.new_id, what="a rewritten index"),
        new_index_details=details,
        new_index_version=message.new_index_version,
        new_index_files=decode_index_files(message.new_index_files),
    )


def _encode_rewritten(item: RewrittenIndex) -> Any:
    message = Message.Rewrite.RewrittenIndex(
        old_id=encode_uuid(item.old_id),
        new_id=encode_uuid(item.new_id),
        new_index_version=item.new_index_version,
        new_index_files=encode_index_files(item.new_index_files),
    )
    if item.new_index_details is not None:
        message.new_index_details.type_url = item.new_index_details.type_url
        message.new_index_details.value = item.new_index_details.value
    return message


def encode_rewrite(operation: Rewrite) -> Any:
    """Rewrite."""
    groups = [
        Message.Rewrite.RewriteGroup(
            old_fragments=_messages(group.old_fragments), new_fragments=_messages(group.new_fragments)
        )
        for group in operation.groups
    ]
    return Message.Rewrite(groups=groups, rewritten_indices=[_encode_rewritten(i) for i in operation.rewritten_indices])


def decode_merge(message: Any) -> Merge:
    """Merge."""
    return Merge(
        fragments=_fragments(message.fragments),
        schema=decode_schema(message.schema, message.schema_metadata),
        preserves_nullability=message.preserves_nullability,
    )


def encode_merge(operation: Merge) -> Any:
    """Merge."""
    message = Message.Merge(
        fragments=_messages(operation.fragments),
        schema=encode_fields(operation.schema),
        preserves_nullability=operation.preserves_nullability,
    )
    message.schema_metadata.update(operation.schema.metadata)
    return message


def _decode_filter(message: Any) -> KeyFilter:
    arm = message.WhichOneof("data")
    bloom = None
    if arm == "bloom":
        bloom = KeyBloomFilter(
            bitmap=message.bloom.bitmap,
            num_bits=message.bloom.num_bits,
            number_of_items=message.bloom.number_of_items,
            probability=message.bloom.probability,
        )
    hashes = tuple(message.exact.key_hashes) if arm == "exact" else None
    return KeyFilter(field_ids=tuple(message.field_ids), key_hashes=hashes, bloom=bloom)


def _encode_filter(keys: KeyFilter) -> Any:
    message = Message.KeyExistenceFilter(field_ids=keys.field_ids)
    if keys.key_hashes is not None:
        message.exact.CopyFrom(Message.ExactKeySetFilter(key_hashes=keys.key_hashes))
    if keys.bloom is not None:
        bloom = Message.BloomFilter(
            bitmap=keys.bloom.bitmap,
            num_bits=keys.bloom.num_bits,
            number_of_items=keys.bloom.number_of_items,
            probability=keys.bloom.probability,
        )
        message.bloom.CopyFrom(bloom)
    return message


def decode_update(message: Any) -> Update:
    """Update."""
    return Update(
        removed_fragment_ids=tuple(message.removed_fragment_ids),
        updated_fragments=_fragments(message.updated_fragments),
        new_fragments=_fragments(message.new_fragments),
        fields_modified=tuple(message.fields_modified),
        compacted_sstables=decode_sstables(message.compacted_sstables),
        fields_for_preserving_frag_bitmap=tuple(message.fields_for_preserving_frag_bitmap),
        update_mode=UpdateMode.REWRITE_COLUMNS if message.update_mode == 1 else UpdateMode.REWRITE_ROWS,
        inserted_rows=_decode_filter(message.inserted_rows) if message.HasField("inserted_rows") else None,
        updated_fragment_offsets={key: tuple(item.values) for key, item in message.updated_fragment_offsets.items()},
        updated_fragment_offset_bitmaps=dict(message.updated_fragment_offset_bitmaps),
    )


def encode_update(operation: Update) -> Any:
    """Update."""
    message = Message.Update(
        removed_fragment_ids=operation.removed_fragment_ids,
        updated_fragments=_messages(operation.updated_fragments),
        new_fragments=_messages(operation.new_fragments),
        fields_modified=operation.fields_modified,
        compacted_sstables=encode_sstables(operation.compacted_sstables),
        fields_for_preserving_frag_bitmap=operation.fields_for_preserving_frag_bitmap,
        update_mode=int(operation.update_mode),  # type: ignore[arg-type]
        inserted_rows=None if operation.inserted_rows is None else _encode_filter(operation.inserted_rows),
    )
    for key, offsets in operation.updated_fragment_offsets.items():
        message.updated_fragment_offsets[key].values.extend(offsets)
    message.updated_fragment_offset_bitmaps.update(operation.updated_fragment_offset_bitmaps)
    return message


def decode_replacement(message: Any) -> DataReplacement:
    """DataReplacement."""
    return DataReplacement(
        replacements=tuple(
            Replacement(fragment_id=item.fragment_id, new_file=decode_data_file(item.new_file))
            for item in message.replacements
        )
    )


def encode_replacement(operation: DataReplacement) -> Any:
    """DataReplacement."""
    return Message.DataReplacement(
        replacements=[
            Message.DataReplacementGroup(fragment_id=item.fragment_id, new_file=encode_data_file(item.new_file))
            for item in operation.replacements
        ]
    )


def decode_overlay(message: Any) -> DataOverlay:
    """DataOverlay; the overlays stay bytes."""
    return DataOverlay(
        groups=tuple(
            OverlayGroup(
                fragment_id=group.fragment_id,
                overlays=tuple(DataOverlayFile(raw=item.SerializeToString(deterministic=True)) for item in group.overlays),
            )
            for group in message.groups
        )
    )


def encode_overlay(operation: DataOverlay) -> Any:
    """DataOverlay."""
    return Message.DataOverlay(
        groups=[
            Message.DataOverlayGroup(
                fragment_id=group.fragment_id,
                overlays=[table_pb2.DataOverlayFile.FromString(item.raw) for item in group.overlays],
            )
            for group in operation.groups
        ]
    )
