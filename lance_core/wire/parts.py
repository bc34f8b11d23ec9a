"""The fragments of a serialized manifest, taken out and put back by the protobuf runtime itself, each as bytes.

On the wire a nested message is a length and bytes, so a `lance.table.Manifest` also reads as

    message Parts { repeated bytes fields = 1; repeated bytes fragments = 2; }      what else there is stays unknown

    12 02 08 01 18 07 12 02 08 02       fragments 08 01 and 08 02; left over: 18 07
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lance_core.rowids.walk import encode_field
from lance_core.wire.schema import parse_message

_APPEND = 100
"""The field of a Transaction that holds an Append."""


def _classes() -> tuple[Any, Any]:
    source = descriptor_pb2.FileDescriptorProto(
        name="lance_core/wire/parts.proto", package="lance_core.wire", syntax="proto3"
    )
    kind = descriptor_pb2.FieldDescriptorProto
    message = source.message_type.add(name="Parts")
    for number, name in enumerate(("fields", "fragments"), start=1):
        message.field.add(name=name, number=number, type=kind.TYPE_BYTES, label=kind.LABEL_REPEATED)
    outer = source.message_type.add(name="Appending")
    outer.field.add(
        name="append", number=_APPEND, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL, type_name=".lance_core.wire.Parts"
    )
    found = descriptor_pool.DescriptorPool().AddSerializedFile(source.SerializeToString()).message_types_by_name
    return message_factory.GetMessageClass(found["Parts"]), message_factory.GetMessageClass(found["Appending"])


_PARTS, _APPENDING = _classes()


def split_manifest(data: bytes) -> tuple[list[bytes], list[bytes], bytes]:
    """(the fields of the schema, the fragments, the message without both) of a serialized Manifest.

    A manifest is nearly nothing but these: taken out first they leave little to build. Raises CorruptFileError.
    """
    message = parse_message(_PARTS, data, what="manifest")
    fields, fragments = list(message.fields), list(message.fragments)
    message.ClearField("fields")
    message.ClearField("fragments")
    return fields, fragments, bytes(message.SerializeToString())


def join_fragments(fragments: Iterable[bytes]) -> bytes:
    """Serialized fragments as the field of a Manifest that holds them."""
    return bytes(_PARTS(fragments=fragments).SerializeToString())


def split_append(data: bytes) -> tuple[list[bytes], bytes]:
    """(the fragments of the Append, the message without them) of a serialized Transaction. Raises CorruptFileError."""
    message = parse_message(_APPENDING, data, what="transaction")
    if not message.HasField("append"):
        return [], data
    fragments = list(message.append.fields)
    message.append.ClearField("fields")
    return fragments, bytes(message.SerializeToString())


def join_append(head: bytes, fragments: Iterable[bytes]) -> bytes:
    """A serialized Transaction that had no operation, with an Append of serialized fragments."""
    return head + encode_field(_APPEND, bytes(_PARTS(fields=fragments).SerializeToString()))
