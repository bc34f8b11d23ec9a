"""Many sets of rows as they are in a file, one roaring bitmap per fragment in each: found, checked, and read where they are.

::

    set 0 = fragment 2 {5, 65541}     containers: (block 2 << 16 | 0, an array of 1) (block 2 << 16 | 1, an array of 1)

A container holds the rows of one block: fragment << 16 | bits 16 to 31 of the offset. It is an array of the low sixteen
bits, ascending (1), 65,536 bits (2), or runs of (first, length - 1) (3). `data` has eight bytes to spare at its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel, load_u64

ARRAY, BITS, RUNS = 1, 2, 3


@kernel("in:u1 in:i8 i8 out:i8 out:u1 out:i4 out:i8 out:i8 -> i8")
def find_containers(
    data: Any, ends: Any, has_sizes: Any, blocks: Any, kinds: Any, counts: Any, places: Any, firsts: Any
) -> Any:
    """The containers of set s, which is in data[ends[s]:ends[s + 1]], are numbers firsts[s] to firsts[s + 1].

    `has_sizes`: an address map (u32 number of parts, each u32 fragment, u32 bytes), else a treemap (u64 number of parts,
    each u32 fragment). `counts` are their rows; the number of runs stands before these. Returns how many containers there
    are; empty outputs only count them. -1: the bytes are damaged, a fragment is there twice, or stands for all its rows.
    """
    found = np.int64(0)
    is_kept = len(blocks) > 0
    for number in range(len(ends) - 1):
        at, end = ends[number], ends[number + 1]
        if is_kept:
            firsts[number] = found
        width = np.int64(4) if has_sizes else np.int64(8)
        if end - at < width:
            return -1
        parts = np.int64(load_u64(data, at) & np.uint64(0xFFFFFFFF))
        if not has_sizes and np.int64(load_u64(data, at) >> np.uint64(32)) != 0:
            return -1
        at += width
        owner_before = np.int64(-1)
        for _ in range(parts):
            if end - at < 8:
                return -1
            owner, limit = np.int64(load_u64(data, at) & np.uint64(0xFFFFFFFF)), end
            at += 4
            if has_sizes:
                size = np.int64(load_u64(data, at) & np.uint64(0xFFFFFFFF))
                at += 4
                limit = at + size
                if size == 0 or limit > end:
                    return -1
            if owner <= owner_before or limit - at < 4:
                return -1
            owner_before = owner
            begin = at
            cookie = np.int64(load_u64(data, at) & np.uint64(0xFFFFFFFF))
            flags, num = np.int64(-1), np.int64(0)
            if cookie & 0xFFFF == 12347:
                num, flags = (cookie >> 16) + 1, at + 4
                at += 4 + (num + 7) // 8
            elif cookie == 12346:
                if limit - at < 8:
                    return -1
                num = np.int64(load_u64(data, at + 4) & np.uint64(0xFFFFFFFF))
                at += 8
            else:
                return -1
            head = at
            if num > 65536 or head + 4 * num > limit:
                return -1
            at = head + 4 * num
            offsets = np.int64(-1)
            if flags < 0 or num >= 4:
                offsets = at
                at += 4 * num
            if at > limit:
                return -1
            key_before = np.int64(-1)
            for index in range(num):
                word = np.int64(load_u64(data, head + 4 * index) & np.uint64(0xFFFFFFFF))
                key, members = word & 0xFFFF, (word >> 16) + 1
                if key <= key_before:
                    return -1
                key_before = key
                told = at - begin
                if offsets >= 0:
                    told = np.int64(load_u64(data, offsets + 4 * index) & np.uint64(0xFFFFFFFF))
                if told != at - begin:
                    return -1
                place, kind = at, np.int64(1)
                if flags >= 0 and data[flags + index // 8] >> np.uint8(index % 8) & 1:
                    kind = 3
                    if at + 2 > limit:
                        return -1
                    runs = np.int64(load_u64(data, at) & np.uint64(0xFFFF))
                    place = at + 2
                    at = place + 4 * runs
                    if at > limit or runs == 0:
                        return -1
                    last, members = np.int64(-2), np.int64(0)
                    for run in range(runs):
                        word = np.int64(load_u64(data, place + 4 * run) & np.uint64(0xFFFFFFFF))
                        if (word & 0xFFFF) <= last + 1 or (word & 0xFFFF) + (word >> 16) > 0xFFFF:
                            return -1
                        last = (word & 0xFFFF) + (word >> 16)
                        members += (word >> 16) + 1
                elif members <= 4096:
                    at += 2 * members
                    if at > limit:
                        return -1
                    last = np.int64(-1)
                    for item in range(members):
                        low = np.int64(data[place + 2 * item]) | np.int64(data[place + 2 * item + 1]) << 8
                        if low <= last:
                            return -1
                        last = low
                else:
                    kind = 2
                    at += 8192
                    if at > limit:
                        return -1
                    total = np.uint64(0)
                    for item in range(1024):
                        bits = load_u64(data, place + 8 * item)
                        bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
                        bits = (bits & np.uint64(0x3333333333333333)) + (
                            (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
                        )
                        bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                        total += (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)
                    if np.int64(total) != members:
                        return -1
                if is_kept:
                    if found >= len(blocks):
                        return -1
                    blocks[found], kinds[found] = owner << 16 | key, kind
                    counts[found], places[found] = members, place
                found += 1
            if has_sizes and at != limit:
                return -1
        if at != end:
            return -1
    if is_kept:
        firsts[len(ends) - 1] = found
    return found


@kernel("in:u1 in:i8 in:u1 in:i4 in:i8 i8 i8 out:u8 -> i8")
def expand_containers(
    data: Any, blocks: Any, kinds: Any, counts: Any, places: Any, first: Any, end: Any, out: Any
) -> Any:  # fmt: skip
    """The rows of containers `first` to `end`, one behind the other; returns their number. -1: `out` is too short."""
    found = np.int64(0)
    for number in range(first, end):
        high = np.uint64(blocks[number]) << np.uint64(16)
        place, count = places[number], np.int64(counts[number])
        if kinds[number] == 1:
            if found + count > len(out):
                return -1
            for item in range(count):
                low = np.uint64(data[place + 2 * item]) | np.uint64(data[place + 2 * item + 1]) << np.uint64(8)
                out[found] = high | low
                found += 1
        elif kinds[number] == 2:
            for item in range(1024):
                bits = load_u64(data, place + 8 * item)
                low = np.int64(64) * item
                while bits != 0:
                    if bits & np.uint64(1):
                        if found >= len(out):
                            return -1
                        out[found] = high | np.uint64(low)
                        found += 1
                    bits >>= np.uint64(1)
                    low += 1
        else:
            for run in range(np.int64(load_u64(data, place - 2) & np.uint64(0xFFFF))):
                word = np.int64(load_u64(data, place + 4 * run) & np.uint64(0xFFFFFFFF))
                if found + (word >> 16) + 1 > len(out):
                    return -1
                for low in range(word & 0xFFFF, (word & 0xFFFF) + (word >> 16) + 1):
                    out[found] = high | np.uint64(low)
                    found += 1
    return found


@kernel("in:i4 in:u8 in:u1 in:i8 in:i8 in:u1 in:i4 in:i8 out:i8 out:i4 out:u8 -> i8")
def count_held(
    sets: Any, rows: Any, data: Any, firsts: Any, blocks: Any, kinds: Any, counts: Any, places: Any,
    current: Any, cursors: Any, last: Any,
) -> Any:  # fmt: skip
    """Whether row rows[i] is in set sets[i], for each i; rows ascend, from call to call as well.

    Returns how many pairs there are (those that stand one behind the other for a set once), -1 when one is not held.
    `current`, `cursors`, `last` are the state of each set: its container, the place in it, its last row. At first they are
    `firsts`, 0, and a number that is no row.
    """
    found = np.int64(0)
    for index in range(len(sets)):
        number, row = np.int64(sets[index]), rows[index]
        if last[number] == row:
            continue
        last[number] = row
        block, low = np.int64(row >> np.uint64(16)), np.int64(row & np.uint64(0xFFFF))
        at, end = current[number], firsts[number + 1]
        if at < end and blocks[at] < block:
            while at < end and blocks[at] < block:
                at += 1
            current[number] = at
            cursors[number] = 0
        if at >= end or blocks[at] != block:
            return -1
        place = places[at]
        if kinds[at] == 2:
            if not data[place + (low >> 3)] >> np.uint8(low & 7) & 1:
                return -1
        else:
            cursor, count = np.int64(cursors[number]), np.int64(counts[at])
            if kinds[at] == 1:
                value = np.int64(-1)
                while cursor < count:
                    value = np.int64(data[place + 2 * cursor]) | np.int64(data[place + 2 * cursor + 1]) << 8
                    if value >= low:
                        break
                    cursor += 1
                if cursor >= count or value != low:
                    return -1
            else:
                begin, count = np.int64(0), np.int64(load_u64(data, place - 2) & np.uint64(0xFFFF))
                while cursor < count:
                    word = np.int64(load_u64(data, place + 4 * cursor) & np.uint64(0xFFFFFFFF))
                    begin = word & 0xFFFF
                    if begin + (word >> 16) >= low:
                        break
                    cursor += 1
                if cursor >= count or begin > low:
                    return -1
            cursors[number] = cursor
        found += 1
    return found
