"""Posting lists packed into blocks of 128 documents, and back.

::

    full block   f32 best score, u32 first, u8 width, deltas (0 first), u8 width, counts          4 lanes, LSB first
    last block   f32 best score, varint deltas (the first absolute), varint counts
                 up to format version 1: f32 best score, documents as u32, counts as u32

128 values of `width` bits are in four lanes: value i in lane i % 4, word w of lane j at the u32 of number 4 w + j.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import plain_postings
from lance_core.kernels.jit import kernel

BLOCK = 128
GROUP = 32
"""Blocks under one entry of the second level of impacts."""


@kernel("in:i8 in:u4 in:u4 in:f4 out:u4 out:f4 out:u1 out:i8 -> i8")
def encode_postings(
    ends: Any, documents: Any, counts: Any, weights: Any, scratch: Any, best: Any, out: Any, block_ends: Any
) -> Any:
    """Blocks of every list, one after the other; `weights` are the documents' scores without idf, `best` the blocks' best.

    The first four bytes of each block are left for the score. Returns the number of blocks.
    """
    at, block, begin = np.int64(0), np.int64(0), np.int64(0)
    for token in range(len(ends)):
        end = ends[token]
        for first in range(begin, end, 128):
            many = min(np.int64(128), end - first)
            score = np.float32(0)
            for index in range(first, first + many):
                if weights[index] > score:
                    score = weights[index]
            best[block] = score
            at += 4
            if many == 128:
                value = np.uint64(documents[first])
                for place in range(4):
                    out[at] = np.uint8((value >> np.uint64(8 * place)) & np.uint64(255))
                    at += 1
                for part in range(2):
                    mixed = np.uint32(0)
                    for index in range(128):
                        if part == 1:
                            scratch[index] = counts[first + index]
                        elif index == 0:
                            scratch[index] = 0
                        else:
                            scratch[index] = documents[first + index] - documents[first + index - 1]
                        mixed |= scratch[index]
                    width = np.int64(0)
                    while mixed != 0:
                        width += 1
                        mixed >>= np.uint32(1)
                    out[at] = np.uint8(width)
                    at += 1
                    for lane in range(4):
                        held, bits, target = np.uint64(0), np.int64(0), at + 4 * lane
                        for step in range(32):
                            held |= np.uint64(scratch[4 * step + lane]) << np.uint64(bits)
                            bits += width
                            if bits >= 32:
                                for place in range(4):
                                    out[target + place] = np.uint8((held >> np.uint64(8 * place)) & np.uint64(255))
                                target += 16
                                held >>= np.uint64(32)
                                bits -= 32
                    at += 16 * width
            else:
                for part in range(2):
                    for index in range(first, first + many):
                        if part == 1:
                            small = np.uint64(counts[index])
                        elif index == first:
                            small = np.uint64(documents[index])
                        else:
                            small = np.uint64(documents[index] - documents[index - 1])
                        while small >= np.uint64(128):
                            out[at] = np.uint8((small & np.uint64(127)) | np.uint64(128))
                            at += 1
                            small >>= np.uint64(7)
                        out[at] = np.uint8(small)
                        at += 1
            block_ends[block] = at
            block += 1
        begin = end
    return block


@kernel("in:u1 in:i8 in:i8 i8 out:u4 out:u4 -> i8", plain=plain_postings.decode_postings, weight=2)
def decode_postings(data: Any, starts: Any, firsts: Any, is_fixed: Any, documents: Any, counts: Any) -> Any:
    """Blocks of one list or more: block b is at `starts[b]` to `starts[b + 1]`, and has the documents `firsts[b]` to
    `firsts[b + 1]`, 1 to 128. `is_fixed`: last blocks are of u32. 0, or less for damaged bytes."""
    for block in range(len(starts) - 1):
        at, end = starts[block] + 4, starts[block + 1]
        done = firsts[block]
        many = firsts[block + 1] - done
        if many <= 0 or many > 128 or at > end:
            return -1
        if many == 128:
            if at + 5 > end:
                return -2
            value = np.uint64(0)
            for place in range(4):
                value |= np.uint64(data[at + place]) << np.uint64(8 * place)
            at += 4
            for part in range(2):
                if at >= end:
                    return -3
                width = np.int64(data[at])
                at += 1
                if width > 32 or at + 16 * width > end:
                    return -4
                mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
                for lane in range(4):
                    held, bits, source = np.uint64(0), np.int64(0), at + 4 * lane
                    for step in range(32):
                        if bits < width:
                            for place in range(4):
                                held |= np.uint64(data[source + place]) << np.uint64(bits + 8 * place)
                            source += 16
                            bits += 32
                        if part == 0:
                            documents[done + 4 * step + lane] = np.uint32(held & mask)
                        else:
                            counts[done + 4 * step + lane] = np.uint32(held & mask)
                        held >>= np.uint64(width)
                        bits -= width
                at += 16 * width
            total = value
            for index in range(done, done + 128):
                total += np.uint64(documents[index])
                documents[index] = np.uint32(total)
            if total >= np.uint64(1 << 32):
                return -5
        elif is_fixed:
            if at + 8 * many != end:
                return -9
            for part in range(2):
                for index in range(done, done + many):
                    value = np.uint64(0)
                    for place in range(4):
                        value |= np.uint64(data[at + place]) << np.uint64(8 * place)
                    at += 4
                    if part == 0:
                        documents[index] = np.uint32(value)
                    else:
                        counts[index] = np.uint32(value)
        else:
            total = np.uint64(0)
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


@kernel("in:i8 in:u4 in:u4 in:u1 out:i8 out:i8 out:u1 out:i8 -> i8")
def encode_impacts(
    ends: Any, documents: Any, counts: Any, length_codes: Any, pair_counts: Any, pair_lengths: Any, out: Any, entry_ends: Any
) -> Any:
    """Per list: what the best documents of each block look like, then of each 32 blocks. Returns the number of entries.

    An entry: varint last document, varint pairs, per pair varint (count step - 1) << 1 | given, and the length step if given
    (else it is 1). Pairs ascend in count and in length code: no document of the block is better than all of them.
    """
    at, entry, begin = np.int64(0), np.int64(0), np.int64(0)
    for token in range(len(ends)):
        end = ends[token]
        for level in range(2):
            span = np.int64(128) if level == 0 else np.int64(128 * 32)
            for first in range(begin, end, span):
                last = min(end, first + span)
                pairs = np.int64(0)
                for index in range(first, last):
                    count, code = np.int64(counts[index]), np.int64(length_codes[documents[index]])
                    is_worse = False
                    kept = np.int64(0)
                    for place in range(pairs):
                        if pair_counts[place] >= count and pair_lengths[place] <= code:
                            is_worse = True
                            break
                    if is_worse:
                        continue
                    for place in range(pairs):
                        if not (pair_counts[place] <= count and pair_lengths[place] >= code):
                            pair_counts[kept], pair_lengths[kept] = pair_counts[place], pair_lengths[place]
                            kept += 1
                    spot = kept
                    while spot > 0 and pair_counts[spot - 1] > count:
                        pair_counts[spot], pair_lengths[spot] = pair_counts[spot - 1], pair_lengths[spot - 1]
                        spot -= 1
                    pair_counts[spot], pair_lengths[spot] = count, code
                    pairs = kept + 1
                before_count, before_length = np.int64(0), np.int64(0)
                for place in range(-2, pairs):
                    if place == -2:
                        small = np.uint64(documents[last - 1])
                    elif place == -1:
                        small = np.uint64(pairs)
                    else:
                        step = pair_lengths[place] - before_length
                        small = np.uint64(pair_counts[place] - before_count - 1) << np.uint64(1)
                        if step != 1:
                            small |= np.uint64(1)
                    while small >= np.uint64(128):
                        out[at] = np.uint8((small & np.uint64(127)) | np.uint64(128))
                        at += 1
                        small >>= np.uint64(7)
                    out[at] = np.uint8(small)
                    at += 1
                    if place >= 0:
                        step = pair_lengths[place] - before_length
                        if step != 1:
                            out[at] = np.uint8(step)
                            at += 1
                        before_count, before_length = pair_counts[place], pair_lengths[place]
                entry_ends[entry] = at
                entry += 1
        begin = end
    return entry


@kernel("in:i8 in:u4 in:i8 in:u4 out:u4 out:u1 out:i8 out:i8 -> i8")
def encode_positions(
    ends: Any, counts: Any, starts: Any, places: Any, scratch: Any, out: Any, block_starts: Any, token_ends: Any
) -> Any:
    """Per list and block: the documents' place steps in groups of 128 (u8 width, packed), the rest as varints.

    `starts[t]`: where the places of token t begin; each document's steps start again. `block_starts` count from the token's
    first byte. Returns the number of blocks.
    """
    at, block, begin = np.int64(0), np.int64(0), np.int64(0)
    for token in range(len(ends)):
        end, token_at, source = ends[token], at, starts[token]
        for first in range(begin, end, 128):
            block_starts[block] = at - token_at
            block += 1
            held_values = np.int64(0)
            for index in range(first, min(end, first + 128)):
                before = np.uint32(0)
                for _ in range(counts[index]):
                    scratch[held_values] = places[source] - before
                    before = places[source]
                    source += 1
                    held_values += 1
                    if held_values == 128:
                        mixed = np.uint32(0)
                        for step in range(128):
                            mixed |= scratch[step]
                        width = np.int64(0)
                        while mixed != 0:
                            width += 1
                            mixed >>= np.uint32(1)
                        out[at] = np.uint8(width)
                        at += 1
                        for lane in range(4):
                            held, bits, target = np.uint64(0), np.int64(0), at + 4 * lane
                            for step in range(32):
                                held |= np.uint64(scratch[4 * step + lane]) << np.uint64(bits)
                                bits += width
                                if bits >= 32:
                                    for place in range(4):
                                        out[target + place] = np.uint8((held >> np.uint64(8 * place)) & np.uint64(255))
                                    target += 16
                                    held >>= np.uint64(32)
                                    bits -= 32
                        at += 16 * width
                        held_values = np.int64(0)
            for index in range(held_values):
                small = scratch[index]
                while small >= np.uint32(128):
                    out[at] = np.uint8((small & np.uint32(127)) | np.uint32(128))
                    at += 1
                    small >>= np.uint32(7)
                out[at] = np.uint8(small)
                at += 1
        token_ends[token] = at
        begin = end
    return block


@kernel("in:u1 in:i8 in:i8 in:u4 out:u4 -> i8", plain=plain_postings.decode_positions, weight=2)
def decode_positions(data: Any, starts: Any, firsts: Any, counts: Any, places: Any) -> Any:
    """All places of the blocks of one list or more (see `decode_postings`), of one document after the other. Returns how
    many there are, or less than 0 for damaged bytes."""
    done = np.int64(0)
    for block in range(len(starts) - 1):
        at, end = starts[block], starts[block + 1]
        first, last = firsts[block], firsts[block + 1]
        total = np.int64(0)
        for index in range(first, last):
            total += np.int64(counts[index])
        if total > len(places) - done:
            return -1
        left, target = total, done
        while left >= 128:
            if at >= end:
                return -2
            width = np.int64(data[at])
            at += 1
            if width > 32 or at + 16 * width > end:
                return -3
            mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
            for lane in range(4):
                held, bits, source = np.uint64(0), np.int64(0), at + 4 * lane
                for step in range(32):
                    if bits < width:
                        for place in range(4):
                            held |= np.uint64(data[source + place]) << np.uint64(bits + 8 * place)
                        source += 16
                        bits += 32
                    places[target + 4 * step + lane] = np.uint32(held & mask)
                    held >>= np.uint64(width)
                    bits -= width
            at += 16 * width
            target += 128
            left -= 128
        for index in range(target, target + left):
            small, shift = np.uint64(0), np.int64(0)
            while True:
                if at >= end or shift > 28:
                    return -4
                byte = np.uint64(data[at])
                at += 1
                small |= (byte & np.uint64(127)) << np.uint64(shift)
                shift += 7
                if byte < np.uint64(128):
                    break
            places[index] = np.uint32(small)
        if at != end:
            return -5
        for index in range(first, last):
            before = np.uint32(0)
            for _ in range(counts[index]):
                before = before + places[done]
                places[done] = before
                done += 1
    return done
