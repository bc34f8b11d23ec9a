"""The buffers at the leaves of 2.0 array encodings: row ranges of plain, bit-packed and compressed buffers.

::

    Flat(64), rows 3..5      bytes 24..40
    Flat(1), rows 3..10      bytes 0..2, then bits 3..10 of them
    Flat(8, "zstd")          the whole buffer: u64 raw size, frame; then the rows
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.general import decompress
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import Buffer, ByteRange, Fetch
from lance_core.format import encoding as enc
from lance_core.format import encoding20 as enc20
from lance_core.format.encoding import CompressionScheme
from lance_core.format.layout import Page
from lance_core.pages.buffers import join, part, request, require_buffers

_SCHEMES = {"zstd": CompressionScheme.ZSTD, "lz4": CompressionScheme.LZ4}
_BLOCK = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Ranges of values, sorted but perhaps overlapping; `starts` and `ends` are int64."""

    starts: Ints
    ends: Ints

    @classmethod
    def span(cls, start: int, end: int) -> Ranges:
        """One range, or none when it is empty."""
        if end <= start:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64))
        return cls(np.array([start], np.int64), np.array([end], np.int64))

    @property
    def count(self) -> int:
        """Values in all ranges."""
        return int((self.ends - self.starts).sum())

    def times(self, factor: int) -> Ranges:
        """The ranges of the items when each value has `factor` of them."""
        if len(self.ends) and int(self.ends[-1]) * factor >= 1 << 62:
            raise CorruptFileError(f"{int(self.ends[-1])} values of {factor} items are too many")
        return Ranges(self.starts * factor, self.ends * factor)


Parts = Generator[Sequence[ByteRange], Sequence[Buffer], list[Bytes]]


def _fetch(page: Page, buffer: enc20.BufferRef, starts: Ints, ends: Ints) -> Parts:
    """Byte ranges of one buffer."""
    if buffer.kind is not enc20.BufferKind.PAGE:
        raise UnsupportedEncodingError(f"values in a {buffer.kind.name.lower()} buffer are not supported")
    if buffer.index < 0:
        raise CorruptFileError(f"a page has no buffer {buffer.index}")
    require_buffers(page, buffer.index + 1, "2.0")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return (yield from request([part(page, buffer.index, start, end) for start, end in pairs]))


def read_bytes(page: Page, encoding: enc20.Flat, ranges: Ranges) -> Fetch[FixedBlock]:
    """Values of whole bytes."""
    bits = encoding.bits_per_value
    if bits <= 0 or bits % 8 or bits > 1 << 32:
        raise CorruptFileError(f"Flat of {bits} bits per value: expected 1 or a multiple of 8")
    at = ranges.times(bits // 8)
    if encoding.scheme not in ("", "none"):
        raw = yield from _decompressed(page, encoding)
        if len(at.ends) and int(at.ends.max()) > len(raw):
            raise CorruptFileError(f"values end at byte {int(at.ends.max())}, the buffer has {len(raw)} bytes")
        parts = [raw[start:end] for start, end in zip(at.starts.tolist(), at.ends.tolist(), strict=True)]
    else:
        parts = yield from _fetch(page, encoding.buffer, at.starts, at.ends)
    return FixedBlock(bits, join(parts), ranges.count)


def _decompressed(page: Page, encoding: enc20.Flat) -> Fetch[Bytes]:
    scheme = _SCHEMES.get(encoding.scheme)
    if scheme is None:
        raise UnsupportedEncodingError(f"compression scheme {encoding.scheme!r} is not supported")
    require_buffers(page, encoding.buffer.index + 1, "2.0")
    size = page.buffers[encoding.buffer.index].size
    (data,) = yield from _fetch(page, encoding.buffer, np.zeros(1, np.int64), np.array([size], np.int64))
    pieces = decompress(Pieces.whole(data), scheme)
    start = int(pieces.starts[0])
    return pieces.data[start : start + int(pieces.sizes[0])]


def read_bits(page: Page, encoding: enc20.Flat, ranges: Ranges) -> Fetch[FixedBlock]:
    """A bitmap's ranges, joined bit by bit."""
    if encoding.scheme not in ("", "none"):
        raise UnsupportedEncodingError("compressed bitmaps are not supported")
    parts = yield from _fetch(page, encoding.buffer, ranges.starts // 8, -(-ranges.ends // 8))
    if len(parts) == 1 and int(ranges.starts[0]) % 8 == 0:
        return FixedBlock(1, parts[0], ranges.count)
    lengths = ranges.ends - ranges.starts
    plain = [
        np.unpackbits(data, bitorder="little")[first : first + length]
        for data, first, length in zip(parts, (ranges.starts % 8).tolist(), lengths.tolist(), strict=True)
    ]
    return FixedBlock(1, np.packbits(join(plain), bitorder="little"), ranges.count)


def read_packed(page: Page, encoding: enc20.Bitpacked, ranges: Ranges) -> Fetch[FixedBlock]:
    """Plain bit packing, lowest bits first; negative numbers keep their sign bit on top."""
    width, bits = encoding.compressed_bits, encoding.uncompressed_bits
    if bits not in (8, 16, 32, 64) or not 0 < width <= bits:
        raise CorruptFileError(f"Bitpacked values of {width} bits do not match numbers of {bits} bits")
    at = ranges.times(width)
    parts = yield from _fetch(page, encoding.buffer, at.starts // 8, -(-at.ends // 8))
    tables = []
    for data, first, length in zip(parts, (at.starts % 8).tolist(), (at.ends - at.starts).tolist(), strict=True):
        tables.append(np.unpackbits(data, bitorder="little")[first : first + length].reshape(-1, width))
    table = np.concatenate([np.empty((0, width), np.uint8), *tables])
    fill = (
        np.repeat(table[:, -1:], bits - width, axis=1) if encoding.signed else np.zeros((len(table), bits - width), np.uint8)
    )
    packed = np.packbits(np.concatenate([table, fill], axis=1).reshape(-1), bitorder="little")
    return FixedBlock(bits, packed, len(table))


def read_fast_lanes(page: Page, encoding: enc20.BitpackedForNonNeg, ranges: Ranges, codecs: Codecs) -> Fetch[FixedBlock]:
    """Blocks of 1,024 numbers in FastLanes order; whole blocks are read, then cut."""
    width, bits = encoding.compressed_bits, encoding.uncompressed_bits
    if bits not in (8, 16, 32, 64) or not 0 < width <= bits:
        raise CorruptFileError(f"BitpackedForNonNeg values of {width} bits do not match numbers of {bits} bits")
    first, last = ranges.starts // _BLOCK, -(-ranges.ends // _BLOCK)
    size = _BLOCK * width // 8
    parts = yield from _fetch(page, encoding.buffer, first * size, last * size)
    if not parts:
        return FixedBlock(bits, np.empty(0, np.uint8), 0)
    sizes = np.array([len(item) for item in parts], np.int64)
    pieces = Pieces(join(parts), np.cumsum(sizes) - sizes, sizes)
    counts = (last - first) * _BLOCK
    block = codecs.decode_block(enc.OutOfLineBitpacking(bits, enc.Flat(width)), pieces, counts)
    if not isinstance(block, FixedBlock):
        raise CorruptFileError("bit-packed values are not numbers")
    decoded = (np.cumsum(counts) - counts + ranges.starts % _BLOCK) * (bits // 8)
    lengths = (ranges.ends - ranges.starts) * (bits // 8)
    cut = [block.data[at : at + length] for at, length in zip(decoded.tolist(), lengths.tolist(), strict=True)]
    return FixedBlock(bits, join(cut), ranges.count)
