"""Schemas on the wire: `lance.file.Field` lists and metadata maps, shared by manifests, transactions and file descriptors.

A schema travels flattened in pre-order; `parent_id` (-1 at the top) rebuilds the tree:

    1a 02 69 64      name = "id" (field 2) ...      one Field message per field of the schema
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_core.errors import CorruptFileError
from lance_core.format.schema import Field, FieldEncoding, LegacyDictionary, Schema
from lance_core.wire.pb import file_pb2

_ENCODINGS: Mapping[int, FieldEncoding] = MappingProxyType({int(item): item for item in FieldEncoding})


def parse_message(kind: type[Any], data: bytes, *, what: str) -> Any:
    """A protobuf message of class `kind`, or CorruptFileError saying which bytes were not one."""
    try:
        return kind.FromString(data)
    except (DecodeError, RecursionError) as error:
        raise CorruptFileError(
            f"the {what} ({len(data)} bytes) is not a valid protobuf message: {error}",
            cure="The file is damaged; restore it from a copy, or check out another version of the table.",
        ) from error


def unknown_bytes(message: Message) -> bytes:
    """The serialized fields of `message` that its description does not name; empty in the ordinary case."""
    if len(UnknownFieldSet(message)) == 0:
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in message.ListFields():
        rest.ClearField(descriptor.name)
    return bytes(rest.SerializeToString(deterministic=True))


def decode_field(message: file_pb2.Field) -> Field:
    """The noun of one Field message. An encoding number this release does not know reads as NONE (only 0.1 acts on it)."""
    dictionary = None
    if message.HasField("dictionary"):
        dictionary = LegacyDictionary(offset=message.dictionary.offset, length=message.dictionary.length)
    return Field(
        id=message.id,
        name=message.name,
        parent_id=message.parent_id,
        logical_type=message.logical_type,
        nullable=message.nullable,
        encoding=_ENCODINGS.get(message.encoding, FieldEncoding.NONE),
        metadata=dict(message.metadata) if message.metadata else {},
        extension_name=message.extension_name,
        dictionary=dictionary,
        unenforced_primary_key=message.unenforced_primary_key,
        unenforced_primary_key_position=message.unenforced_primary_key_position,
        unenforced_clustering_key=message.unenforced_clustering_key,
        unenforced_clustering_key_position=message.unenforced_clustering_key_position,
        type=int(message.type),
        unknown=unknown_bytes(message),
    )


def encode_field(field: Field) -> file_pb2.Field:
    """The message of one field."""
    message = file_pb2.Field(
        type=field.type,  # type: ignore[arg-type]
        name=field.name,
        id=field.id,
        parent_id=field.parent_id,
        logical_type=field.logical_type,
        nullable=field.nullable,
        encoding=int(field.encoding),  # type: ignore[arg-type]
        extension_name=field.extension_name,
        unenforced_primary_key=field.unenforced_primary_key,
        unenforced_primary_key_position=field.unenforced_primary_key_position,
        unenforced_clustering_key=field.unenforced_clustering_key,
        unenforced_clustering_key_position=field.unenforced_clustering_key_position,
    )
    message.metadata.update(field.metadata)
    if field.dictionary is not None:
        message.dictionary.CopyFrom(file_pb2.Dictionary(offset=field.dictionary.offset, length=field.dictionary.length))
    if field.unknown:
        message.MergeFromString(field.unknown)
    return message


def decode_schema(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """A schema from its flattened fields and metadata map. CorruptFileError when ids or parents contradict each other."""
    decoded = tuple(decode_field(message) for message in fields)
    seen: set[int] = set()
    for item in decoded:
        if item.parent_id >= 0 and item.parent_id not in seen:
            raise CorruptFileError(
                f"field {item.id} ({item.name!r}) names parent {item.parent_id}, which does not come before it in the schema"
            )
        # Descriptors inside data files give synthetic children the id -1, many times over.
        if item.id >= 0 and item.id in seen:
            raise CorruptFileError(f"field id {item.id} ({item.name!r}) occurs twice in the schema")
        seen.add(item.id)
    return Schema(fields=decoded, metadata=dict(metadata))


def encode_fields(schema: Schema) -> list[file_pb2.Field]:
    """The flattened field messages of a schema (its metadata goes into a map of its own)."""
    return [encode_field(item) for item in schema.fields]
