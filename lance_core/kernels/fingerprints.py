"""Documents as numbers that can be compared: each occurrence of a token adds a hash of token and position.

::

    a token's key         64 bits of its bytes, well mixed; odd
    "fox fox dog"         2 key(fox) + key(dog)                                          without places
                          mix(key(fox), 0) + mix(key(fox), 1) + mix(key(dog), 2)         with places

Sums are modulo 2^64 and do not ask for an order, so texts and the lists of an index come to the same number when they say
the same; two that differ do so by chance once in about 2^64 times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel, load_u64


@kernel("in:u1 in:i8 in:u8 out:u8 -> i8")
def key_tokens(data: Any, offsets: Any, masks: Any, keys: Any) -> Any:
    """The key of each token, `offsets[t]` to `offsets[t + 1]` of `data`, which goes on for eight bytes more."""
    for token in range(len(offsets) - 1):
        start, size = offsets[token], offsets[token + 1] - offsets[token]
        mixed = np.uint64(size) * np.uint64(0x9E3779B97F4A7C15)
        at = np.int64(0)
        while at < size:
            mixed ^= load_u64(data, start + at) & masks[min(8, size - at)]
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed = (mixed ^ (mixed >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)
            at += 8
        keys[token] = mixed | np.uint64(1)
    return 0


@kernel("in:u8 in:i4 in:i8 u1 u1 out:u4 out:u8 -> i8")
def mark_texts(keys: Any, codes: Any, ends: Any, with_places: Any, has_places: Any, lengths: Any, marks: Any) -> Any:
    """The mark and the number of tokens of each text: its pieces `codes` end at `ends[d]`; a piece with key 0 is no token.

    `has_places`: pieces stand one after the other; else all at place 0.
    """
    begin = np.int64(0)
    for document in range(len(ends)):
        length, mark = np.int64(0), np.uint64(0)
        for at in range(begin, ends[document]):
            key = keys[codes[at]]
            if key == np.uint64(0):
                continue
            length += 1
            if with_places != 0:
                place = np.uint64(at - begin) if has_places != 0 else np.uint64(0)
                key += place * np.uint64(0x9E3779B97F4A7C15)
                key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                key ^= key >> np.uint64(31)
            mark += key
        lengths[document], marks[document] = length, mark
        begin = ends[document]
    return 0


@kernel("in:u8 in:i8 in:u4 in:u4 in:u4 u1 out:u8 out:u8 -> i8")
def mark_lists(
    keys: Any, ends: Any, documents: Any, counts: Any, places: Any, with_places: Any, lengths: Any, marks: Any
) -> Any:
    """Add lists to the marks and lengths of their documents: list t has the key `keys[t]` and ends at `ends[t]`.

    -1: a document is not there, -2: it has a token no times, -3: places do not ascend, or are too few.
    """
    begin, at = np.int64(0), np.int64(0)
    for token in range(len(ends)):
        key = keys[token]
        for index in range(begin, ends[token]):
            document, count = documents[index], np.int64(counts[index])
            if document >= len(marks):
                return -1
            if count == 0:
                return -2
            lengths[document] += np.uint64(count)
            if with_places == 0:
                marks[document] += key * np.uint64(count)
                continue
            if count > len(places) - at:
                return -3
            before = np.uint32(0)
            for _ in range(count):
                place = places[at]
                if place < before:
                    return -3
                before = place
                at += 1
                mixed = key + np.uint64(place) * np.uint64(0x9E3779B97F4A7C15)
                mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                marks[document] += mixed ^ (mixed >> np.uint64(31))
        begin = ends[token]
    return 0
