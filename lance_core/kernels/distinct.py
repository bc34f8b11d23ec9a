"""Numbering distinct values in order of first appearance, up to a limit.

::

    words  7 9 7 7 5   ->   codes 0 1 0 0 2, firsts 0 1 4, returns 3          (-1 when more than `limit` are distinct)

The hash table `slots` has a power of two of entries, more than twice `limit`, filled with -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import plain
from lance_core.kernels.jit import kernel, load_u64

FACTOR = 0x9E3779B97F4A7C15


@kernel("in:u8 u8 u8 i8 out:i4 out:u4 out:u4 -> i8", plain=plain.number_words)
def number_words(values: Any, factor: Any, shift: Any, limit: Any, slots: Any, codes: Any, firsts: Any) -> Any:
    """Number eight-byte words. `shift` is 64 less the bits of the table's size."""
    last_slot = len(slots) - 1
    found = 0
    for index in range(len(values)):
        value = values[index]
        slot = np.int64(((value ^ (value >> np.uint64(32))) * factor) >> shift)
        while True:
            code = slots[slot]
            if code < 0:
                if found == limit:
                    return -1
                slots[slot] = found
                firsts[found] = index
                codes[index] = found
                found += 1
                break
            if values[firsts[code]] == value:
                codes[index] = code
                break
            slot = (slot + 1) & last_slot
    return found


def _work_of_strings(offsets: Any, data: Any, *_: Any) -> float:
    return 40 * len(offsets) + len(data) / 32


@kernel(
    "in:O in:u1 in:u8 u8 u8 i8 out:i4 out:u4 out:u4 -> i8",
    O=("i4", "i8"),
    plain=plain.number_strings,
    weight=_work_of_strings,
)
def number_strings(
    offsets: Any, data: Any, masks: Any, factor: Any, shift: Any, limit: Any, slots: Any, codes: Any, firsts: Any
) -> Any:
    """Number byte strings; `data` has 8 bytes to spare, `masks[k]` keeps the low k bytes of a word. -2 for bad offsets."""
    last_slot = len(slots) - 1
    found = 0
    for index in range(len(offsets) - 1):
        start, end = offsets[index], offsets[index + 1]
        if start < 0 or end < start or end > len(data) - 8:
            return -2
        size = end - start
        mixed = factor
        at = 0
        while at < size:
            mixed = (mixed ^ (load_u64(data, start + at) & masks[min(8, size - at)])) * factor
            mixed ^= mixed >> np.uint64(29)
            at += 8
        slot = np.int64((mixed * factor) >> shift)
        while True:
            code = slots[slot]
            if code < 0:
                if found == limit:
                    return -1
                slots[slot] = found
                firsts[found] = index
                codes[index] = found
                found += 1
                break
            other = offsets[firsts[code]]
            same = offsets[firsts[code] + 1] - other == size
            at = 0
            while same and at < size:
                differ = load_u64(data, start + at) ^ load_u64(data, other + at)
                same = differ & masks[min(8, size - at)] == 0
                at += 8
            if same:
                codes[index] = code
                break
            slot = (slot + 1) & last_slot
    return found
