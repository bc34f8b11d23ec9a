"""Variable: offsets and bytes. 32-bit offsets for utf8 and binary, 64-bit for their large kinds.

::

    chunk form, values "ab", "c"    0c000000 0e000000 0f000000  61 62 63  48        offsets count from the buffer's start
    block form                      20000000 14000000  00000000 02000000 03000000  61 62 63
                                    width    bytes at  offsets from zero

The chunk form is padded with 0x48 to its offset width. In full-zip pages a payload is the value. Offsets that are
themselves encoded (2.3) are a buffer of their own.
(Spec: file format, compressive encodings, "variable".)

Offsets kept apart from the bytes they point into (2.3, unstable): values of `Variable` whose offsets are not Flat.

::

    "hello", "b", "cc"    Variable(Delta(32, base 0, OutOfLineBitpacking(32 to 3 bits)))
                          buffer 0  5 1 2 packed      buffer 1  hellobcc
    "", "", "a", ""       Variable(Rle(Range(32, start 0, step 1), Flat(32)))
                          buffer 0  u64 0, 3 2        buffer 1  a           offsets 0 0 0 1 1 as runs
    "ab", ""              Variable(Rle(Range(32, start 0, step 2), Range(32, start 1, step 1)))
                          buffer 0  ab                         offsets 0 2 2: runs of 1 and 2
    "ab", "cd", "ef"      Variable(Range(32, start 0, step 2))              buffer 0  abcdef
    "", ""                Variable(Constant(0))                             buffer 0  nothing
    "", "abc", ""         Variable(Dictionary(Flat(8), Flat(32), 2 items))  buffer 0  u64 4, u64 8, 0 0 1 1, 0 3
                          buffer 1  abc                        sizes of the indices and items, indices, items

Each chunk's offsets count from the beginning of that chunk's bytes; buffers of offsets are in block form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces, VariableBlock
from lance_core.codecs.dispatch import Buffers, Codecs, Values, total
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.gather import gather, pick_even, pick_uneven, require_sizes, words
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import CompressiveEncoding, Constant, Delta, Dictionary, Flat, Range, Rle, Variable

MAX_CHUNK_VALUES = 4096
TARGET_CHUNK_BYTES = 4096
MAX_CHUNK_BYTES = 16_384
"""No chunk is larger, or it could not fit the 32 KiB of a 2.1 chunk together with its levels."""
_PAD = 0x48
_INT32_MAX = 2**31 - 1
_MAX_PICKED_BYTES = 64
"""Longer values, on average, are copied one by one."""

Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def num_buffers(encoding: Variable, codecs: Codecs) -> int:
    """One buffer, offsets and bytes together; offsets apart have their own."""
    if _are_apart(encoding):
        return num_offset_buffers(encoding.offsets) + 1
    _width(encoding)
    return 1


def decode(encoding: Variable, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """VariableBlock of all chunks' values; CorruptFileError for offsets that decrease or leave their chunk."""
    if _are_apart(encoding):
        return decode_apart(encoding.offsets, buffers, counts, codecs)
    width = _width(encoding)
    (pieces,) = buffers
    header = (counts + 1) * width
    require_sizes(pieces, header, "Variable offsets")
    return _join(pieces, pieces.starts, counts, width, bytes_at=None)


def decode_block(encoding: Variable, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The block form: a two-word header, zero-based offsets, bytes."""
    width = _width(encoding)
    require_sizes(piece, (counts + 3) * width, "Variable block")
    header = np.full(len(piece), 2 * width, np.int64)
    head = words(gather(piece.data, piece.starts, header), _word(width)).astype(np.uint64).reshape(-1, 2)
    starts = (counts + 3) * width
    if (head[:, 0] != width * 8).any() or (head[:, 1] != starts.astype(np.uint64)).any():
        raise CorruptFileError(
            f"Variable block: header {head[0].tolist()}, expected [{width * 8}, {int(starts[0]) if len(starts) else 0}]"
        )
    return _join(piece, piece.starts + 2 * width, counts, width, bytes_at=starts)


def decode_at(encoding: Variable, buffers: Buffers, count: int, position: int, codecs: Codecs) -> bytes:
    """One value of one chunk."""
    if _are_apart(encoding):
        return _one_apart(encoding, buffers, count, position, codecs)
    width = _width(encoding)
    if len(buffers) != 1 or len(buffers[0]) < (count + 1) * width:
        raise CorruptFileError(f"Variable: {count} values in {[len(buffer) for buffer in buffers]} bytes")
    start, end = struct.unpack_from("<II" if width == 4 else "<QQ", buffers[0], position * width)
    if not (count + 1) * width <= start <= end <= len(buffers[0]):
        raise CorruptFileError(f"Variable: a value at bytes {start}..{end} of a chunk of {len(buffers[0])}")
    return bytes(buffers[0][start:end])


def decode_picks(
    encoding: Variable, buffers: tuple[Pieces, ...], counts: Ints, picks: Picks, codecs: Codecs
) -> Block | None:
    """Some values of many chunks; None for long ones, which are better copied whole, and for offsets apart."""
    if _are_apart(encoding):
        return None
    width = _width(encoding)
    (pieces,) = buffers
    require_sizes(pieces, (counts + 1) * width, "Variable offsets")
    at = pieces.starts[picks.chunks] + picks.positions * width
    starts = words(pick_even(pieces.data, at, width), _word(width)).astype(np.int64)
    ends = words(pick_even(pieces.data, at + width, width), _word(width)).astype(np.int64)
    heads, limits = (counts[picks.chunks] + 1) * width, pieces.sizes[picks.chunks]
    if ((starts < heads) | (ends < starts) | (ends > limits)).any():
        raise CorruptFileError("Variable: offsets decrease or point outside their chunk")
    sizes = ends - starts
    stops = np.cumsum(sizes)
    num_bytes = int(stops[-1]) if len(stops) else 0
    if num_bytes > _MAX_PICKED_BYTES * len(picks):
        return None
    offsets: Offsets = np.zeros(len(picks) + 1, np.int32 if width == 4 and num_bytes <= _INT32_MAX else np.int64)
    offsets[1:] = stops
    return VariableBlock(offsets, pick_uneven(pieces.data, pieces.starts[picks.chunks] + starts, sizes))


def decode_values(encoding: Variable, payload: Values, codecs: Codecs) -> Block:
    """A payload is the value."""
    _width(encoding)
    if not isinstance(payload, VariableBlock):
        raise CorruptFileError("a page of Variable values has payloads of fixed width, expected variable")
    return payload


def decode_payloads(
    encodings: Sequence[Variable], counts: Sequence[int], payloads: Sequence[bytes], codecs: Codecs
) -> list[bytes]:
    """A payload is the value."""
    _width(encodings[0])
    return list(payloads)


def encode_chunks(
    block: VariableBlock, *, max_values: int = MAX_CHUNK_VALUES, target_bytes: int = TARGET_CHUNK_BYTES
) -> EncodedChunks:
    """Cut into chunks of one power of two of values, about `target_bytes` each on average."""
    width = block.offsets.dtype.itemsize
    per_chunk = _chunk_values(block, width, max_values, target_bytes)
    bounds = np.append(np.arange(0, block.count, per_chunk, dtype=np.int64), np.int64(block.count))
    counts = np.diff(bounds)
    starts, sizes, parts = _lay_out(block, bounds, counts, width)
    data = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return EncodedChunks(Variable(Flat(width * 8)), counts, (Pieces(data, starts, sizes),))


def encode_block(block: VariableBlock) -> tuple[Variable, bytes]:
    """The block form."""
    width = block.offsets.dtype.itemsize
    head = np.array([width * 8, (block.count + 3) * width], _word(width))
    used = block.data[int(block.offsets[0]) : int(block.offsets[-1])]
    offsets = (block.offsets - block.offsets[0]).astype(_word(width))
    return Variable(Flat(width * 8)), b"".join((head.tobytes(), offsets.tobytes(), used.tobytes()))


def _join(pieces: Pieces, offsets_at: Ints, counts: Ints, width: int, *, bytes_at: Ints | None) -> VariableBlock:
    """Offsets of all chunks made one run, and their bytes. `bytes_at` is where zero-based offsets count from."""
    count = total(counts)
    if count == 0:
        return VariableBlock(np.zeros(1, np.int32 if width == 4 else np.int64), np.empty(0, np.uint8))
    stored = words(gather(pieces.data, offsets_at, (counts + 1) * width), _word(width))
    lasts = np.cumsum(counts + 1) - 1
    first, last = stored[lasts - counts].astype(np.int64), stored[lasts].astype(np.int64)
    _check_offsets(stored, lasts, last, pieces.sizes if bytes_at is None else pieces.sizes - bytes_at)
    sizes = last - first
    bases = np.cumsum(sizes) - sizes
    offsets = _shift(stored, counts, bases - first, int(sizes.sum()))
    at = pieces.starts + first if bytes_at is None else pieces.starts + bytes_at + first
    return VariableBlock(offsets, gather(pieces.data, at, sizes))


def _check_offsets(stored: npt.NDArray[Any], lasts: Ints, last: Ints, limits: Ints) -> None:
    falls = stored[1:] < stored[:-1]
    falls[lasts[:-1]] = False
    if falls.any() or (last > limits).any() or (last < 0).any():
        raise CorruptFileError("Variable: offsets decrease or point outside their chunk")


def _shift(stored: npt.NDArray[Any], counts: Ints, shifts: Ints, num_bytes: int) -> Offsets:
    """All offsets but the last of each chunk, moved to where the chunk's bytes will be, then the end."""
    dtype: type[np.int32] | type[np.int64] = np.int64
    if stored.dtype.itemsize == 4 and num_bytes <= _INT32_MAX:
        dtype = np.int32
    out: npt.NDArray[Any] = np.empty(int(counts.sum()) + 1, dtype)
    # Differences wrap around in the word's width, so that 32-bit words need no wider sum.
    signed = stored.view(np.int32 if stored.dtype.itemsize == 4 else np.int64).astype(dtype, copy=False)
    moves = shifts.astype(dtype)
    even = _num_even(counts)
    per_chunk = int(counts[0])
    grid = signed[: even * (per_chunk + 1)].reshape(even, per_chunk + 1)
    np.add(grid[:, :-1], moves[:even, None], out=out[: even * per_chunk].reshape(even, per_chunk))
    rest = signed[even * (per_chunk + 1) :]
    if len(rest):
        keep = np.ones(len(rest), np.bool_)
        keep[np.cumsum(counts[even:] + 1) - 1] = False
        np.add(rest[keep], np.repeat(moves[even:], counts[even:]), out=out[even * per_chunk : -1])
    out[-1] = num_bytes
    return out


def _num_even(counts: Ints) -> int:
    """How many leading chunks have the first chunk's count."""
    other = counts != counts[0]
    return int(np.argmax(other)) if other.any() else len(counts)


def _chunk_values(block: VariableBlock, width: int, max_values: int, target_bytes: int) -> int:
    """The largest power of two whose chunks average at most the target and never pass the hard limit."""
    per_chunk = 1
    average = width + (int(block.offsets[-1]) - int(block.offsets[0])) / max(block.count, 1)
    while per_chunk * 2 <= min(max_values, MAX_CHUNK_VALUES) and per_chunk * 2 * average + width <= target_bytes:
        per_chunk *= 2
    while per_chunk > 1 and _largest(block.offsets, per_chunk) + (per_chunk + 1) * width > MAX_CHUNK_BYTES:
        per_chunk //= 2
    return per_chunk


def _largest(offsets: Offsets, per_chunk: int) -> int:
    edges = np.append(offsets[:-1:per_chunk], offsets[-1])
    return int(np.diff(edges).max()) if len(edges) > 1 else 0


def _lay_out(block: VariableBlock, bounds: Ints, counts: Ints, width: int) -> tuple[Ints, Ints, list[npt.NDArray[np.uint8]]]:
    """Start and size of each chunk, and its parts: offsets, bytes, padding."""
    edges = block.offsets[bounds].astype(np.int64)
    header = (counts + 1) * width
    unpadded = header + np.diff(edges)
    sizes = (unpadded + (width - 1)) & -width
    starts = np.cumsum(sizes) - sizes
    stored = _chunk_offsets(block, counts, edges, width)
    pads = [np.full(pad, _PAD, np.uint8) for pad in range(width)]
    heads = np.append(0, np.cumsum(header)).tolist()
    ends = edges.tolist()
    parts: list[Bytes] = []
    for chunk, pad in enumerate((sizes - unpadded).tolist()):
        parts += (stored[heads[chunk] : heads[chunk + 1]], block.data[ends[chunk] : ends[chunk + 1]], pads[pad])
    return starts, sizes, parts


def _chunk_offsets(block: VariableBlock, counts: Ints, edges: Ints, width: int) -> Bytes:
    """The offset words of all chunks, back to back, as bytes. All chunks but the last have one count."""
    if not len(counts):
        return np.empty(0, np.uint8)
    out = np.empty(block.count + len(counts), _word(width))
    even, per_chunk = len(counts) - 1, int(counts[0])
    offsets = block.offsets
    step = offsets.strides[0]
    grid = np.lib.stride_tricks.as_strided(offsets, (even, per_chunk + 1), (step * per_chunk, step), writeable=False)
    target = out[: even * (per_chunk + 1)].view(offsets.dtype).reshape(even, per_chunk + 1)
    np.subtract(grid, (edges[:even] - (per_chunk + 1) * width).astype(offsets.dtype)[:, None], out=target)
    last = int(counts[-1])
    out[even * (per_chunk + 1) :] = offsets[block.count - last :] - offsets[block.count - last] + (last + 1) * width
    return out.view(np.uint8)


def _one_apart(encoding: Variable, buffers: Buffers, count: int, position: int, codecs: Codecs) -> bytes:
    counts = np.array([count], np.int64)
    pieces = tuple(Pieces.whole(np.frombuffer(buffer, np.uint8)) for buffer in buffers)
    if len(pieces) != num_buffers(encoding, codecs):
        raise CorruptFileError(f"Variable: a chunk has {len(pieces)} value buffers")
    block = decode_apart(encoding.offsets, pieces, counts, codecs)
    start, end = block.offsets[position : position + 2].tolist()
    return block.data[start:end].tobytes()


def _are_apart(encoding: Variable) -> bool:
    return not isinstance(encoding.offsets, Flat) and encoding.compression is None


def _width(encoding: Variable) -> int:
    offsets = encoding.offsets
    if encoding.compression is not None or not isinstance(offsets, Flat) or offsets.compression is not None:
        raise UnsupportedEncodingError("Variable with compressed offsets or bytes is not supported")
    if offsets.bits_per_value not in (32, 64):
        raise CorruptFileError(f"Variable with offsets of {offsets.bits_per_value} bits: expected 32 or 64")
    return offsets.bits_per_value // 8


def _word(width: int) -> str:
    return "<u4" if width == 4 else "<u8"


_MAX_VALUES = 1 << 28


def num_offset_buffers(offsets: CompressiveEncoding) -> int:
    """Buffers in front of the bytes. Raises UnsupportedEncodingError for offsets that no writer makes."""
    if isinstance(offsets, Rle):
        return int(not _is_without_bytes(offsets))
    inner = offsets.deltas if isinstance(offsets, Delta) else offsets
    if isinstance(offsets, Delta | Range | Constant | Dictionary):
        return int(not isinstance(inner, Range | Constant))
    raise UnsupportedEncodingError(f"Variable with offsets of {type(offsets).__name__} is not supported")


def decode_apart(offsets: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> VariableBlock:
    """The values of all chunks; CorruptFileError for offsets that leave their chunk."""
    count, data = total(counts), buffers[-1]
    if count > _MAX_VALUES:
        raise CorruptFileError(f"{count} values in one read")
    if isinstance(offsets, Delta):
        bits, firsts = offsets.uncompressed_bits, np.full(len(counts), min(offsets.base, 1 << 62), np.int64)
        lengths, _ = _numbers(offsets.deltas, buffers[:-1], counts, codecs)
    else:
        stored, bits = _numbers(offsets, buffers[:-1], counts + 1, codecs)
        lasts = np.cumsum(counts + 1) - 1
        firsts, lengths = stored[lasts - counts], np.delete(np.diff(stored), lasts[:-1])
    if bits not in (32, 64):
        raise CorruptFileError(f"Variable with offsets of {bits} bits: expected 32 or 64")
    if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) <= len(data.data):
        raise CorruptFileError("Variable: offsets decrease or point outside their chunk")
    ends: Ints = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    stops = np.cumsum(counts)
    sizes = ends[stops] - ends[stops - counts]
    if (firsts < 0).any() or (firsts + sizes > data.sizes).any():
        raise CorruptFileError("Variable: offsets point outside their chunk")
    wide = bits == 64 or int(ends[-1]) > _INT32_MAX
    joined: npt.NDArray[np.int32] | npt.NDArray[np.int64] = ends if wide else ends.astype(np.int32)
    return VariableBlock(joined, gather(data.data, data.starts + firsts, sizes))


def _is_without_bytes(encoding: Rle) -> bool:
    return isinstance(encoding.values, Range | Constant) and isinstance(encoding.run_lengths, Range | Constant)


def _runs(encoding: Rle, counts: Ints) -> Ints:
    """Runs whose values and lengths are both progressions, for each chunk from the beginning."""
    first, step, _ = _progression(encoding.values)
    shortest, growth, _ = _progression(encoding.run_lengths)
    if shortest < 1:
        raise CorruptFileError("Variable: one of the runs has no offsets")
    found = [np.empty(0, np.int64)]
    for count in counts.tolist():
        # Each run holds one offset at least; what is beyond the count may be as large as it likes.
        ends = np.cumsum(min(shortest, count + 1) + np.arange(count, dtype=np.int64) * min(growth, count + 1))
        num_runs = int(np.searchsorted(ends, count)) + 1
        if not count or num_runs > count or ends[num_runs - 1] != count or first + num_runs * step >= 1 << 62:
            raise CorruptFileError(f"Variable: the runs do not hold {count} offsets")
        values = first + np.arange(num_runs, dtype=np.int64) * step
        found.append(np.repeat(values, np.diff(ends[:num_runs], prepend=0)))
    return np.concatenate(found)


def _progression(encoding: CompressiveEncoding) -> tuple[int, int, int]:
    """(first number, step, bits) of an encoding without bytes."""
    if isinstance(encoding, Range):
        return max(encoding.start, 0), max(encoding.step, 0), encoding.uncompressed_bits
    value = (encoding.value or b"") if isinstance(encoding, Constant) else b""
    return min(int.from_bytes(value, "little"), 1 << 62), 0, 8 * len(value)


def _numbers(encoding: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> tuple[Ints, int]:
    """(`counts` numbers for each chunk, joined; their bits as described)."""
    if isinstance(encoding, Constant):
        value = encoding.value or b""
        number = min(int.from_bytes(value, "little"), 1 << 62)
        return np.full(total(counts), number, np.int64), 8 * len(value)
    if isinstance(encoding, Rle) and _is_without_bytes(encoding):
        return _runs(encoding, counts), _progression(encoding.values)[2]
    if isinstance(encoding, Dictionary):
        return _looked_up(encoding, buffers[0], counts, codecs)
    if isinstance(encoding, Range):
        block = codecs.decode(encoding, (), counts)
    else:
        block = codecs.decode_block(encoding, buffers[0], counts)
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32, 64):
        raise CorruptFileError("Variable: offsets are not integers")
    return words(block.data, f"u{block.bits // 8}")[: block.count].astype(np.int64), block.bits


def _looked_up(encoding: Dictionary, pieces: Pieces, counts: Ints, codecs: Codecs) -> tuple[Ints, int]:
    """Numbers that are indices into each chunk's own items."""
    require_sizes(pieces, np.full(len(pieces), 16, np.int64), "Variable: offsets by dictionary")
    sizes = words(gather(pieces.data, pieces.starts, np.full(len(pieces), 16, np.int64)), "u8").reshape(-1, 2)
    room = pieces.sizes.astype(np.uint64) - np.uint64(16)
    if (sizes > room[:, None]).any() or (sizes.sum(axis=1) != room).any():
        raise CorruptFileError("Variable: the parts of a dictionary of offsets do not fill their buffer")
    split = sizes.astype(np.int64)
    starts = pieces.starts + 16
    indices, _ = _numbers(encoding.indices, (Pieces(pieces.data, starts, split[:, 0]),), counts, codecs)
    if not 0 <= encoding.num_items * len(counts) <= _MAX_VALUES:
        raise CorruptFileError(f"{encoding.num_items} items in a dictionary of offsets")
    num_items = np.full(len(counts), encoding.num_items, np.int64)
    items, bits = _numbers(encoding.items, (Pieces(pieces.data, starts + split[:, 0], split[:, 1]),), num_items, codecs)
    if len(indices) and int(indices.max()) >= encoding.num_items:
        raise CorruptFileError(f"Variable: offset {int(indices.max())} of {encoding.num_items} in a dictionary")
    found: Ints = items[np.repeat(np.arange(len(counts)) * encoding.num_items, counts) + indices]
    return found, bits
