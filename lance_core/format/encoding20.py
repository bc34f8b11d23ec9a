"""Array encodings: how files of version 2.0 describe a page, as one tree with the page's buffers at its leaves.

Each dataclass mirrors one arm of `lance.encodings.ArrayEncoding`; there are no chunks and no levels. Bits are bits per
value. (Spec: file format 2.0; the byte layouts are in `lance_core.pages.v20.array20`.)

    SomeNulls(validity=Flat(1, buffer 0), values=Flat(64, buffer 1))      a nullable int64 page
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class BufferKind(enum.IntEnum):
    """Which list of buffers an index points into."""

    PAGE = 0
    COLUMN = 1
    FILE = 2


@dataclass(frozen=True, slots=True)
class BufferRef:
    """One buffer of the page, the column or the file."""

    index: int
    kind: BufferKind = BufferKind.PAGE


@dataclass(frozen=True, slots=True)
class Flat:
    """Fixed-width values; 1 bit means a bitmap, least significant bit first. `scheme`: "" | "none" | "zstd" | "lz4"."""

    bits_per_value: int
    buffer: BufferRef
    scheme: str = ""
    level: int | None = None


@dataclass(frozen=True, slots=True)
class NoNulls:
    """Values without nulls."""

    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """A validity bitmap (1 = valid) and values, null slots included."""

    validity: ArrayEncoding
    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class AllNulls:
    """Nothing but nulls; no buffers."""


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of `dimension` items each; the items are one after the other."""

    dimension: int
    items: ArrayEncoding
    has_validity: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """End offsets of lists whose items are the next column; a null's offset is shifted up by `null_offset_adjustment`."""

    offsets: ArrayEncoding
    null_offset_adjustment: int
    num_items: int


@dataclass(frozen=True, slots=True)
class SimpleStruct:
    """The header of a struct; its fields are columns of their own."""


@dataclass(frozen=True, slots=True)
class Binary:
    """End offsets into bytes; a null's offset is shifted up by `null_adjustment`."""

    indices: ArrayEncoding
    bytes: ArrayEncoding
    null_adjustment: int


@dataclass(frozen=True, slots=True)
class Fsst:
    """Binary whose values are codes of a static symbol table."""

    binary: ArrayEncoding
    symbol_table: bytes


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items."""

    indices: ArrayEncoding
    items: ArrayEncoding
    num_items: int


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Row-major fixed-width fields in one buffer; `inner` gives their widths in order."""

    inner: tuple[ArrayEncoding, ...]
    buffer: BufferRef


@dataclass(frozen=True, slots=True)
class Bitpacked:
    """Plain little-endian bit packing; negative values are sign-extended when `signed`."""

    compressed_bits: int
    uncompressed_bits: int
    buffer: BufferRef
    signed: bool


@dataclass(frozen=True, slots=True)
class BitpackedForNonNeg:
    """FastLanes bit packing in blocks of 1,024 values, the last one padded."""

    compressed_bits: int
    uncompressed_bits: int
    buffer: BufferRef


@dataclass(frozen=True, slots=True)
class FixedSizeBinary:
    """Values of `byte_width` bytes each."""

    bytes: ArrayEncoding
    byte_width: int


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows, as little-endian bytes."""

    value: bytes


ArrayEncoding = (
    Flat
    | NoNulls
    | SomeNulls
    | AllNulls
    | FixedSizeList
    | List
    | SimpleStruct
    | Binary
    | Fsst
    | Dictionary
    | PackedStruct
    | Bitpacked
    | BitpackedForNonNeg
    | FixedSizeBinary
    | Constant
)


@dataclass(frozen=True, slots=True)
class BlobColumnEncoding:
    """A column of (position, size) descriptors whose values are out of line in the file (`ColumnEncoding.blob`)."""
