"""Flat: values of fixed width, one after the other. One bit per value is a bitmap, least significant bit first.

::

    Flat(16), values 1, 2, 3          01 00 02 00 03 00
    Flat(1), values 1, 0, 1, 1        0d                     each chunk starts at a byte

All three forms hold the same bytes. (Spec: file format, compressive encodings, "flat".)
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces
from lance_core.codecs.dispatch import Buffers, Codecs, Values, total
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.gather import gather, pick_even, require_sizes
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Flat

MAX_CHUNK_VALUES = 4096
TARGET_CHUNK_BYTES = 8186
"""Value bytes of a chunk with its smallest header stay within 8 KiB."""
_MAX_PICKED_BYTES = 64
"""Wider values are copied one by one."""


def num_buffers(encoding: Flat, codecs: Codecs) -> int:
    """One buffer: the values."""
    return 1


def decode(encoding: Flat, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """FixedBlock of all chunks' values; CorruptFileError when a chunk is too small for its values."""
    return decode_block(encoding, buffers[0], counts, codecs)


def decode_block(encoding: Flat, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The same bytes as the chunk form."""
    bits = _width(encoding)
    count = total(counts)
    sizes = (counts + 7) >> 3 if bits == 1 else counts * (bits >> 3)
    require_sizes(piece, sizes, f"Flat({bits})")
    data = gather(piece.data, piece.starts, sizes)
    if bits == 1 and len(counts) > 1 and (counts[:-1] & 7).any():
        data = _join_bitmaps(data, counts, sizes)
    return FixedBlock(bits, data, count)


def decode_at(encoding: Flat, buffers: Buffers, count: int, position: int, codecs: Codecs) -> bytes:
    """One value of one chunk."""
    bits = _width(encoding)
    if len(buffers) != 1 or len(buffers[0]) < (count * bits + 7) >> 3:
        raise CorruptFileError(f"Flat({bits}): {count} values in {[len(buffer) for buffer in buffers]} bytes")
    if bits == 1:
        return b"\1" if buffers[0][position >> 3] >> (position & 7) & 1 else b"\0"
    size = bits >> 3
    return bytes(buffers[0][position * size : (position + 1) * size])


def decode_picks(encoding: Flat, buffers: tuple[Pieces, ...], counts: Ints, picks: Picks, codecs: Codecs) -> Block | None:
    """Some values of many chunks."""
    bits = _width(encoding)
    (piece,) = buffers
    require_sizes(piece, (counts * bits + 7) >> 3, f"Flat({bits})")
    starts, at = piece.starts[picks.chunks], picks.positions
    if bits == 1:
        found = piece.data[starts + (at >> 3)] >> (at & 7).astype(np.uint8) & 1
        return FixedBlock(1, np.packbits(found, bitorder="little"), len(picks))
    size = bits >> 3
    if size > _MAX_PICKED_BYTES:
        return None
    return FixedBlock(bits, pick_even(piece.data, starts + at * size, size), len(picks))


def decode_values(encoding: Flat, payload: Values, codecs: Codecs) -> Block:
    """A flat payload is the value."""
    bits = _width(encoding)
    if not isinstance(payload, FixedBlock) or payload.bits not in (bits, (bits + 7) & ~7):
        raise CorruptFileError(f"a page of Flat({bits}) values has payloads of another width")
    return FixedBlock(payload.bits, payload.data, payload.count)


def encode_chunks(
    block: FixedBlock, *, max_values: int = MAX_CHUNK_VALUES, target_bytes: int = TARGET_CHUNK_BYTES
) -> EncodedChunks:
    """Cut into chunks of the largest power of two of values within `target_bytes`; the bytes are not copied."""
    per_chunk = chunk_values(block.bits, max_values=max_values, target_bytes=target_bytes)
    counts = even_counts(block.count, per_chunk)
    starts = np.arange(len(counts), dtype=np.int64) * (per_chunk * block.bits // 8)
    sizes = (counts * block.bits + 7) >> 3
    return EncodedChunks(Flat(block.bits), counts, (Pieces(block.data, starts, sizes),))


def encode_block(block: FixedBlock) -> tuple[Flat, bytes]:
    """The bytes as they are."""
    return Flat(block.bits), block.data[: (block.count * block.bits + 7) >> 3].tobytes()


def chunk_values(bits: int, *, max_values: int, target_bytes: int) -> int:
    """Values per chunk of a fixed width: a power of two; bitmaps fill whole bytes."""
    per_chunk = MAX_CHUNK_VALUES
    while per_chunk > 1 and (per_chunk > max_values or per_chunk * bits > target_bytes * 8):
        per_chunk >>= 1
    return max(per_chunk, 8) if bits == 1 else per_chunk


def even_counts(count: int, per_chunk: int) -> Ints:
    """Counts of chunks of one size, the last with the rest: 5 by 2 -> 2, 2, 1."""
    num_chunks = -(-count // per_chunk)
    counts = np.full(num_chunks, per_chunk, np.int64)
    if num_chunks:
        counts[-1] = count - per_chunk * (num_chunks - 1)
    return counts


def _width(encoding: Flat) -> int:
    bits = encoding.bits_per_value
    if encoding.compression is not None:
        raise UnsupportedEncodingError("Flat with a separate buffer compression is not supported")
    if bits != 1 and (bits <= 0 or bits % 8 or bits > 1 << 32):
        raise CorruptFileError(f"Flat of {bits} bits per value: expected 1 or a multiple of 8")
    return bits


def _join_bitmaps(data: Bytes, counts: Ints, sizes: Ints) -> Bytes:
    """Bitmaps that each start at a byte, joined bit by bit."""
    bits = np.unpackbits(data, bitorder="little")
    first_bits = np.cumsum(sizes) - sizes
    within = np.arange(len(bits), dtype=np.int64) - np.repeat(first_bits * 8, sizes * 8)
    return np.packbits(bits[within < np.repeat(counts, sizes * 8)], bitorder="little")
