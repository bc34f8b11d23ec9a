"""The framing of a manifest file: sections, message and footer.

    [u32 size][IndexSection]       only when the version has indices
    [u32 size][Transaction]        the inline copy; left out when large
    [u32 size][Manifest]
    u64 position of the Manifest's size word, u16 0, u16 2, "LANC"          16 bytes

All integers are little-endian; positions count from the start of the file. Legacy tables may keep dictionary values
in front. (Spec: table format, "manifest"; FORMAT C.2.)

Values of dictionary columns in the manifests of legacy (0.1) tables, which keep them in front of the sections.

    "abc" | i64 0 1 2 3 | ...            field c: dictionary {offset 3, length 3} -> values a, b, c

Strings and bytes come first and are found by their offsets, which count from the start of the file and are what the field
points at; numbers are there themselves. Every version of the table carries the values again. (Spec: legacy files.)
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, replace

from lance_core.errors import CorruptFileError, LanceError, UnsupportedVersionError
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Field, LegacyDictionary, Schema
from lance_core.wire.indices import decode_index_section, encode_index_section
from lance_core.wire.reuse import read_through
from lance_core.wire.table import decode_manifest_message, encode_manifest

MAGIC = b"LANC"
FOOTER = struct.Struct("<QHH4s")
_SIZE = struct.Struct("<I")
MAX_INLINE_TRANSACTION_SIZE = 20 << 20
"""Above this many bytes a transaction stays in its own file only."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """What a manifest file holds: the manifest with its indices, and the serialized inline transaction if there is one."""

    manifest: Manifest
    transaction: bytes | None


def manifest_start(tail: bytes, file_size: int) -> int:
    """Where the Manifest's size word is, from the last bytes (at least 16) of a file of `file_size` bytes."""
    if len(tail) < FOOTER.size or file_size < FOOTER.size:
        raise CorruptFileError(
            f"a manifest file needs a footer of {FOOTER.size} bytes, this one has {min(len(tail), file_size)} bytes"
        )
    position, major, minor, magic = FOOTER.unpack(tail[-FOOTER.size :])
    if magic != MAGIC:
        raise CorruptFileError(f"a manifest file ends with {MAGIC!r}, this one with {magic!r}")
    if (major, minor) not in ((0, 2), (0, 1)):
        raise UnsupportedVersionError(f"manifest file version {major}.{minor} is unknown; expected 0.2")
    if position + _SIZE.size + FOOTER.size > file_size:
        raise CorruptFileError(f"the footer places the manifest at byte {position}, outside the file of {file_size} bytes")
    return int(position)


def section_bytes(data: bytes, position: int, *, what: str) -> bytes:
    """The bytes behind the size word at `position`."""
    if position < 0 or position + _SIZE.size > len(data):
        raise CorruptFileError(f"the {what} should start at byte {position}, but the file has {len(data)} bytes")
    (size,) = _SIZE.unpack_from(data, position)
    start = position + _SIZE.size
    if start + size > len(data):
        raise CorruptFileError(f"the {what} at byte {position} should have {size} bytes, but {len(data) - start} are left")
    return data[start : start + size]


def decode_manifest_file(data: bytes) -> ManifestFile:
    """A manifest from the whole bytes of its file. Raises CorruptFileError, UnsupportedVersionError.

    Index coverage is what it is after deferred compactions (see `lance_core.wire.reuse`), not what the bytes say.
    """
    position = manifest_start(data, len(data))
    found = decode_manifest_message(section_bytes(data, position, what="manifest"))
    manifest, transaction = found.manifest, None
    schema = with_values(manifest.schema, data)
    if schema is not manifest.schema:
        manifest = replace(manifest, schema=schema)
    if found.index_section is not None:
        section = section_bytes(data, found.index_section, what="index section")
        indices = decode_index_section(section, num_fragments=len(manifest.fragments))
        manifest = replace(manifest, indices=read_through(indices))
    if found.transaction_section is not None:
        transaction = section_bytes(data, found.transaction_section, what="inline transaction")
    return ManifestFile(manifest=manifest, transaction=transaction)


def encode_manifest_file(manifest: Manifest, *, transaction: bytes | None = None) -> bytes:
    """The bytes of a manifest file, with the serialized transaction inline unless it is larger than 20 MiB."""
    schema, values = encode_dictionaries(manifest.schema)
    parts: list[bytes] = [values]
    position = len(values)
    index_section = transaction_section = None
    if manifest.indices:
        index_section, position = position, _append(parts, encode_index_section(manifest.indices), position)
    if transaction is not None and len(transaction) <= MAX_INLINE_TRANSACTION_SIZE:
        transaction_section, position = position, _append(parts, transaction, position)
    numbered = manifest if schema is manifest.schema else replace(manifest, schema=schema)
    try:
        body = encode_manifest(numbered, index_section=index_section, transaction_section=transaction_section)
    except ValueError as error:
        if isinstance(error, LanceError):
            raise
        # High-water marks and ids come from the version before; at their end no further version can be written.
        raise CorruptFileError(
            f"version {manifest.version} cannot be written: {error}",
            cure="The version before claims ids at the end of their range; restore an older one, or rewrite the table.",
        ) from error
    _append(parts, body, position)
    parts.append(FOOTER.pack(position, 0, 2, MAGIC))
    return b"".join(parts)


def _append(parts: list[bytes], section: bytes, position: int) -> int:
    parts.extend((_SIZE.pack(len(section)), section))
    return position + _SIZE.size + len(section)


_VARIABLE = frozenset({"string", "large_string", "binary", "large_binary"})
_WIDTHS = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _value_type(field: Field) -> str:
    """What a dictionary holds: `dict:string:int8:false` -> `string`."""
    return field.logical_type.removeprefix("dict:").rsplit(":", 2)[0]


def with_values(schema: Schema, data: bytes) -> Schema:
    """The schema with the values its dictionaries point at in `data`, the whole file. CorruptFileError when they do not."""
    if all(field.dictionary is None for field in schema.fields):
        return schema
    return Schema(tuple(_with_values(field, data) for field in schema.fields), schema.metadata)


def _with_values(field: Field, data: bytes) -> Field:
    if field.dictionary is None:
        return field
    offset, length = field.dictionary.offset, field.dictionary.length
    kind = _value_type(field)
    width = 8 if kind in _VARIABLE else _WIDTHS.get(kind, 0)
    if not width:
        return field
    size = width * (length + 1 if kind in _VARIABLE else length)
    if offset < 0 or length < 0 or offset + size > len(data):
        raise CorruptFileError(
            f"the dictionary of field {field.name!r} declares {length} values at byte {offset}, "
            f"the file has {len(data)} bytes"
        )
    if kind not in _VARIABLE:
        values = tuple(data[at : at + width] for at in range(offset, offset + size, width))
    else:
        ends = struct.unpack_from(f"<{length + 1}q", data, offset)
        if any(not 0 <= start <= end <= len(data) for start, end in itertools.pairwise(ends)):
            raise CorruptFileError(f"the dictionary of field {field.name!r} has values outside the file")
        values = tuple(data[start:end] for start, end in itertools.pairwise(ends))
    return replace(field, dictionary=replace(field.dictionary, values=values))


def encode_dictionaries(schema: Schema) -> tuple[Schema, bytes]:
    """The schema as a new file says it, and the bytes that this file begins with.

    A dictionary whose values are not known is left out: what it pointed at was another file.
    """
    if all(field.dictionary is None for field in schema.fields):
        return schema, b""
    parts = bytearray()
    fields = []
    for field in schema.fields:
        found = field.dictionary
        if found is None or found.values is None:
            fields.append(field if found is None else replace(field, dictionary=None))
            continue
        start = len(parts)
        parts += b"".join(found.values)
        if _value_type(field) in _VARIABLE:
            ends = [start]
            for value in found.values:
                ends.append(ends[-1] + len(value))
            start = len(parts)
            parts += struct.pack(f"<{len(ends)}q", *ends)
        fields.append(replace(field, dictionary=LegacyDictionary(start, len(found.values), found.values)))
    return Schema(tuple(fields), schema.metadata), bytes(parts)
