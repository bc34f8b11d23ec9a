"""The fragments of a serialized manifest, taken out and put back by the protobuf runtime itself, each as bytes.

On the wire a nested message is a length and bytes, so a `lance.table.Manifest` also reads as

    message Parts { repeated bytes fields = 1; repeated bytes fragments = 2; }      what else there is stays unknown

    12 02 08 01 18 07 12 02 08 02       fragments 08 01 and 08 02; left over: 18 07
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lance_core.wire.schema import parse_message


def _parts_class() -> Any:
    source = descriptor_pb2.FileDescriptorProto(
        name="lance_core/wire/parts.proto", package="lance_core.wire", syntax="proto3"
    )
    message = source.message_type.add(name="Parts")
    kind = descriptor_pb2.FieldDescriptorProto
    for number, name in enumerate(("fields", "fragments"), start=1):
        message.field.add(name=name, number=number, type=kind.TYPE_BYTES, label=kind.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    return message_factory.GetMessageClass(pool.AddSerializedFile(source.SerializeToString()).message_types_by_name["Parts"])


_PARTS = _parts_class()


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
