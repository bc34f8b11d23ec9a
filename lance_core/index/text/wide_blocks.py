"""Blocks of 256 documents, which posting lists of format version 3 may have, decoded with numpy.

::

    full block   u32 first, u8 width, deltas (0 first)                                 8 lanes, LSB first
                 u8 width, u8 exceptions, counts' low bits; each exception: u8 which, varint high bits
    last block   varint deltas (the first absolute), varint counts

256 values of `width` bits are in eight lanes: value i in lane i % 8, word w of lane j at the u32 of number 8 w + j. No block
has a score in front, as blocks of 128 do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.plain_postings import Blocks, packed_group, short_block, varints_at

WIDE_BLOCK = 256
_LANES = 8


def decode_wide_postings(data: Any, starts: Any, firsts: Any, documents: Any, counts: Any) -> int:
    """Blocks of one list or more: block b is at `starts[b]` to `starts[b + 1]`, and has the documents `firsts[b]` to
    `firsts[b + 1]`, 1 to 256, which are uint32 with their counts. 0, or less for damaged bytes."""
    return Blocks(WIDE_BLOCK, 0, _full_block, short_block).decode(data, starts, firsts, documents, counts)


def _full_block(whole: bytes, at: int, end: int, documents: Any, counts: Any) -> int:
    if at + 5 > end:
        return -2
    first = int.from_bytes(whole[at : at + 4], "little")
    steps = packed_group(whole, at + 4, end, _LANES)
    if steps is None:
        return -4
    total = np.cumsum(steps, dtype=np.uint64) + np.uint64(first)
    if int(total[-1]) >= 1 << 32:
        return -7
    documents[:] = total
    return _patched(whole, at + 5 + 4 * _LANES * whole[at + 4], end, counts)


def _patched(whole: bytes, at: int, end: int, counts: Any) -> int:
    """Numbers of few bits, and the high bits of those that have more."""
    if at + 2 > end:
        return -3
    width, many = whole[at], whole[at + 1]
    low = packed_group(whole, at, end, _LANES, header=2)
    if low is None:
        return -4
    counts[:], at = low, at + 2 + 4 * _LANES * width
    for _ in range(many):
        high, behind = varints_at(whole, at + 1, end, 1)
        if not high or high[0] << width >= 1 << 32:
            return -5
        counts[whole[at]] |= np.uint32(high[0] << width)
        at = behind
    return 0 if at == end else -8
