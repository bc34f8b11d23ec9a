"""RLE: runs as two buffers, the values and the run lengths (1 to 255, a longer run is several; wider in 2.3).

::

    values 7 7 7 9, Flat(16)      chunk form   buffer 0  07 00 09 00      buffer 1  03 01
                                  block form   u64 size of the values, values, lengths

(Spec: file format, compressive encodings, "RLE".)
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs, Values, total
from lance_core.codecs.encoded import EncodedChunks
from lance_core.codecs.gather import gather, require_sizes, words
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Flat, Rle

MAX_RUN = 255
CHUNK_VALUES = 4096
Unsigned = npt.NDArray[Any]


def num_buffers(encoding: Rle, codecs: Codecs) -> int:
    """Two buffers: values and lengths."""
    return 2


def decode(encoding: Rle, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """FixedBlock of the runs spelled out; CorruptFileError when a chunk's lengths do not add up to its count."""
    values, lengths = buffers
    if not isinstance(encoding.run_lengths, Flat) and not isinstance(encoding.values, Flat):
        # Both compressed (2.3): only unpacked does either tell how many runs there are.
        inner, lengths = codecs.unwrap(encoding.run_lengths, lengths)
        encoding = Rle(encoding.values, inner)
    num_runs = _num_runs(encoding, values, lengths)
    # Values that are a range have no bytes (2.3).
    runs = codecs.decode(encoding.values, (values,)[: codecs.num_buffers(encoding.values)], num_runs)
    sizes = codecs.decode(encoding.run_lengths, (lengths,), num_runs)
    return _expand(runs, _lengths(sizes), num_runs, counts)


def decode_block(encoding: Rle, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The block form of each piece."""
    require_sizes(piece, np.full(len(piece), 8, np.int64), "Rle block")
    stored = words(gather(piece.data, piece.starts, np.full(len(piece), 8, np.int64)), "u8")
    room = piece.sizes - 8
    if (stored > room.astype(np.uint64)).any():
        raise CorruptFileError("Rle block: the values are larger than the buffer")
    sizes = stored.astype(np.int64)
    values = Pieces(piece.data, piece.starts + 8, sizes)
    lengths = Pieces(piece.data, piece.starts + 8 + sizes, room - sizes)
    return decode(encoding, (values, lengths), counts, codecs)


def decode_values(encoding: Rle, payload: Values, codecs: Codecs) -> Block:
    """Single values have no runs."""
    raise UnsupportedEncodingError("Rle is not a full-zip encoding")


def count_runs(values: Unsigned) -> int:
    """How many runs of equal values there are."""
    return int(np.count_nonzero(values[1:] != values[:-1])) + 1 if len(values) else 0


def encode_chunks(block: FixedBlock, *, max_values: int = CHUNK_VALUES) -> EncodedChunks:
    """Runs of a block of 8, 16, 32 or 64 bits, chunks of `max_values` (a power of two)."""
    values = block.data[: block.count * block.bits // 8].view(f"<u{block.bits // 8}")
    starts = np.arange(0, block.count, max_values, dtype=np.int64)
    counts = np.diff(np.append(starts, block.count))
    runs, lengths, num_runs = find_runs(values, counts)
    size = block.bits // 8
    return EncodedChunks(
        Rle(Flat(block.bits), Flat(8)), counts, (_pieces(runs.view(np.uint8), num_runs * size), _pieces(lengths, num_runs))
    )


def encode_pieces(values: Unsigned, counts: Ints) -> tuple[Rle, Pieces]:
    """Block form of `values` cut into chunks of `counts` (any sizes): one piece per chunk."""
    runs, lengths, num_runs = find_runs(values, counts)
    size = values.itemsize
    raw = runs.view(np.uint8)
    bounds = np.append(0, np.cumsum(num_runs)).tolist()
    parts: list[npt.NDArray[np.uint8]] = []
    for start, end in itertools.pairwise(bounds):
        head = np.array([(end - start) * size], "<u8").view(np.uint8)
        parts += (head, raw[start * size : end * size], lengths[start:end])
    data = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return Rle(Flat(size * 8), Flat(8)), _pieces(data, 8 + num_runs * (size + 1))


def find_runs(values: Unsigned, counts: Ints) -> tuple[Unsigned, npt.NDArray[np.uint8], Ints]:
    """(run values, run lengths as uint8, runs per chunk); no run crosses a chunk or passes 255."""
    if not len(values):
        return values, np.empty(0, np.uint8), np.zeros(len(counts), np.int64)
    edge = np.empty(len(values), np.bool_)
    edge[0] = True
    np.not_equal(values[1:], values[:-1], out=edge[1:])
    chunk_starts = np.cumsum(counts) - counts
    edge[chunk_starts[counts > 0]] = True
    starts = np.flatnonzero(edge)
    lengths = np.diff(np.append(starts, len(values)))
    parts = -(-lengths // MAX_RUN)
    short = np.full(int(parts.sum()), MAX_RUN, np.uint8)
    short[np.cumsum(parts) - 1] = lengths - (parts - 1) * MAX_RUN
    ends = np.append(0, np.cumsum(parts))
    per_chunk = ends[np.searchsorted(starts, chunk_starts + counts)] - ends[np.searchsorted(starts, chunk_starts)]
    return np.repeat(values[starts], parts), short, per_chunk


def _pieces(data: npt.NDArray[np.uint8], sizes: Ints) -> Pieces:
    return Pieces(data, np.cumsum(sizes) - sizes, sizes)


def _num_runs(encoding: Rle, values: Pieces, lengths: Pieces) -> Ints:
    """Runs per chunk, from whichever of the two buffers is flat."""
    for inner, pieces in ((encoding.run_lengths, lengths), (encoding.values, values)):
        if isinstance(inner, Flat) and inner.bits_per_value >= 8 and inner.bits_per_value % 8 == 0:
            return pieces.sizes // (inner.bits_per_value // 8)
    raise UnsupportedEncodingError("Rle with both values and lengths bit-packed is not supported")


def _lengths(block: Block) -> npt.NDArray[Any]:
    if not isinstance(block, FixedBlock) or block.bits not in (8, 16, 32):
        raise CorruptFileError("Rle: run lengths are not integers of 8, 16 or 32 bits")
    return block.data[: block.count * block.bits // 8].view(f"<u{block.bits // 8}")


def _expand(runs: Block, lengths: npt.NDArray[Any], num_runs: Ints, counts: Ints) -> FixedBlock:
    if not isinstance(runs, FixedBlock) or runs.bits % 8:
        raise CorruptFileError("Rle: run values are not of a fixed width in bytes")
    count = total(counts)
    ends = np.append(0, np.cumsum(lengths, dtype=np.int64))
    run_ends = np.cumsum(num_runs)
    sums = ends[run_ends] - ends[run_ends - num_runs]
    if (sums != counts).any():
        chunk = int(np.argmax(sums != counts))
        raise CorruptFileError(f"Rle: chunk {chunk} has runs of {int(sums[chunk])} values, expected {int(counts[chunk])}")
    size = runs.bits // 8
    values = runs.data[: runs.count * size]
    wide = words(values, f"u{size}") if size in (1, 2, 4, 8) else values.reshape(-1, size)
    return FixedBlock(runs.bits, np.repeat(wide, lengths, axis=0).reshape(-1).view(np.uint8), count)
