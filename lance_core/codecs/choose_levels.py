"""How repetition and definition levels are written: the smallest of plain, bit packed and (from 2.2 on) run lengths.

::

    levels 0 0 1 0 ... in chunks of 1,024   ->   OutOfLineBitpacking(16 to 1 bit), 128 bytes a chunk
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs import bitpack, rle
from lance_core.codecs.blocks import Pieces
from lance_core.codecs.encoded import EncodedLevels
from lance_core.codecs.options import EncodingOptions
from lance_core.format.encoding import Flat
from lance_core.format.version import FileVersion

_TINY = 64
_RUN_BYTES = 3


def choose_levels(levels: npt.NDArray[np.uint16], counts: Ints, options: EncodingOptions) -> EncodedLevels:
    """Levels of many chunks: `counts` (int64) levels belong to each chunk, in order. One description, a piece per chunk."""
    values = np.ascontiguousarray(levels, "<u2")
    if len(values) <= _TINY:
        return encode_plain(values, counts)
    width = int(bitpack.bit_lengths(np.array([values.max()], np.uint16))[0])
    packed_size = int(bitpack.out_of_line_words(counts, width, 16).sum()) * 2
    if options.version >= FileVersion.V2_2:
        num_runs = rle.count_runs(values) + len(values) // rle.MAX_RUN + len(counts)
        if num_runs * _RUN_BYTES + 8 * len(counts) < packed_size:
            return EncodedLevels(*rle.encode_pieces(values, counts))
    if packed_size >= 2 * len(values):
        return encode_plain(values, counts)
    return EncodedLevels(*bitpack.encode_out_of_line(values, counts, width=width))


def encode_plain(levels: npt.NDArray[np.uint16], counts: Ints) -> EncodedLevels:
    """Levels as 16-bit numbers."""
    data = np.ascontiguousarray(levels, "<u2").view(np.uint8)
    return EncodedLevels(Flat(16), Pieces(data, (np.cumsum(counts) - counts) * 2, counts * 2))
