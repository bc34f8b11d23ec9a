"""file.proto <-> schema nouns: fields, the file descriptor, and the metadata of legacy (0.1) files.

FileDescriptor { schema { fields { name: "id" logical_type: "int64" id: 0 parent_id: -1 } } length: 3 }
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_core.format.schema import Schema
from lance_core.wire.pb import file_pb2, table_pb2
from lance_core.wire.schema import decode_schema, encode_fields, parse_message


@dataclass(frozen=True, slots=True)
class FileDescriptor:
    """Global buffer 0 of a 2.x file: the file's own schema and its number of rows."""

    schema: Schema
    num_rows: int


@dataclass(frozen=True, slots=True)
class PageStatistics:
    """Where a legacy file keeps page statistics: their schema, its field ids, the page table's position."""

    schema: Schema
    fields: tuple[int, ...]
    page_table_position: int


@dataclass(frozen=True, slots=True)
class LegacyMetadata:
    """`lance.file.Metadata`, the last message of a legacy file. `batch_offsets`: row starts, one more than batches."""

    manifest_position: int
    batch_offsets: tuple[int, ...]
    page_table_position: int
    statistics: PageStatistics | None = None


def decode_file_descriptor(data: bytes) -> FileDescriptor:
    """Global buffer 0 of a 2.x file. Raises CorruptFileError when it is not a FileDescriptor."""
    message = parse_message(file_pb2.FileDescriptor, data, what="file descriptor")
    return FileDescriptor(decode_schema(message.schema.fields, message.schema.metadata), message.length)


def encode_file_descriptor(descriptor: FileDescriptor) -> bytes:
    """The bytes of global buffer 0."""
    message = file_pb2.FileDescriptor(length=descriptor.num_rows)
    message.schema.fields.extend(encode_fields(descriptor.schema))
    for key, value in descriptor.schema.metadata.items():
        message.schema.metadata[key] = value
    return bytes(message.SerializeToString())


def decode_legacy_metadata(data: bytes) -> LegacyMetadata:
    """The metadata message of a legacy file. Raises CorruptFileError when it cannot be parsed."""
    message = parse_message(file_pb2.Metadata, data, what="metadata of the legacy file")
    statistics = None
    if message.HasField("statistics"):
        found = message.statistics
        statistics = PageStatistics(decode_schema(found.schema, {}), tuple(found.fields), found.page_table_position)
    return LegacyMetadata(message.manifest_position, tuple(message.batch_offsets), message.page_table_position, statistics)


def encode_legacy_metadata(metadata: LegacyMetadata) -> bytes:
    """The bytes of a legacy file's metadata message."""
    message = file_pb2.Metadata(
        manifest_position=metadata.manifest_position,
        batch_offsets=metadata.batch_offsets,
        page_table_position=metadata.page_table_position,
    )
    if metadata.statistics is not None:
        message.statistics.schema.extend(encode_fields(metadata.statistics.schema))
        message.statistics.fields.extend(metadata.statistics.fields)
        message.statistics.page_table_position = metadata.statistics.page_table_position
    return bytes(message.SerializeToString())


def decode_legacy_schema(data: bytes) -> Schema:
    """The schema in the manifest message that a legacy file carries (its dictionary fields say where their values are)."""
    message = parse_message(table_pb2.Manifest, data, what="manifest of the legacy file")
    return decode_schema(message.fields, message.schema_metadata)


def encode_legacy_schema(schema: Schema) -> bytes:
    """The manifest message that a legacy file carries."""
    message = table_pb2.Manifest(fields=encode_fields(schema), version=1)
    message.data_format.file_format = "lance"
    message.data_format.version = "0.1"
    for key, value in schema.metadata.items():
        message.schema_metadata[key] = value
    return bytes(message.SerializeToString())
