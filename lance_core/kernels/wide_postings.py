"""Posting lists packed into blocks of 256 documents, which format version 3 of full-text indices may have.

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

from lance_core.kernels.jit import kernel

WIDE_BLOCK = 256


@kernel("in:u1 in:i8 in:i8 out:u4 out:u4 -> i8")
def decode_wide_postings(data: Any, starts: Any, firsts: Any, documents: Any, counts: Any) -> Any:
    """Blocks of one list or more: block b is at `starts[b]` to `starts[b + 1]`, and has the documents `firsts[b]` to
    `firsts[b + 1]`, 1 to 256. 0, or less for damaged bytes."""
    for block in range(len(starts) - 1):
        at, end = starts[block], starts[block + 1]
        done = firsts[block]
        many = firsts[block + 1] - done
        if many <= 0 or many > 256:
            return -1
        total = np.uint64(0)
        if many == 256:
            if at + 5 > end:
                return -2
            for place in range(4):
                total |= np.uint64(data[at + place]) << np.uint64(8 * place)
            at += 4
            for part in range(2):
                if at + 1 + part > end:
                    return -3
                width, exceptions = np.int64(data[at]), np.int64(0)
                if part == 1:
                    exceptions = np.int64(data[at + 1])
                at += 1 + part
                if width > 32 or at + 32 * width > end:
                    return -4
                mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
                for lane in range(8):
                    held, bits, source = np.uint64(0), np.int64(0), at + 4 * lane
                    for step in range(32):
                        if bits < width:
                            for place in range(4):
                                held |= np.uint64(data[source + place]) << np.uint64(bits + 8 * place)
                            source += 32
                            bits += 32
                        if part == 0:
                            documents[done + 8 * step + lane] = np.uint32(held & mask)
                        else:
                            counts[done + 8 * step + lane] = np.uint32(held & mask)
                        held >>= np.uint64(width)
                        bits -= width
                at += 32 * width
                for _ in range(exceptions):
                    if at >= end:
                        return -5
                    which = done + np.int64(data[at])
                    at += 1
                    high, shift = np.uint64(0), np.int64(0)
                    while True:
                        if at >= end or shift > 28:
                            return -5
                        byte = np.uint64(data[at])
                        at += 1
                        high |= (byte & np.uint64(127)) << np.uint64(shift)
                        shift += 7
                        if byte < np.uint64(128):
                            break
                    if width >= 32 or (high << np.uint64(width)) >= np.uint64(1 << 32):
                        return -5
                    counts[which] |= np.uint32(high << np.uint64(width))
            for index in range(done, done + 256):
                total += np.uint64(documents[index])
                documents[index] = np.uint32(total)
        else:
            for part in range(2):
                for index in range(done, done + many):
                    small, shift = np.uint64(0), np.int64(0)
                    while True:
                        if at >= end or shift > 28:
                            return -6
                        byte = np.uint64(data[at])
                        at += 1
                        small |= (byte & np.uint64(127)) << np.uint64(shift)
                        shift += 7
                        if byte < np.uint64(128):
                            break
                    if part == 0:
                        total += small
                        documents[index] = np.uint32(total)
                    else:
                        counts[index] = np.uint32(small)
        if total >= np.uint64(1 << 32):
            return -7
        if at != end:
            return -8
    return 0
