"""The last bytes of a file: which version it is and where its tables are.

A 2.x file ends with 40 bytes, a legacy file with 16; the version and the magic are last in both:

    2.2      column_metadata_start u64 | CMO_start u64 | GBO_start u64 | global buffers u32 | columns u32 | 2 | 2 | LANC
    legacy                                                                     metadata position u64 | 0 | 2 | LANC
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer
from lance_core.format.version import FileVersion, version_of_numbers

MAGIC = b"LANC"
FOOTER = struct.Struct("<QQQIIHH4s")
LEGACY_FOOTER = struct.Struct("<QHH4s")
_VERSION = struct.Struct("<HH4s")
TABLE_ENTRY_SIZE = 16
"""Bytes of one entry of the column metadata and global buffer offset tables: position u64, size u64."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Positions are absolute; the tables follow one another, then comes the footer itself."""

    column_metadata_start: int
    column_table_start: int
    buffer_table_start: int
    num_global_buffers: int
    num_columns: int
    version: FileVersion


def parse_version(tail: Buffer) -> FileVersion:
    """The version in the last eight bytes of a file. CorruptFileError when they are not a Lance footer."""
    if len(tail) < _VERSION.size:
        raise CorruptFileError(f"a Lance file needs at least {LEGACY_FOOTER.size} bytes, this one has {len(tail)}")
    major, minor, magic = _VERSION.unpack(bytes(tail[-_VERSION.size :]))
    if magic != MAGIC:
        raise CorruptFileError(f"the file does not end in {MAGIC!r} but in {magic!r}: truncated, or not a Lance file")
    return version_of_numbers(major, minor)


def parse_footer(tail: Buffer, *, file_size: int) -> Footer:
    """The footer of a 2.x file, its positions checked against each other and the file's size."""
    version = parse_version(tail)
    if len(tail) < FOOTER.size:
        raise CorruptFileError(f"a {version.text} file has at least {FOOTER.size} bytes, this one has {len(tail)}")
    metadata, columns, buffers, num_buffers, num_columns, _, _, _ = FOOTER.unpack(bytes(tail[-FOOTER.size :]))
    end = file_size - FOOTER.size
    in_order = metadata <= columns <= buffers <= end
    if not in_order or columns + num_columns * TABLE_ENTRY_SIZE > buffers or buffers + num_buffers * TABLE_ENTRY_SIZE > end:
        raise CorruptFileError(
            f"the footer places {num_columns} columns at {columns} and {num_buffers} global buffers at {buffers} "
            f"after metadata at {metadata}, which does not match a file of {file_size} bytes"
        )
    return Footer(metadata, columns, buffers, num_buffers, num_columns, version)


def parse_legacy_footer(tail: Buffer, *, file_size: int) -> int:
    """Position of the metadata message of a legacy file."""
    if len(tail) < LEGACY_FOOTER.size:
        raise CorruptFileError(f"a legacy file has at least {LEGACY_FOOTER.size} bytes, this one has {len(tail)}")
    position, _, _, _ = LEGACY_FOOTER.unpack(bytes(tail[-LEGACY_FOOTER.size :]))
    if position > file_size - LEGACY_FOOTER.size:
        raise CorruptFileError(f"the footer places the metadata at {position}, outside the file of {file_size} bytes")
    return int(position)


def encode_footer(footer: Footer) -> bytes:
    """The 40 bytes that end a 2.x file."""
    major, minor = footer.version.footer_numbers
    return FOOTER.pack(
        footer.column_metadata_start,
        footer.column_table_start,
        footer.buffer_table_start,
        footer.num_global_buffers,
        footer.num_columns,
        major,
        minor,
        MAGIC,
    )
