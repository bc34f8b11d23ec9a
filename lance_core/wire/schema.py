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
from lance_core.format.schema import NO_PARENT, Field, FieldEncoding, LegacyDictionary, Schema
from lance_core.wire.pb import file_pb2

MAX_DEPTH = 64
"""Levels of a nested column: Arrow itself reads no deeper ones, and what walks a schema recurses."""

_NAME, _ID = 0x12, 0x18
"""Tags of the first two fields of a Field message, as every writer orders them."""

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


def decode_fields(raw: Iterable[bytes]) -> tuple[Field, ...]:
    """The nouns of serialized Field messages.

    The fields of a wide table differ in name and id, which come first; what follows is decoded once for all that share it.
    """
    known: dict[bytes, Field | None] = {}
    fields = []
    for data in raw:
        name, number, at = _name_and_id(data)
        if name is None:
            fields.append(decode_field(parse_message(file_pb2.Field, data, what="field of a schema")))
            continue
        rest = data[at:]
        like = known[rest] if rest in known else known.setdefault(rest, _nameless(rest))
        if like is None:
            fields.append(decode_field(parse_message(file_pb2.Field, data, what="field of a schema")))
        else:
            fields.append(like.called(name, number))
    return tuple(fields)


def _name_and_id(data: bytes) -> tuple[str | None, int, int]:
    """Name, id, and where the rest begins; (None, 0, 0) for what is not written in this order, or with long numbers."""
    end = 2 + data[1] if len(data) > 2 and data[0] == _NAME and data[1] < 0x80 else 0
    if not 0 < end <= len(data) - 4:
        return None, 0, 0
    number = 0
    try:
        name = data[2:end].decode()
    except UnicodeDecodeError:
        return None, 0, 0
    if data[end] == _ID:
        number, end = data[end + 1], end + 2
        if number >= 0x80:
            number, end = number & 0x7F | data[end] << 7, end + 1
            if number >= 1 << 14:
                return None, 0, 0
    return name, number, end


def _nameless(rest: bytes) -> Field | None:
    """The field of a message without name and id; None when they are in it after all, or it is damaged."""
    try:
        message = file_pb2.Field.FromString(rest)
    except (DecodeError, RecursionError):
        return None
    return None if message.name or message.id else decode_field(message)


def decode_schema(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """A schema from its flattened fields and metadata map. CorruptFileError when ids or parents contradict each other."""
    return checked_schema(tuple(decode_field(message) for message in fields), metadata)


def checked_schema(decoded: tuple[Field, ...], metadata: Mapping[str, bytes]) -> Schema:
    """A schema of decoded fields. CorruptFileError when ids or parents contradict each other."""
    if len({item.id for item in decoded if item.id >= 0 and item.parent_id == NO_PARENT}) == len(decoded):
        return Schema(fields=decoded, metadata=dict(metadata))
    seen: set[int] = set()
    depths: dict[int, int] = {}
    for item in decoded:
        depth = depths.get(item.parent_id, 0) + 1
        if depth > MAX_DEPTH:
            raise CorruptFileError(f"field {item.id} ({item.name!r}) is nested more than {MAX_DEPTH} levels deep")
        if item.id >= 0:
            depths[item.id] = depth
        if item.parent_id != NO_PARENT and item.parent_id not in seen:
            raise CorruptFileError(
                f"field {item.id} ({item.name!r}) has parent {item.parent_id}, which does not precede it in the schema"
            )
        # Descriptors inside data files give synthetic children the id -1, many times over.
        if item.id >= 0 and item.id in seen:
            raise CorruptFileError(f"field id {item.id} ({item.name!r}) occurs twice in the schema")
        seen.add(item.id)
    return Schema(fields=decoded, metadata=dict(metadata))


def encode_fields(schema: Schema) -> list[file_pb2.Field]:
    """The flattened field messages of a schema (its metadata goes into a map of its own)."""
    return [encode_field(item) for item in schema.fields]
