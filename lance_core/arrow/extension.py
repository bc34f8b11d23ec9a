"""Extension types: a storage type plus a name, kept in field metadata.

    user gives         stored as                        extension name     read back as
    arrow.json         json (JSONB in large_binary)     lance.json         arrow.json
    arrow.uuid         fixed_size_binary:16             arrow.uuid         arrow.uuid
    lance.bfloat16     fixed_size_binary:2              lance.bfloat16     as it was
    lance.blob.v2      struct(data, uri, ...)           lance.blob.v2      as it was

Types that this process has registered with pyarrow come back as such; others stay storage plus metadata.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_core.errors import CorruptFileError

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
ARROW_JSON = "arrow.json"
LANCE_JSON = "lance.json"
BFLOAT16 = "lance.bfloat16"
BLOB_V2 = "lance.blob.v2"
BLOB_METADATA = "lance-encoding:blob"


def text_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, bytes]:
    """Arrow metadata with text keys, as Lance keeps it."""
    return {key.decode("utf-8"): bytes(value) for key, value in (metadata or {}).items()}


def unwrap(field: pa.Field[Any]) -> tuple[pa.DataType, dict[str, bytes], str]:
    """(storage type, metadata with the extension's two keys, extension name or "") of an Arrow field."""
    metadata = text_metadata(field.metadata)
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        metadata.update(_exported_metadata(field))
        arrow_type = arrow_type.storage_type
    return arrow_type, metadata, metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace")


def resolve_extensions(schema: pa.Schema) -> pa.Schema:
    """The schema with every extension this process has registered turned from metadata into its type.

    CorruptFileError when an extension does not accept the metadata, or the type, that its field has.
    """
    # Arrow resolves extension names whenever a schema crosses a process; a round trip does exactly that.
    try:
        return pa.ipc.read_schema(schema.serialize())
    except Exception as error:  # the code of an extension raises what it likes
        columns, why = ", ".join(schema.names[:3]), str(error)[:200]
        raise CorruptFileError(
            f"a column of {columns} names an extension type that refuses its metadata ({why})",
            cure="The schema is damaged; check out another version of the table, or restore the file from a copy.",
        ) from error


class _ArrowSchema(ctypes.Structure):
    """The head of the C data interface's ArrowSchema."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _exported_metadata(field: pa.Field[Any]) -> dict[str, bytes]:
    """The two metadata keys that stand for an extension type outside this process.

    pyarrow shows the serialized form of built-in extension types only through the C data interface.
    Layout there: i32 count, then for each key and each value an i32 length and the bytes.
    """
    capsule = field.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    exported = ctypes.cast(get_pointer(capsule, b"arrow_schema"), ctypes.POINTER(_ArrowSchema)).contents
    position = exported.metadata

    def take_int() -> int:
        nonlocal position
        (value,) = struct.unpack("=i", ctypes.string_at(position, 4))
        position += 4
        return int(value)

    def take_bytes() -> bytes:
        nonlocal position
        size = take_int()
        position += size
        return ctypes.string_at(position - size, size)

    pairs = {take_bytes().decode(): take_bytes() for _ in range(take_int())}
    return {key: pairs.get(key, b"") for key in (EXTENSION_NAME, EXTENSION_METADATA)}


def is_true(value: bytes | None) -> bool:
    """How flags are written in field metadata."""
    return value is not None and value.strip().lower() in (b"true", b"1", b"yes")
