"""FSST: strings as codes of a static table of up to 255 symbols of 1 to 8 bytes; code 255 escapes one literal byte.

::

    symbols  0 "http://"  1 "www."  2 ".com"        "http://www.x.com"  ->  00 01 ff 78 02

The encoder finds the longest symbol at a position through three tables: `hashed` (symbols of three bytes and more, one
for each hash of the first three bytes), `pairs` (the first two bytes) and `singles`. An entry is `length << 8 | code`,
0 for none. (Boncz, Neumann, Leis: FSST, VLDB 2020.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_core.kernels import plain_fsst
from lance_core.kernels.jit import kernel, load_u64, store_u64

ESCAPE = 255
MAX_SYMBOLS = 255
MAX_EXPANSION = 8
"""A code stands for at most this many bytes."""
_HASH_SLOTS = 2048
_ROUNDS = 5

U64 = npt.NDArray[np.uint64]


class Tables(NamedTuple):
    """What the encoder looks up; made by `build_tables`."""

    symbols: U64
    hashed: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int64]
    singles: npt.NDArray[np.int64]


@kernel("in:u1 in:O in:u8 in:u1 out:u1 out:O -> i8", O=("i4", "i8"))
def decode(codes: Any, offsets: Any, symbols: Any, lengths: Any, out: Any, targets: Any) -> Any:
    """Spell out the strings of `offsets`; returns the bytes in all, -1 - i for a string i with a bad code.

    `symbols` and `lengths` have 256 entries (length 0 = no such code); `out` has 8 bytes for each code and 8 to spare.
    """
    if len(out) < 8 * len(codes) + 8 or len(symbols) < 256 or len(lengths) < 256:
        return -1
    at = 0
    targets[0] = 0
    for index in range(len(offsets) - 1):
        position, end = offsets[index], offsets[index + 1]
        if position < 0 or end < position or end > len(codes):
            return -1 - index
        while position < end:
            code = codes[position]
            position += 1
            if code != 255:
                length = lengths[code]
                if length == 0:
                    return -1 - index
                store_u64(out, at, symbols[code])
                at += length
            else:
                if position >= end:
                    return -1 - index
                out[at] = codes[position]
                at += 1
                position += 1
        targets[index + 1] = at
    return at


@kernel("in:u1 in:W in:i8 in:i8 in:i8 in:u8 in:u1 out:u1 out:W -> i8", W=("u4", "u8"))
def decode_chunks(
    data: Any, words: Any, starts: Any, sizes: Any, counts: Any, symbols: Any, lengths: Any, out: Any, targets: Any
) -> Any:
    """Spell out the strings of many chunks in one pass; returns the bytes in all, -1 - i for a damaged chunk i.

    Chunk i is at `starts[i]` (a multiple of the word) with `sizes[i]` bytes: `counts[i]` + 1 offsets from its start, then
    codes. `words` is `data` as offset words. `out` has 8 bytes for each byte behind the offsets and 8 to spare.
    """
    width = words.itemsize
    room = 0
    for chunk in range(len(starts)):
        start, size, head = starts[chunk], sizes[chunk], (counts[chunk] + 1) * width
        if counts[chunk] < 0 or size < head or start < 0 or start % width != 0 or start > len(data) - size:
            return -1 - chunk
        room += size - head
    if len(out) < 8 * room + 8 or len(targets) < counts.sum() + 1 or len(symbols) < 256 or len(lengths) < 256:
        return -1
    at, done = 0, 0
    targets[0] = 0
    for chunk in range(len(starts)):
        start, size, base = starts[chunk], sizes[chunk], starts[chunk] // width
        begin = np.int64(words[base])
        if begin < (counts[chunk] + 1) * width:
            return -1 - chunk
        for index in range(counts[chunk]):
            end = np.int64(words[base + index + 1])
            if end < begin or end > size:
                return -1 - chunk
            position, stop = start + begin, start + end
            while position < stop:
                code = data[position]
                position += 1
                if code != 255:
                    length = lengths[code]
                    if length == 0:
                        return -1 - chunk
                    store_u64(out, at, symbols[code])
                    at += length
                else:
                    if position >= stop:
                        return -1 - chunk
                    out[at] = data[position]
                    at += 1
                    position += 1
            begin = end
            done += 1
            targets[done] = at
    return at


@kernel("in:u1 in:O in:u8 in:i8 in:i8 in:i8 in:u8 out:u1 out:O -> i8", O=("i4", "i8"), plain=plain_fsst.encode, weight=0.25)
def encode(
    data: Any, offsets: Any, symbols: Any, hashed: Any, pairs: Any, singles: Any, masks: Any, out: Any, targets: Any
) -> Any:
    """Encode the strings of `offsets`; `data` has 8 bytes to spare, `out` holds twice the bytes (behind the result it is
    scratch). Returns bytes in all, -1 - i where the offsets of string i make no sense or `out` is too short for it.

    A code begins where the one before it ends, so each step waits for memory. Three thirds of the strings are encoded in
    turns, step by step and without branches, each into room of its own, and then put together.
    """
    num, total = len(offsets) - 1, np.int64(0)
    targets[0] = 0
    if num < 1:
        return 0
    for index in range(num):
        position, end = offsets[index], offsets[index + 1]
        if position < 0 or end < position or end > len(data) - 8:
            return -1 - index
        total += end - position
        if 2 * total > len(out):
            return -1 - index
    first, mask2, mask3, factor, shift = np.int64(offsets[0]), masks[2], masks[3], masks[9], masks[10]
    a_stop = np.int64(0)
    while 3 * (offsets[a_stop] - first) < total:
        a_stop += 1
    b_stop = a_stop
    while 3 * (offsets[b_stop] - first) < 2 * total:
        b_stop += 1
    a_index, b_index, c_index, c_stop = np.int64(0), a_stop, b_stop, np.int64(num)
    a_position, b_position, c_position = first, np.int64(offsets[b_index]), np.int64(offsets[c_index])
    a_at, b_at, c_at = np.int64(0), 2 * (b_position - first), 2 * (c_position - first)
    done, is_wide = np.int64(0), True
    while is_wide:
        is_wide = a_index < a_stop and b_index < b_stop and c_index < c_stop
        if is_wide:
            a_last, b_last, c_last = offsets[a_index + 1] - 8, offsets[b_index + 1] - 8, offsets[c_index + 1] - 8
            while a_position <= a_last and b_position <= b_last and c_position <= c_last:
                a_word, b_word, c_word = load_u64(data, a_position), load_u64(data, b_position), load_u64(data, c_position)
                a_entry = hashed[((a_word & mask3) * factor) >> shift]
                b_entry = hashed[((b_word & mask3) * factor) >> shift]
                c_entry = hashed[((c_word & mask3) * factor) >> shift]
                a_pair, b_pair, c_pair = pairs[a_word & mask2], pairs[b_word & mask2], pairs[c_word & mask2]
                a_differs = (a_word ^ symbols[a_entry & 255]) & masks[a_entry >> 8]
                b_differs = (b_word ^ symbols[b_entry & 255]) & masks[b_entry >> 8]
                c_differs = (c_word ^ symbols[c_entry & 255]) & masks[c_entry >> 8]
                a_entry = a_entry if a_differs == 0 and a_entry != 0 else a_pair
                b_entry = b_entry if b_differs == 0 and b_entry != 0 else b_pair
                c_entry = c_entry if c_differs == 0 and c_entry != 0 else c_pair
                # 1 where there is no symbol: -1 is the code of a literal, which follows. Else the next code goes there.
                a_none, b_none, c_none = np.int64(a_entry == 0), np.int64(b_entry == 0), np.int64(c_entry == 0)
                out[a_at], out[a_at + 1] = (a_entry - a_none) & 255, a_word & np.uint64(255)
                out[b_at], out[b_at + 1] = (b_entry - b_none) & 255, b_word & np.uint64(255)
                out[c_at], out[c_at + 1] = (c_entry - c_none) & 255, c_word & np.uint64(255)
                a_at, b_at, c_at = a_at + 1 + a_none, b_at + 1 + b_none, c_at + 1 + c_none
                a_position += (a_entry >> 8) + a_none
                b_position += (b_entry >> 8) + b_none
                c_position += (c_entry >> 8) + c_none
        for third in range(3):
            if third == 0:
                begin, index, stop, position, at = np.int64(0), a_index, a_stop, a_position, a_at
            elif third == 1:
                begin, index, stop, position, at = 2 * (offsets[a_stop] - first), b_index, b_stop, b_position, b_at
            else:
                begin, index, stop, position, at = 2 * (offsets[b_stop] - first), c_index, c_stop, c_position, c_at
            # The ends of strings; all that is left when one third is done.
            while index < stop:
                end = np.int64(offsets[index + 1])
                if is_wide and end - position >= 8:
                    break
                while position < end:
                    word, room = load_u64(data, position), end - position
                    entry = hashed[((word & mask3) * factor) >> shift]
                    length = entry >> 8
                    if length == 0 or length > room or ((word ^ symbols[entry & 255]) & masks[length]) != 0:
                        entry = pairs[word & mask2]
                        if entry >> 8 > room:
                            entry = singles[data[position]]
                        length = entry >> 8
                    if length == 0:
                        out[at], out[at + 1] = 255, data[position]
                        at += 2
                        position += 1
                    else:
                        out[at] = entry & 255
                        at += 1
                        position += length
                index += 1
                targets[index] = at - begin
            if third == 0:
                a_index, a_position, a_at = index, position, at
            elif third == 1:
                b_index, b_position, b_at = index, position, at
            else:
                c_index, c_position, c_at = index, position, at
            if not is_wide:
                if third > 0:
                    for place in range(at - begin):
                        out[done + place] = out[begin + place]
                    for number in range(a_stop if third == 1 else b_stop, stop):
                        targets[number + 1] += done
                done += at - begin
    return done


@kernel("in:u1 in:i8 in:u8 in:i8 in:i8 in:i8 in:u8 out:u4 out:u4 -> i8", plain=plain_fsst.count, weight=0.12)
def count(
    data: Any, offsets: Any, symbols: Any, hashed: Any, pairs: Any, singles: Any, masks: Any, ones: Any, twos: Any
) -> Any:
    """Count how often each symbol (number: code, or 256 + literal byte) and each pair of neighbours is used."""
    for index in range(len(offsets) - 1):
        position, end = offsets[index], offsets[index + 1]
        if position < 0 or end < position or end > len(data) - 8:
            return -1 - index
        before = -1
        while position < end:
            word = load_u64(data, position)
            room = end - position
            entry = hashed[((word & masks[3]) * masks[9]) >> masks[10]]
            length = entry >> 8
            if length == 0 or length > room or ((word ^ symbols[entry & 255]) & masks[length]) != 0:
                entry = pairs[word & masks[2]]
                if entry >> 8 > room:
                    entry = singles[data[position]]
                length = entry >> 8
            literal = 256 + data[position]
            number = literal if length == 0 else entry & 255
            ones[number] += 1
            if before >= 0:
                twos[before * 512 + number] += 1
            if length > 1:
                ones[literal] += 1
                if before >= 0:
                    twos[before * 512 + literal] += 1
            before = number
            position += max(length, 1)
    return len(offsets)


def masks() -> U64:
    """Masks of 0 to 8 low bytes, then the hash's factor and shift (numbers the kernels need as unsigned)."""
    low = [(1 << 8 * size) - 1 for size in range(9)]
    return np.array([*low, 0x9E3779B97F4A7C15, 64 - _HASH_SLOTS.bit_length() + 1], np.uint64)


def build_tables(symbols: U64, lengths: npt.NDArray[np.int64]) -> tuple[Tables, npt.NDArray[np.int64]]:
    """Tables for symbols in order of merit, and which of them found a place (numbers into the arguments).

    Codes are given in that order. A symbol of three bytes and more whose hash is taken is left out.
    """
    special = masks()
    hashed = np.zeros(_HASH_SLOTS, np.int64)
    pairs = np.zeros(65536, np.int64)
    singles = np.zeros(256, np.int64)
    slots = ((symbols & special[3]) * special[9]) >> special[10]
    kept: list[int] = []
    for number, (symbol, length, slot) in enumerate(zip(symbols.tolist(), lengths.tolist(), slots.tolist(), strict=True)):
        if len(kept) == MAX_SYMBOLS or (length >= 3 and hashed[slot]):
            continue
        entry = length << 8 | len(kept)
        if length >= 3:
            hashed[slot] = entry
        elif length == 2:
            pairs[symbol] = entry
        else:
            singles[symbol] = entry
        kept.append(number)
    chosen = np.array(kept, np.int64)
    by_low_byte = singles[np.arange(65536) & 255]
    full = np.zeros(256, np.uint64)
    full[: len(kept)] = symbols[chosen]
    return Tables(full, hashed, np.where(pairs > 0, pairs, by_low_byte), singles), chosen


def train(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> tuple[U64, npt.NDArray[np.int64], Tables]:
    """Find symbols for a sample of strings (`data` has 8 bytes to spare): (symbols, lengths, the encoder's tables).

    Five rounds: encode the sample with the table so far, count symbols and neighbours, keep the 255 symbols (old ones and
    neighbours joined) that cover most bytes.
    """
    symbols, lengths = np.empty(0, np.uint64), np.empty(0, np.int64)
    tables, _ = build_tables(symbols, lengths)
    special = masks()
    for _ in range(_ROUNDS):
        ones, twos = np.zeros(512, np.uint32), np.zeros(512 * 512, np.uint32)
        count(data, offsets, *tables, special, ones, twos)
        symbols, lengths = _candidates(ones, twos, symbols, lengths)
        tables, kept = build_tables(symbols, lengths)
        symbols, lengths = symbols[kept], lengths[kept]
    return symbols, lengths, tables


def _candidates(
    ones: npt.NDArray[np.uint32], twos: npt.NDArray[np.uint32], symbols: U64, lengths: npt.NDArray[np.int64]
) -> tuple[U64, npt.NDArray[np.int64]]:
    """Used symbols and joined neighbours, best gain (uses times bytes) first."""
    all_symbols = np.zeros(512, np.uint64)
    all_lengths = np.ones(512, np.int64)
    all_symbols[: len(symbols)], all_lengths[: len(lengths)] = symbols, lengths
    all_symbols[256:] = np.arange(256, dtype=np.uint64)
    used = np.flatnonzero(ones)
    joined = np.flatnonzero(twos > 1)
    left, right = joined // 512, joined % 512
    room = all_lengths[left] < 8
    joined, left, right = joined[room], left[room], right[room]
    shift = (all_lengths[left] * 8).astype(np.uint64)
    both = all_symbols[left] | (all_symbols[right] << shift)
    values = np.concatenate([all_symbols[used], both])
    sizes = np.concatenate([all_lengths[used], np.minimum(all_lengths[left] + all_lengths[right], 8)])
    # A literal costs two bytes: a single byte that has a code of its own saves more than its length says.
    weights = np.where(sizes == 1, 2, sizes)
    gains = np.concatenate([ones[used], twos[joined]]).astype(np.int64) * weights
    order = np.lexsort((sizes, values))
    values, sizes, gains = values[order], sizes[order], gains[order]
    first = np.append(True, (values[1:] != values[:-1]) | (sizes[1:] != sizes[:-1]))[: len(values)]
    starts = np.flatnonzero(first)
    summed = np.add.reduceat(gains, starts) if len(starts) else gains
    best = np.argsort(-summed, kind="stable")[: 2 * MAX_SYMBOLS]
    return values[starts][best], sizes[starts][best]
