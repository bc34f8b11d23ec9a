"""Unpack a few bit-packed blocks with a handful of numpy operations each, whatever the width.

::

    T = 16, W = 3     output rows of 64 lanes: word 0 >> 0, word 1 >> 8, word 0 >> 12 | word 1 << 4, ...         & 7

A read of one row unpacks one block of levels or values for each column; what it costs is the number of operations, not the
bytes. The order is that of `lance_core.kernels.bits`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.kernels.bits import BLOCK, ORDER

MOST_BLOCKS = 8
Unsigned = npt.NDArray[Any]


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
