"""The framing of a manifest file: sections, message and footer.

    [u32 size][IndexSection]       only when the version has indices
    [u32 size][Transaction]        the inline copy; left out when large
    [u32 size][Manifest]
    u64 position of the Manifest's size word, u16 0, u16 2, "LANC"          16 bytes

All integers are little-endian; positions count from the start of the file. Legacy tables may keep dictionary values
in front. (Spec: table format, "manifest"; FORMAT C.2.)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from lance_core.errors import CorruptFileError, LanceError, UnsupportedVersionError
from lance_core.format.manifest import Manifest
from lance_core.wire.indices import decode_index_section, encode_index_section
from lance_core.wire.legacy_dictionaries import encode_dictionaries, with_values
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
