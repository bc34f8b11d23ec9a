"""Compressive encodings of files 2.1 and newer: how one stream of values is encoded.

Each dataclass mirrors one arm of `lance.encodings21.CompressiveEncoding`; encodings nest. Bits are bits per value before
this encoding. (Spec: file format, "compressive encodings"; the byte layouts are in `lance_core.codecs`.)

    General(ZSTD, ByteStreamSplit(Flat(64)))      doubles: byte planes, then zstd
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class CompressionScheme(enum.IntEnum):
    """General purpose compressors."""

    UNSPECIFIED = 0
    LZ4 = 1
    ZSTD = 2


@dataclass(frozen=True, slots=True)
class BufferCompression:
    """A general purpose compressor applied to a buffer as a whole."""

    scheme: CompressionScheme
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flat:
    """Plain fixed-width values; 1 bit means a bitmap, least significant bit first."""

    bits_per_value: int
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """Offsets and bytes."""

    offsets: CompressiveEncoding
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all; None stands for "no value"."""

    value: bytes | None


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking:
    """FastLanes bit packing with one width for the whole stream (`values` is Flat(width))."""

    uncompressed_bits: int
    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class InlineBitpacking:
    """FastLanes bit packing, each 1,024 values preceded by their width."""

    uncompressed_bits: int
    compression: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Fsst:
    """Strings as codes of a static symbol table (2,312 bytes)."""

    symbol_table: bytes
    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items."""

    indices: CompressiveEncoding
    items: CompressiveEncoding
    num_items: int


@dataclass(frozen=True, slots=True)
class Rle:
    """Runs: values and their lengths."""

    values: CompressiveEncoding
    run_lengths: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class ByteStreamSplit:
    """All first bytes, then all second bytes, and so on."""

    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class General:
    """A general purpose compressor around another encoding."""

    compression: BufferCompression
    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of `items_per_value` items, optionally with the items' validity in front."""

    items_per_value: int
    has_validity: bool
    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Row-major fixed-width fields."""

    bits_per_value: tuple[int, ...]
    values: CompressiveEncoding


@dataclass(frozen=True, slots=True)
class PackedField:
    """One field of a VariablePackedStruct; exactly one of the two widths is set."""

    value: CompressiveEncoding
    bits_per_value: int | None = None
    bits_per_length: int | None = None


@dataclass(frozen=True, slots=True)
class VariablePackedStruct:
    """Row-major fields of which some have variable width."""

    fields: tuple[PackedField, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """start, start + step, ... (2.3)."""

    uncompressed_bits: int
    start: int
    step: int


@dataclass(frozen=True, slots=True)
class Delta:
    """A base and differences (2.3)."""

    uncompressed_bits: int
    base: int
    deltas: CompressiveEncoding


CompressiveEncoding = (
    Flat
    | Variable
    | Constant
    | OutOfLineBitpacking
    | InlineBitpacking
    | Fsst
    | Dictionary
    | Rle
    | ByteStreamSplit
    | General
    | FixedSizeList
    | PackedStruct
    | VariablePackedStruct
    | Range
    | Delta
)
