"""Byte stream split: all first bytes, then all second bytes, and so on; a general compressor then finds more redundancy.

::

    Flat(16), values 0102 0304 0506 (little-endian words)     02 04 06 | 01 03 05

Chunk form only. (Spec: compressive encodings, "byte stream split".)
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs, Values
from lance_core.codecs.encoded import EncodedChunks
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import ByteStreamSplit


def num_buffers(encoding: ByteStreamSplit, codecs: Codecs) -> int:
    """One buffer: the planes."""
    return codecs.num_buffers(encoding.values)


def decode(encoding: ByteStreamSplit, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """FixedBlock with the bytes of each value together again."""
    planes = codecs.decode(encoding.values, buffers, counts)
    if not isinstance(planes, FixedBlock) or planes.bits % 8:
        raise CorruptFileError("ByteStreamSplit of values that are not whole bytes wide is not supported")
    return FixedBlock(planes.bits, _regroup(planes.data, counts, planes.bits // 8, join=True), planes.count)


def decode_block(encoding: ByteStreamSplit, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """There is no block form."""
    raise UnsupportedEncodingError("ByteStreamSplit has no block form")


def decode_values(encoding: ByteStreamSplit, payload: Values, codecs: Codecs) -> Block:
    """Single values have no planes."""
    raise UnsupportedEncodingError("ByteStreamSplit is not a full-zip encoding")


def encode_chunks(flat: EncodedChunks, size: int) -> EncodedChunks:
    """Split chunks of flat values of `size` bytes."""
    (pieces,) = flat.buffers
    data = _regroup(pieces.data, flat.counts, size, join=False)
    return EncodedChunks(ByteStreamSplit(flat.encoding), flat.counts, (Pieces(data, pieces.starts, pieces.sizes),))


def _regroup(data: Bytes, counts: Ints, size: int, *, join: bool) -> Bytes:
    """Planes to values (`join`) or back, chunk by chunk; runs of equal chunks are one transposition."""
    out = np.empty(int(counts.sum()) * size, np.uint8)
    at = 0
    edges = np.append(np.flatnonzero(np.diff(counts)) + 1, len(counts)).tolist() if len(counts) else []
    begin = 0
    for end in edges:
        chunks, count = end - begin, int(counts[begin])
        shape = (chunks, size, count) if join else (chunks, count, size)
        stop = at + chunks * count * size
        out[at:stop].reshape(chunks, shape[2], shape[1])[:] = data[at:stop].reshape(shape).transpose(0, 2, 1)
        begin, at = end, stop
    return out
