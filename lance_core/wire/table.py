"""Manifests on the wire (`lance.table.Manifest`): one message that describes one version of a table.

    0a ..   a Field of the schema        12 ..   a fragment        18 07   version = 7
    6a ..   who wrote it                 7a ..   the data format   b8 01 .. position of the inline transaction

Fragments are taken out of the bytes before the rest is parsed and stay bytes until somebody looks (`FragmentList`), so a
manifest of 100,000 fragments opens in the time it takes to walk over it. What this release does not know is kept as bytes
and written back. Where the index section and the transaction are is a matter of the file: `lance_core.wire.manifest_file`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import FLAG_V2_FORMAT_DEPRECATED, SECONDS_END, BasePath, Manifest, WriterVersion
from lance_core.format.schema import contradiction
from lance_core.format.version import DEFAULT_VERSION, FileVersion
from lance_core.wire.fragments import WireFragments, encode_fragment
from lance_core.wire.new_fragments import join_fragments, split_manifest
from lance_core.wire.pb import table_pb2
from lance_core.wire.schema import checked_schema, decode_fields, encode_fields, parse_message, unknown_bytes

_NS = 1_000_000_000
_BLOB_TABLE = 17
"""The field that once held the version of the table of blobs; later releases leave the number unused."""
# Carried, never interpreted: they travel in `Manifest.unknown` beside what is truly unknown.
_CARRIED = ("fragment_tree", "max_clustering_id")


@dataclass(frozen=True, slots=True)
class DecodedManifest:
    """A manifest and where its file keeps the sections beside it (file positions of their length words)."""

    manifest: Manifest
    index_section: int | None
    transaction_section: int | None


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in a serialized Manifest message, without indices (they are beside it).

    Raises CorruptFileError when the bytes are not such a message.
    """
    return decode_manifest_message(data).manifest


def decode_manifest_message(data: bytes) -> DecodedManifest:
    """Like `decode_manifest`, with the positions of the index section and of the inline transaction."""
    fields, raw, rest = split_manifest(data)
    message = parse_message(table_pb2.Manifest, rest, what="manifest")
    _refuse_blob_table(message)
    fragments = FragmentList.of_bytes(raw, WireFragments())
    if not 0 <= message.timestamp.seconds < SECONDS_END or not 0 <= message.timestamp.nanos < _NS:
        raise CorruptFileError(f"the manifest has the timestamp {message.timestamp.seconds} s, which is out of range")
    decoded = decode_fields(fields)
    wrong = contradiction(decoded)
    if wrong:
        raise CorruptFileError(f"the schema of the table contradicts itself: {wrong}")
    manifest = Manifest(
        schema=checked_schema(decoded, message.schema_metadata),
        fragments=fragments,
        version=message.version,
        timestamp_ns=message.timestamp.seconds * _NS + message.timestamp.nanos,
        writer_version=_decode_writer(message),
        reader_feature_flags=message.reader_feature_flags,
        writer_feature_flags=message.writer_feature_flags,
        max_fragment_id=message.max_fragment_id if message.HasField("max_fragment_id") else None,
        transaction_file=message.transaction_file,
        next_row_id=message.next_row_id,
        data_storage_version=message.data_format.version or _infer_storage_version(message, fragments),
        file_format=message.data_format.file_format or "lance",
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        base_paths=tuple(decode_base_path(item) for item in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        tag=message.tag,
        version_aux_data=message.version_aux_data,
        max_allocated_field_id=message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None,
        unknown=_carried(message),
    )
    return DecodedManifest(
        manifest=manifest,
        index_section=message.index_section if message.HasField("index_section") else None,
        transaction_section=_transaction_section(message),
    )


def _infer_storage_version(message: Any, fragments: FragmentList) -> str:
    """Releases before 0.16 did not write it down: the files tell, and where there are none, a flag of that time."""
    versions = [file.version for fragment in fragments for file in fragment.files]
    if versions:
        return min(versions).text
    is_v2 = message.writer_feature_flags & FLAG_V2_FORMAT_DEPRECATED
    return DEFAULT_VERSION.text if is_v2 else FileVersion.V0_1.text


def _transaction_section(message: Any) -> int | None:
    for name in ("transaction_section", "transaction_section_deprecated"):
        if message.HasField(name):
            return int(getattr(message, name))
    return None


def _decode_writer(message: Any) -> WriterVersion | None:
    if not message.HasField("writer_version"):
        return None
    writer = message.writer_version
    return WriterVersion(
        library=writer.library,
        version=writer.version,
        prerelease=writer.prerelease if writer.HasField("prerelease") else None,
        build_metadata=writer.build_metadata if writer.HasField("build_metadata") else None,
    )


def _refuse_blob_table(message: Any) -> None:
    """Tables whose large values lie in a table of their own: their rows would be read without them."""
    found = UnknownFieldSet(message)
    if any(found[number].field_number == _BLOB_TABLE and found[number].data for number in range(len(found))):
        raise UnsupportedFeatureError(
            "the table keeps columns in a separate `_blobs` table, a draft layout of old Lance releases",
            cure="Read it with the release that wrote it, and rewrite it.",
        )


def _carried(message: Any) -> bytes:
    if not message.clustering and not any(map(message.HasField, _CARRIED)):
        return unknown_bytes(message)
    kept = table_pb2.Manifest()
    if message.HasField("fragment_tree"):
        kept.fragment_tree.CopyFrom(message.fragment_tree)
    if message.HasField("max_clustering_id"):
        kept.max_clustering_id = message.max_clustering_id
    kept.clustering.extend(message.clustering)
    return bytes(kept.SerializeToString(deterministic=True)) + unknown_bytes(message)


def decode_base_path(message: table_pb2.BasePath) -> BasePath:
    """The noun of one base path."""
    return BasePath(
        id=message.id,
        path=message.path,
        name=message.name if message.HasField("name") else None,
        is_dataset_root=message.is_dataset_root,
    )


def encode_base_path(base: BasePath) -> table_pb2.BasePath:
    """The message of one base path."""
    return table_pb2.BasePath(id=base.id, path=base.path, name=base.name, is_dataset_root=base.is_dataset_root)


def encode_manifest(
    manifest: Manifest, *, index_section: int | None = None, transaction_section: int | None = None
) -> bytes:
    """A serialized Manifest message; the two positions are those of the length words in the file it goes into.

    Fragments that were read as bytes and not changed since go out as the same bytes.
    """
    message = table_pb2.Manifest(
        fields=encode_fields(manifest.schema),
        version=manifest.version,
        version_aux_data=manifest.version_aux_data,
        index_section=index_section,
        tag=manifest.tag,
        reader_feature_flags=manifest.reader_feature_flags,
        writer_feature_flags=manifest.writer_feature_flags,
        max_fragment_id=manifest.max_fragment_id,
        transaction_file=manifest.transaction_file,
        next_row_id=manifest.next_row_id,
        base_paths=[encode_base_path(base) for base in manifest.base_paths],
        branch=manifest.branch,
        transaction_section=transaction_section,
        max_allocated_field_id=manifest.max_allocated_field_id,
    )
    message.timestamp.seconds, message.timestamp.nanos = divmod(manifest.timestamp_ns, _NS)
    message.data_format.file_format = manifest.file_format
    message.data_format.version = manifest.data_storage_version
    message.schema_metadata.update(manifest.schema.metadata)
    message.config.update(manifest.config)
    message.table_metadata.update(manifest.table_metadata)
    if manifest.writer_version is not None:
        writer = manifest.writer_version
        message.writer_version.CopyFrom(
            table_pb2.Manifest.WriterVersion(
                library=writer.library,
                version=writer.version,
                prerelease=writer.prerelease,
                build_metadata=writer.build_metadata,
            )
        )
    if manifest.unknown:
        message.MergeFromString(manifest.unknown)
    return bytes(message.SerializeToString(deterministic=True)) + _encode_fragments(manifest)


def _encode_fragments(manifest: Manifest) -> bytes:
    return join_fragments(FragmentList.of(manifest.fragments).to_bytes(encode_fragment))
