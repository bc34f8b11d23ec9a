"""The hashes of texts, and the bits that hashes set in a split-block filter: eight 32-bit words a block, one bit in each.

::

    hash h      block (h >> 32) * blocks >> 32      word i: bit (low half of h * salts[i]) >> 27
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel, load_u64


@kernel("in:u8 in:u4 out:u4 -> i8")
def set_block_bits(hashes: Any, salts: Any, words: Any) -> Any:
    """Set the bits of all hashes; `words` has eight for each block."""
    num_blocks = np.uint64(len(words) // 8)
    for index in range(len(hashes)):
        value = hashes[index]
        block = np.int64(((value >> np.uint64(32)) * num_blocks) >> np.uint64(32)) * 8
        low = np.uint32(value & np.uint64(0xFFFFFFFF))
        for place in range(8):
            words[block + place] |= np.uint32(1) << (np.uint32(low * salts[place]) >> np.uint32(27))
    return 0


@kernel("in:u8 in:u4 in:u4 in:i8 in:i8 in:i8 -> i8")
def lacks_block_bits(hashes: Any, salts: Any, words: Any, zones: Any, firsts: Any, counts: Any) -> Any:
    """How many hashes lack a bit in the filter of their zone: `counts` blocks (of eight `words`) from block `firsts`."""
    lacking = np.int64(0)
    for index in range(len(hashes)):
        value, zone = hashes[index], zones[index]
        block = np.int64(((value >> np.uint64(32)) * np.uint64(counts[zone])) >> np.uint64(32)) + firsts[zone]
        low = np.uint32(value & np.uint64(0xFFFFFFFF))
        for place in range(8):
            bit = np.uint32(1) << (np.uint32(low * salts[place]) >> np.uint32(27))
            if not words[block * 8 + place] & bit:
                lacking += 1
                break
    return lacking


@kernel("in:i8 in:u1 out:u8 -> i8")
def hash_texts(offsets: Any, data: Any, out: Any) -> Any:
    """xxh64 (seed 0) of each data[offsets[i]:offsets[i + 1]]; `data` has eight bytes to spare. -1: bad offsets."""
    p1, p2, p3 = np.uint64(11400714785074694791), np.uint64(14029467366897019727), np.uint64(1609587929392839161)
    p4, p5 = np.uint64(9650029242287828579), np.uint64(2870177450012600261)
    r1, r7, r11, r12, r18 = np.uint64(1), np.uint64(7), np.uint64(11), np.uint64(12), np.uint64(18)
    r23, r27, r31, whole = np.uint64(23), np.uint64(27), np.uint64(31), np.uint64(64)
    for index in range(len(offsets) - 1):
        at, end = offsets[index], offsets[index + 1]
        if at < 0 or end < at or end > len(data) - 8:
            return -1
        size = np.uint64(end - at)
        state = p5
        if end - at >= 32:
            a, b, c, d = p1 + p2, p2, np.uint64(0), np.uint64(0) - p1
            while at + 32 <= end:
                a += load_u64(data, at) * p2
                a = (a << r31 | a >> (whole - r31)) * p1
                b += load_u64(data, at + 8) * p2
                b = (b << r31 | b >> (whole - r31)) * p1
                c += load_u64(data, at + 16) * p2
                c = (c << r31 | c >> (whole - r31)) * p1
                d += load_u64(data, at + 24) * p2
                d = (d << r31 | d >> (whole - r31)) * p1
                at += 32
            state = (a << r1 | a >> (whole - r1)) + (b << r7 | b >> (whole - r7))
            state += (c << r12 | c >> (whole - r12)) + (d << r18 | d >> (whole - r18))
            for lane in (a, b, c, d):
                mixed = lane * p2
                mixed = (mixed << r31 | mixed >> (whole - r31)) * p1
                state = (state ^ mixed) * p1 + p4
        state += size
        while at + 8 <= end:
            mixed = load_u64(data, at) * p2
            state ^= (mixed << r31 | mixed >> (whole - r31)) * p1
            state = (state << r27 | state >> (whole - r27)) * p1 + p4
            at += 8
        if at + 4 <= end:
            state ^= (load_u64(data, at) & np.uint64(0xFFFFFFFF)) * p1
            state = (state << r23 | state >> (whole - r23)) * p2 + p3
            at += 4
        while at < end:
            state ^= np.uint64(data[at]) * p5
            state = (state << r11 | state >> (whole - r11)) * p1
            at += 1
        state = (state ^ (state >> np.uint64(33))) * p2
        state = (state ^ (state >> np.uint64(29))) * p3
        out[index] = state ^ (state >> np.uint64(32))
    return 0
