"""Bit packing in FastLanes order (see `lance_core.kernels.bits`), two kinds.

::

    inline        per 1,024 values: one T-bit word with the width W, then 1024 * W / T words; the last block zero padded
                  chunk form: one such block per chunk          block form: one after the other
    out of line   one W for the whole buffer (in the description), blocks of 1024 * W / T words; the last values (fewer
                  than 1,024) are one padded block or plain T-bit words, whichever is smaller: the length tells
                  block form only

T is 8, 16, 32 or 64. Width 0 takes no words. (Spec: file format, compressive encodings, "bitpacking".)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces
from lance_core.codecs.dispatch import Buffers, Codecs, Values, total
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.gather import aligned_words
from lance_core.codecs.one_chunk import MOST_BLOCKS, unpack_few
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Flat, InlineBitpacking, OutOfLineBitpacking
from lance_core.kernels import bits as kernels

BLOCK = kernels.BLOCK
MAX_WIDTHLESS = 1 << 31
"""Width 0 needs no bytes for a value, so nothing else would keep a damaged count from allocating at will."""
_FEW = 32
Unsigned = npt.NDArray[Any]


def num_buffers(encoding: InlineBitpacking | OutOfLineBitpacking, codecs: Codecs) -> int:
    """One buffer: the packed words."""
    return 1


def decode(
    encoding: InlineBitpacking | OutOfLineBitpacking, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs
) -> Block:
    """FixedBlock(T); CorruptFileError for widths above T or chunks too small for their width."""
    return decode_block(encoding, buffers[0], counts, codecs)


def decode_block(encoding: InlineBitpacking | OutOfLineBitpacking, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """FixedBlock(T) of all pieces' values."""
    bits = _word_bits(encoding.uncompressed_bits)
    if isinstance(encoding, OutOfLineBitpacking):
        return _decode_out_of_line(bits, _packed_width(encoding, bits), piece, counts)
    if encoding.compression is not None:
        raise UnsupportedEncodingError("InlineBitpacking with a separate buffer compression is not supported")
    return _decode_inline(bits, piece, counts)


def decode_at(
    encoding: InlineBitpacking | OutOfLineBitpacking, buffers: Buffers, count: int, position: int, codecs: Codecs
) -> bytes:
    """One value of one chunk, without compiled kernels."""
    bits = _word_bits(encoding.uncompressed_bits)
    if len(buffers) != 1:
        raise CorruptFileError(f"bit packing with {len(buffers)} value buffers, expected 1")
    if isinstance(encoding, OutOfLineBitpacking):
        value = _one_out_of_line(buffers[0], bits, _packed_width(encoding, bits), count, position)
    elif encoding.compression is not None:
        raise UnsupportedEncodingError("InlineBitpacking with a separate buffer compression is not supported")
    else:
        value = _one_inline(buffers[0], bits, position)
    return value.to_bytes(bits // 8, "little")


def _one_inline(data: memoryview, bits: int, position: int) -> int:
    size, at = bits // 8, 0
    for left in range(position // BLOCK, -1, -1):
        width = int.from_bytes(data[at : at + size], "little")
        end = at + size + width * (BLOCK // 8)
        if width > bits or at + size > len(data) or end > len(data):
            raise CorruptFileError(
                f"InlineBitpacking({bits}): a chunk of {len(data)} bytes declares a width of {width} bits"
            )
        if left:
            at = end
    return kernels.unpack_one(data, at + size, width, bits, position % BLOCK) if width else 0


def _one_out_of_line(data: memoryview, bits: int, width: int, count: int, position: int) -> int:
    size, per_block, rest = bits // 8, BLOCK * width // bits, count % BLOCK
    whole, num_words = count // BLOCK * per_block, len(data) // size
    is_plain = num_words == whole + rest
    if num_words < whole + (0 if not rest else rest if is_plain else per_block):
        raise CorruptFileError(f"OutOfLineBitpacking({bits} to {width} bits): {len(data)} bytes for {count} values")
    block, within = divmod(position, BLOCK)
    start = block * per_block * size
    if is_plain and position >= count - rest:
        return int.from_bytes(data[start + within * size : start + (within + 1) * size], "little")
    return kernels.unpack_one(data, start, width, bits, within) if width else 0


def decode_picks(
    encoding: InlineBitpacking | OutOfLineBitpacking,
    buffers: tuple[Pieces, ...],
    counts: Ints,
    picks: Picks,
    codecs: Codecs,
) -> Block | None:
    """Some values of many chunks, without compiled kernels; None for chunks of several inline blocks."""
    bits = _word_bits(encoding.uncompressed_bits)
    if isinstance(encoding, InlineBitpacking) and (encoding.compression is not None or int(counts.max(initial=0)) > BLOCK):
        return None
    words, starts, sizes = aligned_words(buffers[0], bits // 8)
    if isinstance(encoding, OutOfLineBitpacking):
        block_starts, widths, at = _pick_out_of_line(encoding, bits, starts, sizes, counts, picks)
    else:
        block_starts, all_widths, _ = _walk_inline(words, starts, sizes, counts, bits)
        if len(block_starts) != len(counts):
            return None
        block_starts, widths, at = block_starts[picks.chunks] + 1, all_widths[picks.chunks], picks.positions
    return FixedBlock(bits, kernels.unpack_some(words, block_starts, widths, at).view(np.uint8), len(picks))


def _pick_out_of_line(
    encoding: OutOfLineBitpacking, bits: int, starts: Ints, sizes: Ints, counts: Ints, picks: Picks
) -> tuple[Ints, Ints, Ints]:
    """First word, width and place within its block of each picked value."""
    width = _packed_width(encoding, bits)
    per_block = BLOCK * width // bits
    is_raw = _out_of_line_form(bits, width, sizes, counts)[picks.chunks]
    block, within = np.divmod(picks.positions, BLOCK)
    in_rest = is_raw & (picks.positions >= counts[picks.chunks] // BLOCK * BLOCK)
    return starts[picks.chunks] + block * per_block, np.where(in_rest, bits + 1, width), within


def _out_of_line_form(bits: int, width: int, sizes: Ints, counts: Ints) -> npt.NDArray[np.bool_]:
    """Whether each chunk ends in plain words; CorruptFileError when it is too small."""
    per_block, rest = BLOCK * width // bits, counts % BLOCK
    whole = counts // BLOCK * per_block
    raw_rest: npt.NDArray[np.bool_] = sizes == whole + rest
    _require(
        raw_rest | (sizes >= whole + np.where(rest > 0, per_block, 0)),
        f"OutOfLineBitpacking({bits} to {width} bits): a buffer is too small for its values",
    )
    return raw_rest


def decode_values(encoding: InlineBitpacking | OutOfLineBitpacking, payload: Values, codecs: Codecs) -> Block:
    """Single values are never bit packed."""
    raise UnsupportedEncodingError(f"{type(encoding).__name__} is not a full-zip encoding")


def block_widths(values: Unsigned) -> Ints:
    """Bits needed by each block of 1,024 values (unsigned, one dimension), the last block shorter."""
    if not len(values):
        return np.empty(0, np.int64)
    return bit_lengths(np.bitwise_or.reduceat(values, np.arange(0, len(values), BLOCK)))


def bit_lengths(values: Unsigned) -> Ints:
    """Position of the highest set bit of each value, plus one; 0 for 0."""
    if len(values) <= _FEW:
        return np.array([int(value).bit_length() for value in values.tolist()], np.int64)
    rest = values.astype(np.uint64)
    lengths = np.zeros(len(rest), np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(step)
        lengths += np.where(high > 0, step, 0)
        rest = np.where(high > 0, high, rest)
    return lengths + (rest > 0)


def inline_size(widths: Ints, bits: int) -> int:
    """Bytes that inline packing of blocks with these widths takes."""
    return int((widths * (BLOCK // 8) + bits // 8).sum())


def encode_chunks(block: FixedBlock, *, widths: Ints | None = None) -> EncodedChunks:
    """Inline packing, one block per chunk of 1,024 values. `widths` (of `block_widths`) saves computing them."""
    values = unsigned(block)
    words, starts, sizes, counts = _encode_inline(values, block_widths(values) if widths is None else widths)
    size = block.bits // 8
    return EncodedChunks(InlineBitpacking(block.bits), counts, (Pieces(words.view(np.uint8), starts * size, sizes * size),))


def encode_block(block: FixedBlock) -> tuple[InlineBitpacking | OutOfLineBitpacking, bytes]:
    """Inline up to 1,024 values, out of line above."""
    values = unsigned(block)
    if block.count <= BLOCK:
        words = _encode_inline(values, block_widths(values))[0]
        return InlineBitpacking(block.bits), words.tobytes()
    encoding, pieces = encode_out_of_line(values, np.array([block.count], np.int64))
    return encoding, pieces.data.tobytes()


def encode_out_of_line(values: Unsigned, counts: Ints, *, width: int | None = None) -> tuple[OutOfLineBitpacking, Pieces]:
    """Pack `values` cut into chunks of `counts` (any sizes) with one width; one piece per chunk."""
    bits = values.itemsize * 8
    if width is None:
        width = int(bit_lengths(np.bitwise_or.reduce(values, keepdims=True)).max()) if len(values) else 0
    sizes = out_of_line_words(counts, width, bits)
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), values.dtype)
    block_starts, widths, block_counts = _out_of_line_blocks(starts, sizes, counts, width, bits)
    kernels.pack(np.ascontiguousarray(values), block_counts, block_starts, widths, np.empty(BLOCK, values.dtype), out)
    size = values.itemsize
    return OutOfLineBitpacking(bits, Flat(width)), Pieces(out.view(np.uint8), starts * size, sizes * size)


def out_of_line_words(counts: Ints, width: int, bits: int) -> Ints:
    """T-bit words that each chunk takes: whole blocks, then the smaller form of the rest."""
    per_block = BLOCK * width // bits
    rest = counts % BLOCK
    return counts // BLOCK * per_block + np.minimum(np.where(rest > 0, per_block, 0), rest)


def unsigned(block: FixedBlock) -> Unsigned:
    """The block's values as unsigned words of its width (8, 16, 32, 64)."""
    size = block.bits // 8
    values: Unsigned = block.data[: block.count * size].view(f"<u{size}")
    return values


def _decode_inline(bits: int, piece: Pieces, counts: Ints) -> FixedBlock:
    count = total(counts)
    words, starts, sizes = aligned_words(piece, bits // 8)
    block_starts, widths, block_counts = _walk_inline(words, starts, sizes, counts, bits)
    return _unpack(words, block_starts + 1, widths, block_counts, count)


def _walk_inline(words: Unsigned, starts: Ints, sizes: Ints, counts: Ints, bits: int) -> tuple[Ints, Ints, Ints]:
    """Start, width and count of every inline block; a chunk's blocks follow each other, so they are walked in step."""
    cursor, left, ends = starts, counts, starts + sizes
    chunk = np.arange(len(counts), dtype=np.int64)
    found: list[tuple[Ints, Ints, Ints, Ints]] = []
    while (active := left > 0).any():
        cursor, left, ends, chunk = cursor[active], left[active], ends[active], chunk[active]
        _require(cursor < ends, "InlineBitpacking: a chunk is too short to hold its width")
        widths = words[cursor].astype(np.uint64)
        _require(widths <= bits, f"InlineBitpacking({bits}): a chunk declares a width above {bits} bits")
        width = widths.astype(np.int64)
        found.append((chunk, cursor, width, np.minimum(left, BLOCK)))
        cursor = cursor + 1 + width * (BLOCK // bits)
        _require(cursor <= ends, "InlineBitpacking: a chunk is too small for its width")
        left = left - BLOCK
    if not found:
        none = np.empty(0, np.int64)
        return none, none, none
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    order = np.argsort(columns[0], kind="stable") if len(found) > 1 else slice(None)
    return columns[1][order], columns[2][order], columns[3][order]


def _decode_out_of_line(bits: int, width: int, piece: Pieces, counts: Ints) -> FixedBlock:
    count = total(counts)
    if width == 0 and count > MAX_WIDTHLESS:
        raise CorruptFileError(f"OutOfLineBitpacking of width 0 claims {count} values, the limit is {MAX_WIDTHLESS}")
    words, starts, sizes = aligned_words(piece, bits // 8)
    raw_rest = _out_of_line_form(bits, width, sizes, counts)
    per_block, rest = BLOCK * width // bits, counts % BLOCK
    whole = counts // BLOCK * per_block
    blocks = _out_of_line_blocks(starts, np.where(raw_rest, whole + rest, whole + per_block), counts, width, bits)
    return _unpack(words, *blocks, count)


def _out_of_line_blocks(starts: Ints, sizes: Ints, counts: Ints, width: int, bits: int) -> tuple[Ints, Ints, Ints]:
    """Start, width and count of every block; a rest whose chunk size says so is plain words (width T + 1)."""
    per_block = BLOCK * width // bits
    per_chunk = -(-counts // BLOCK)
    first = np.cumsum(per_chunk) - per_chunk
    within = np.arange(int(per_chunk.sum()), dtype=np.int64) - np.repeat(first, per_chunk)
    block_starts = np.repeat(starts, per_chunk) + within * per_block
    block_counts = np.minimum(np.repeat(counts, per_chunk) - within * BLOCK, BLOCK)
    rest = counts % BLOCK
    raw = np.repeat((rest > 0) & (sizes == counts // BLOCK * per_block + rest), per_chunk) & (block_counts < BLOCK)
    return block_starts, np.where(raw, bits + 1, width), block_counts


def _unpack(words: Unsigned, starts: Ints, widths: Ints, counts: Ints, count: int) -> FixedBlock:
    out = np.empty(count, words.dtype)
    if kernels.unpack.is_worth_loading(count, words.dtype):
        done = kernels.unpack(words, starts, widths, counts, np.empty(BLOCK, words.dtype), out)
    elif len(starts) <= MOST_BLOCKS:
        done = unpack_few(words, starts, widths, counts, out)
    else:
        done = kernels.unpack_plainly(words, starts, widths, counts, out)
    if done != count:
        raise CorruptFileError(f"bit packing: {len(counts)} blocks do not hold {count} values")
    return FixedBlock(words.itemsize * 8, out.view(np.uint8), count)


def _encode_inline(values: Unsigned, widths: Ints) -> tuple[Unsigned, Ints, Ints, Ints]:
    """Words, word starts and sizes of the blocks, and their counts."""
    lanes = BLOCK // (values.itemsize * 8)
    sizes = widths * lanes + 1
    starts = np.cumsum(sizes) - sizes
    counts = np.full(len(widths), BLOCK, np.int64)
    if len(counts):
        counts[-1] = len(values) - BLOCK * (len(counts) - 1)
    out = np.zeros(int(sizes.sum()), values.dtype)
    out[starts] = widths
    kernels.pack(values, counts, starts + 1, widths, np.empty(BLOCK, values.dtype), out)
    return out, starts, sizes, counts


def _word_bits(bits: int) -> int:
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"bit packing of {bits}-bit values: expected 8, 16, 32 or 64")
    return bits


def _packed_width(encoding: OutOfLineBitpacking, bits: int) -> int:
    inner = encoding.values
    if not isinstance(inner, Flat) or inner.compression is not None:
        raise UnsupportedEncodingError("OutOfLineBitpacking of an encoding other than Flat is not supported")
    if not 0 <= inner.bits_per_value <= bits:
        raise CorruptFileError(f"OutOfLineBitpacking: {inner.bits_per_value} bits for {bits}-bit values")
    return inner.bits_per_value


def _require(good: npt.NDArray[np.bool_], message: str) -> None:
    if not good.all():
        raise CorruptFileError(f"{message} (chunk {int(np.argmin(good))})")
