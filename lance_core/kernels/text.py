"""Texts cut into tokens, tokens numbered, occurrences grouped by token: the loops behind full-text indices.

::

    "ab, c"  with letters marked in `classes`     spans (0, 2) (4, 1)
    tokens 0 1 0 of documents 0 0 1               grouped: token 0 -> documents 0, 1; token 1 -> document 0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import plain, plain_postings
from lance_core.kernels.jit import kernel, load_u64


@kernel("in:u1 in:u4 -> i8", plain=plain.crc32c_of, weight=2)
def crc32c_of(data: Any, table: Any) -> Any:
    """CRC-32C with the table of all bytes."""
    state = np.uint32(0xFFFFFFFF)
    for index in range(len(data)):
        state = table[(state ^ np.uint32(data[index])) & np.uint32(0xFF)] ^ (state >> np.uint32(8))
    return np.int64(state ^ np.uint32(0xFFFFFFFF))


@kernel("in:O in:u1 in:u1 out:i8 out:i4 out:i8 -> i8", O=("i4", "i8"))
def split_spans(offsets: Any, data: Any, classes: Any, starts: Any, sizes: Any, ends: Any) -> Any:
    """Runs of UTF-8 characters with a class that is not 0; `ends[d]` counts spans up to document d. -1: bad text."""
    found = np.int64(0)
    for document in range(len(offsets) - 1):
        at, end = np.int64(offsets[document]), np.int64(offsets[document + 1])
        if at < 0 or end < at or end > len(data) - 8:
            return -1
        begin = np.int64(-1)
        while at < end:
            byte = np.int64(data[at])
            width = np.int64(1)
            point = byte
            if byte >= 0xC0:
                if byte < 0xE0:
                    width, point = np.int64(2), byte & 0x1F
                elif byte < 0xF0:
                    width, point = np.int64(3), byte & 0x0F
                else:
                    width, point = np.int64(4), byte & 0x07
                for place in range(1, width):
                    point = point << 6 | np.int64(data[at + place]) & 0x3F
            if point < len(classes) and classes[point] != 0:
                if begin < 0:
                    begin = at
            elif begin >= 0:
                starts[found], sizes[found] = begin, at - begin
                found += 1
                begin = np.int64(-1)
            at += width
        if begin >= 0:
            starts[found], sizes[found] = begin, end - begin
            found += 1
        ends[document] = found
    return found


@kernel("in:O in:u1 i8 i8 u1 out:i8 out:i4 out:i8 -> i8", O=("i4", "i8"))
def ngram_spans(offsets: Any, data: Any, least: Any, most: Any, only_prefix: Any, starts: Any, sizes: Any, ends: Any) -> Any:
    """Windows of `least` to `most` characters. -1: bad text, -2: `starts` is too short."""
    found = np.int64(0)
    for document in range(len(offsets) - 1):
        at, end = np.int64(offsets[document]), np.int64(offsets[document + 1])
        if at < 0 or end < at or end > len(data) - 8:
            return -1
        while at < end:
            stop, taken = at, np.int64(0)
            while stop < end and taken < most:
                stop += 1
                while stop < end and data[stop] & 0xC0 == 0x80:
                    stop += 1
                taken += 1
                if taken >= least:
                    if found >= len(starts):
                        return -2
                    starts[found], sizes[found] = at, stop - at
                    found += 1
            if only_prefix != 0:
                break
            at += 1
            while at < end and data[at] & 0xC0 == 0x80:
                at += 1
        ends[document] = found
    return found


@kernel("in:u1 in:i8 in:i4 i8 in:u8 u8 u8 i8 out:i4 out:i4 out:i8 -> i8")
def number_spans(
    data: Any, starts: Any, sizes: Any, count: Any, masks: Any, factor: Any, shift: Any, limit: Any, slots: Any,
    codes: Any, firsts: Any,
) -> Any:  # fmt: skip
    """Number distinct byte strings in order of first appearance; -1 when there are more than `limit`."""
    last_slot = len(slots) - 1
    found = 0
    for index in range(count):
        start, size = starts[index], np.int64(sizes[index])
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
            other = starts[firsts[code]]
            same = np.int64(sizes[firsts[code]]) == size
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


@kernel("in:i4 in:i4 in:i8 i8 u1 out:i4 out:u4 out:u4 out:u4 -> i8")
def keep_tokens(
    known: Any, codes: Any, ends: Any, first: Any, has_places: Any, tokens: Any, documents: Any, places: Any, lengths: Any
) -> Any:
    """Drop tokens whose number in `known` is negative; documents are numbered from `first`, empty ones are not numbered."""
    kept, begin, document = np.int64(0), np.int64(0), np.int64(first)
    for index in range(len(ends)):
        length = np.int64(0)
        for at in range(begin, ends[index]):
            token = known[codes[at]]
            if token >= 0:
                tokens[kept] = token
                documents[kept] = document
                places[kept] = at - begin if has_places != 0 else 0
                kept += 1
                length += 1
        lengths[index] = length
        if length > 0:
            document += 1
        begin = ends[index]
    return kept


@kernel("in:i4 in:u4 in:u4 out:i8 out:u4 out:u4 -> i8")
def scatter_by_token(tokens: Any, documents: Any, places: Any, cursors: Any, by_document: Any, by_place: Any) -> Any:
    """A counting sort: occurrences of a token stand together, in the order of documents. `cursors`: where each begins."""
    has_places = len(places) > 0
    for index in range(len(tokens)):
        at = cursors[tokens[index]]
        cursors[tokens[index]] = at + 1
        by_document[at] = documents[index]
        if has_places:
            by_place[at] = places[index]
    return 0


@kernel("in:i8 in:u4 out:u4 out:u4 out:i8 -> i8")
def count_runs(starts: Any, by_document: Any, documents: Any, counts: Any, ends: Any) -> Any:
    """Per token (occurrences `starts[t]` to `starts[t + 1]`) its documents and how often; `ends[t]` counts up to t."""
    found = np.int64(0)
    for token in range(len(starts) - 1):
        at, end = starts[token], starts[token + 1]
        while at < end:
            document = by_document[at]
            begin = at
            while at < end and by_document[at] == document:
                at += 1
            documents[found], counts[found] = document, at - begin
            found += 1
        ends[token] = found
    return found


@kernel("in:u4 in:u4 in:f4 f4 f4 out:f4 -> i8", plain=plain_postings.add_scores)
def add_scores(documents: Any, counts: Any, norms: Any, weight: Any, saturation: Any, scores: Any) -> Any:
    """scores[d] += weight * saturation * count / (count + norms[d]). -1: a document that does not exist."""
    for index in range(len(documents)):
        document = documents[index]
        if document >= len(norms):
            return -1
        count = np.float32(counts[index])
        scores[document] += weight * (saturation * count / (count + norms[document]))
    return 0


@kernel("in:u4 in:i8 in:u4 i8 out:i8 out:u1 -> i8")
def mark_similar(points: Any, offsets: Any, word: Any, most: Any, row: Any, marks: Any) -> Any:
    """Mark words (code points, one after the other) at most so many insertions, deletions, replacements from `word`.

    `row` has one place more than `word`.
    """
    size = len(word)
    found = np.int64(0)
    for index in range(len(offsets) - 1):
        start, end = offsets[index], offsets[index + 1]
        marks[index] = 0
        if abs((end - start) - size) > most:
            continue
        for place in range(size + 1):
            row[place] = place
        best = np.int64(0)
        for at in range(start, end):
            diagonal = row[0]
            row[0] = at - start + 1
            best = row[0]
            for place in range(size):
                cost = diagonal + (0 if points[at] == word[place] else 1)
                diagonal = row[place + 1]
                cost = min(cost, diagonal + 1, row[place] + 1)
                row[place + 1] = cost
                best = min(best, cost)
            if best > most:
                break
        if best <= most and row[size] <= most:
            marks[index] = 1
            found += 1
    return found
