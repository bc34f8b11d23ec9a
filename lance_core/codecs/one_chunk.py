"""A single mini-block chunk: its levels, and neighbouring values of it, without the machinery for many chunks.

::

    rep   OutOfLineBitpacking(16 to 1 bit)   1,100 levels       one block unpacked, 76 words as they are
    item  InlineBitpacking(32), 1,024 items  items 500 to 507   the one block that holds them

A row of lists is a few entries of one chunk. What its chunk costs is the number of operations, not the bytes. What a codec
refuses (`bitpack`, `flat`, `rle`) is refused here as well; encodings that have no short way here take the codec's.

Unpack a few bit-packed blocks with a handful of numpy operations each, whatever the width.

::

    T = 16, W = 3     output rows of 64 lanes: word 0 >> 0, word 1 >> 8, word 0 >> 12 | word 1 << 4, ...         & 7

A read of one row unpacks one block of levels or values for each column; what it costs is the number of operations, not the
bytes. The order is that of `lance_core.kernels.bits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints, Levels
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.gather import words
from lance_core.errors import CorruptFileError
from lance_core.format.encoding import CompressiveEncoding, Flat, InlineBitpacking, OutOfLineBitpacking, Rle
from lance_core.kernels.bits import BLOCK, ORDER

Unsigned = npt.NDArray[Any]


def decode_levels(encoding: CompressiveEncoding, data: memoryview, count: int, codecs: Codecs) -> Levels:
    """The levels of the chunk, from their block form."""
    if isinstance(encoding, OutOfLineBitpacking) and encoding.uncompressed_bits == 16:
        found = _out_of_line(encoding, data, count, 0, count)
        if found is not None:
            return found
    if isinstance(encoding, Rle) and encoding.values == _WORDS and encoding.run_lengths == _BYTES:
        return _runs(data, count)
    block = codecs.decode_block(encoding, Pieces.whole(np.frombuffer(data, np.uint8)), np.array([count], np.int64))
    if not isinstance(block, FixedBlock) or block.bits != 16:
        raise CorruptFileError("levels are not 16-bit numbers")
    return words(block.data, np.uint16)


def decode_many_levels(
    encoding: CompressiveEncoding, pieces: Sequence[memoryview], counts: Sequence[int], codecs: Codecs
) -> Levels:
    """The levels of a few chunks, joined."""
    width = _width(encoding, 16) if isinstance(encoding, OutOfLineBitpacking) else None
    if width is None or len(pieces) == 1:
        found = [decode_levels(encoding, data, count, codecs) for data, count in zip(pieces, counts, strict=True)]
        return found[0] if len(found) == 1 else np.concatenate(found)
    size = BLOCK * width // 8
    blocks: list[memoryview] = []
    rests: list[Unsigned] = []
    for data, count in zip(pieces, counts, strict=True):
        whole, rest = divmod(count, BLOCK)
        is_plain = len(data) // 2 == (whole * size + 2 * rest) // 2
        if not is_plain and len(data) < (whole + (rest > 0)) * size:
            raise CorruptFileError(f"OutOfLineBitpacking(16 to {width} bits): {len(data)} bytes for {count} values")
        num_blocks = whole if is_plain else whole + (rest > 0)
        blocks.append(data[: num_blocks * size])
        rests.append(np.frombuffer(data, "<u2", rest if is_plain else 0, whole * size))
    unpacked = unpack_blocks(np.frombuffer(b"".join(blocks), "<u2"), width)
    parts: list[Unsigned] = []
    at = 0
    for count, packed, rest_words in zip(counts, blocks, rests, strict=True):
        end = at + len(packed) // size
        parts += (unpacked[at:end].reshape(-1)[:count], rest_words)
        at = end
    return np.concatenate(parts)


def decode_span(
    encoding: CompressiveEncoding, buffers: tuple[memoryview, ...], count: int, start: int, end: int, codecs: Codecs
) -> Block | None:
    """Values `start` to `end` (0 <= start <= end <= count) of the chunk's `count`; None where all must be decoded."""
    found = None
    if len(buffers) == 1 and isinstance(encoding, InlineBitpacking) and encoding.compression is None:
        found = _inline(encoding.uncompressed_bits, buffers[0], count, start, end)
    elif len(buffers) == 1 and isinstance(encoding, OutOfLineBitpacking):
        found = _out_of_line(encoding, buffers[0], count, start, end)
    if found is not None:
        return FixedBlock(found.itemsize * 8, found.view(np.uint8), len(found))
    pieces = tuple(Pieces.whole(np.frombuffer(buffer, np.uint8)) for buffer in buffers)
    picks = Picks(np.zeros(end - start, np.int64), np.arange(start, end, dtype=np.int64))
    return codecs.decode_picks(encoding, pieces, np.array([count], np.int64), picks)


def _out_of_line(encoding: OutOfLineBitpacking, data: memoryview, count: int, start: int, end: int) -> Unsigned | None:
    bits = encoding.uncompressed_bits
    width = _width(encoding, bits)
    if width is None:
        return None
    stored = words(np.frombuffer(data, np.uint8), _TYPES[bits])
    per_block, rest = BLOCK * width // bits, count % BLOCK
    whole = count // BLOCK * per_block
    is_plain = len(stored) == whole + rest
    if not is_plain and len(stored) < whole + (per_block if rest else 0):
        raise CorruptFileError(f"OutOfLineBitpacking({bits} to {width} bits): {len(data)} bytes for {count} values")
    parts = []
    for block in range(start // BLOCK, -(-end // BLOCK)):
        at, first = block * per_block, block * BLOCK
        is_words = is_plain and count - first < BLOCK
        values = stored[at:] if is_words else unpack_block(stored[at : at + per_block], width)
        parts.append(values[max(start - first, 0) : min(end - first, BLOCK)])
    return _joined(parts, _TYPES[bits])


def _width(encoding: OutOfLineBitpacking, bits: int) -> int | None:
    """The width of the packed values, where there is a short way for it."""
    inner = encoding.values
    if encoding.uncompressed_bits != bits or bits not in _TYPES:
        return None
    if not isinstance(inner, Flat) or inner.compression is not None:
        return None
    return inner.bits_per_value if 0 < inner.bits_per_value <= bits else None


def _inline(bits: int, data: memoryview, count: int, start: int, end: int) -> Unsigned | None:
    if bits not in _TYPES:
        return None
    stored = words(np.frombuffer(data, np.uint8), _TYPES[bits])
    parts, at = [], 0
    for first in range(0, count, BLOCK):
        width = stored.item(at) if at < len(stored) else bits + 1
        size = width * (BLOCK // bits)
        if width > bits or at + 1 + size > len(stored):
            raise CorruptFileError(f"InlineBitpacking({bits}): a chunk of {len(data)} bytes does not hold {count} values")
        if start < first + BLOCK and first < end:
            packed = stored[at + 1 : at + 1 + size]
            values = unpack_block(packed, width) if width else np.zeros(BLOCK, _TYPES[bits])
            parts.append(values[max(start - first, 0) : min(end - first, BLOCK)])
        at += 1 + size
    return _joined(parts, _TYPES[bits])


def _joined(parts: list[Unsigned], kind: str) -> Unsigned:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _runs(data: memoryview, count: int) -> Levels:
    """Runs of 16-bit values whose lengths are bytes."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise CorruptFileError(f"Rle block: {len(data)} bytes are too few for the values")
    lengths = np.frombuffer(data[8 + size :], np.uint8)
    if size // 2 < len(lengths):
        raise CorruptFileError(f"Rle block: {size} bytes of values for {len(lengths)} runs")
    values = np.frombuffer(data[8 : 8 + len(lengths) * 2], "<u2")
    found: Levels = values.repeat(lengths)
    if len(found) != count:
        raise CorruptFileError(f"Rle: a chunk has runs of {len(found)} values, expected {count}")
    return found


_TYPES = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}
_WORDS, _BYTES = Flat(16), Flat(8)


MOST_BLOCKS = 8


def unpack_few(words: Unsigned, starts: Ints, widths: Ints, counts: Ints, out: Unsigned) -> int:
    """What `kernels.bits.unpack` does, block by block; -1 for a block outside `words` or `out`."""
    bits = words.itemsize * 8
    lanes, at = BLOCK // bits, 0
    for start, width, count in zip(starts.tolist(), widths.tolist(), counts.tolist(), strict=True):
        size = count if width > bits else width * lanes
        if not 0 <= width <= bits + 1 or not 0 <= start <= len(words) - size or not 0 <= count <= min(BLOCK, len(out) - at):
            return -1
        packed, target = words[start : start + size], out[at : at + count]
        if width > bits:
            target[:] = packed
        elif width == 0:
            target[:] = 0
        else:
            target[:] = unpack_block(packed, width)[:count]
        at += count
    return at


def unpack_block(words: Unsigned, width: int) -> Unsigned:
    """The 1,024 values of one block: all of its words, of which there are as many as `width` (at least 1) needs."""
    low, high, down, up, mask = _steps(words.dtype.str, width)
    packed = words.reshape(width, -1)
    values = packed[low] >> down
    values |= packed[high] << up
    values &= mask
    return values.reshape(-1)


def unpack_blocks(words: Unsigned, width: int) -> Unsigned:
    """The same of any number of blocks of one width, back to back: an array of 1,024 values for each."""
    low, high, down, up, mask = _steps(words.dtype.str, width)
    packed = words.reshape(-1, width, BLOCK // (words.itemsize * 8))
    values = packed[:, low] >> down
    values |= packed[:, high] << up
    values &= mask
    return values.reshape(len(packed), BLOCK)


@lru_cache(maxsize=256)
def _steps(kind: str, width: int) -> tuple[Ints, Ints, Unsigned, Unsigned, Any]:
    """For each row of the output: the word that its bits begin in, the next one, by how much each is shifted; the mask.

    Where no bit is in the next word, it is shifted beyond the mask.
    """
    dtype = np.dtype(kind)
    bits = dtype.itemsize * 8
    lanes = BLOCK // bits
    row = np.empty(bits, np.int64)
    for number in range(bits):
        row[(ORDER[number // 8] * 16 + number % 8 * 128) // lanes] = number
    low, shift = np.divmod(row * width, bits)
    up = np.where(shift, bits - shift, 0)
    # A row at the very beginning of a word is all there: its own word again changes nothing.
    high = np.where(shift, np.minimum(low + 1, width - 1), low)
    return low, high, shift[:, None].astype(dtype), up[:, None].astype(dtype), dtype.type((1 << width) - 1)
