"""Range (2.3, unstable): numbers that grow by one step, and so need no bytes.

::

    Range(32, start 10, step 5), 3 values   ->   10 15 20          each chunk begins at the start again

Offsets, differences and run values are written so; see `offsets` and `rle`.
"""

from __future__ import annotations

import numpy as np

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, FixedBlock, Pieces
from lance_core.codecs.dispatch import Codecs, Values, total
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Range

_MAX_VALUES = 1 << 28
"""They need no bytes, so nothing else would keep a damaged count from allocating at will."""


def num_buffers(encoding: Range, codecs: Codecs) -> int:
    """None."""
    return 0


def decode(encoding: Range, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """FixedBlock of 8, 16, 32 or 64 bits; CorruptFileError for numbers that do not fit them."""
    count, bits = total(counts), encoding.uncompressed_bits
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"Range of {bits} bits")
    if count > _MAX_VALUES:
        raise CorruptFileError(f"Range of {count} values")
    last = encoding.start + encoding.step * max(int(counts.max(initial=0)) - 1, 0)
    if encoding.start < 0 or encoding.step < 0 or last >= 1 << min(bits, 62):
        raise CorruptFileError(f"Range up to {last} in {bits} bits")
    within = np.arange(count, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    values = (encoding.start + within * encoding.step).astype(f"<u{bits // 8}")
    return FixedBlock(bits, values.view(np.uint8), count)


def decode_block(encoding: Range, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The same: the pieces are empty."""
    return decode(encoding, (), counts, codecs)


def decode_values(encoding: Range, payload: Values, codecs: Codecs) -> Block:
    """Single values are never a range."""
    raise UnsupportedEncodingError("Range is not a full-zip encoding")
