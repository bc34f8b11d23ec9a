"""FSST with numpy, for texts so small that the compiler would cost more: the symbol of every position, then a walk.

Which symbol begins at a byte depends on the bytes behind it and on the end of its string alone. So all positions are
looked up at once, and only the walk from symbol to symbol is a loop, of all strings side by side where there are many.
Arguments and results are those of the kernels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

_AT_ONCE = 1 << 15
_LONGEST = 8
_NUMBERS = 512
_ESCAPE = 255
_MANY = 64
"""Strings from which a step of all of them costs less in numpy than in Python."""

Ints = npt.NDArray[np.int64]
Entries = npt.NDArray[np.int16]
Marks = npt.NDArray[np.bool_]


def count(
    data: Any, offsets: Any, symbols: Any, hashed: Any, pairs: Any, singles: Any, masks: Any, ones: Any, twos: Any
) -> int:
    """`fsst.count`."""
    bounds = _sound(data, offsets)
    visited, entries = _walk(data, bounds, (symbols, hashed, pairs, singles, masks))
    first, last = int(bounds[0]), int(bounds[0]) + len(visited)
    entries = entries[visited].astype(np.int64)
    lengths, literals = entries >> 8, 256 + data[first:last][visited].astype(np.int64)
    numbers = np.where(lengths == 0, literals, entries & 255)
    begins = np.zeros(len(visited) + 1, np.bool_)
    begins[bounds - first] = True
    before = np.append(0, numbers[:-1]) * _NUMBERS
    follows, is_long = ~begins[:-1][visited], lengths > 1
    for target, found in (
        (ones, numbers),
        (ones, literals[is_long]),
        (twos, (before + numbers)[follows]),
        (twos, (before + literals)[follows & is_long]),
    ):
        target += np.bincount(found, minlength=len(target)).astype(target.dtype)
    return len(offsets) if len(bounds) == len(offsets) else -len(bounds)


def encode(
    data: Any, offsets: Any, symbols: Any, hashed: Any, pairs: Any, singles: Any, masks: Any, out: Any, targets: Any
) -> int:
    """`fsst.encode`."""
    bounds = _sound(data, offsets)
    visited, entries = _walk(data, bounds, (symbols, hashed, pairs, singles, masks))
    first, last = int(bounds[0]), int(bounds[0]) + len(visited)
    escapes = visited & (entries < 256)
    ends = _sums(visited.view(np.uint8) + escapes.view(np.uint8), bounds - first)
    too_long = 2 * (bounds[1:] - bounds[0]) > len(out)
    if too_long.any():
        return -1 - int(np.argmax(too_long))
    literals = data[first:last][escapes]
    places = np.flatnonzero(escapes[visited]) + np.arange(len(literals))
    is_code = np.ones(int(ends[-1]), np.bool_)
    is_code[places + 1] = False
    codes = out[: ends[-1]]
    codes[is_code] = entries.astype(np.uint8)[visited]
    codes[places], codes[places + 1] = 255, literals
    targets[: len(ends)] = ends
    return int(ends[-1]) if len(bounds) == len(offsets) else -len(bounds)


def _sound(data: Any, offsets: Any) -> Ints:
    """The offsets up to the first string whose offsets make no sense."""
    bad = (offsets[:-1] < 0) | (offsets[1:] < offsets[:-1]) | (offsets[1:] > len(data) - _LONGEST)
    num_strings = int(np.argmax(bad)) if bad.any() else len(bad)
    bounds: Ints = offsets[: num_strings + 1].astype(np.int64)
    return bounds if num_strings else np.zeros(1, np.int64)


def _sums(sizes: npt.NDArray[np.uint8], bounds: Ints) -> Ints:
    """The sum of `sizes` up to each bound; bounds ascend from 0 to the number of sizes."""
    sums = np.zeros(len(bounds), np.int64)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        sums[filled + 1] = np.add.reduceat(sizes, bounds[filled], dtype=np.int64)
    return np.cumsum(sums)


def _walk(data: Any, bounds: Ints, tables: tuple[Any, ...]) -> tuple[Marks, Entries]:
    """For each byte whether a code begins there, and which one would (`length << 8 | code`; below 256 a literal)."""
    entries = _entries(data, bounds, tables)
    steps = np.maximum(entries >> 8, 1).astype(np.uint8)
    begins = np.zeros(len(steps), np.bool_)
    at, ends = bounds[:-1] - bounds[0], bounds[1:] - bounds[0]
    while True:
        unfinished = at < ends
        at, ends = at[unfinished], ends[unfinished]
        if len(at) < _MANY:
            break
        begins[at] = True
        at = at + steps[at]
    _walk_each(at.tolist(), ends.tolist(), steps.tobytes(), begins)
    return begins, entries


def _walk_each(starts: list[int], ends: list[int], steps: bytes, begins: Marks) -> None:
    marks = begins.view(np.uint8).data
    for at, end in zip(starts, ends, strict=True):
        while at < end:
            marks[at] = 1
            at += steps[at]


def _entries(data: Any, bounds: Ints, tables: tuple[Any, ...]) -> Entries:
    """The entry of each position: the longest symbol that begins there and ends within the string."""
    symbols, hashed, pairs, singles, masks = tables
    # Empty slots have a symbol that is too long for every place.
    lengths = np.where(hashed == 0, _LONGEST + 1, hashed >> 8).astype(np.int8)
    symbols, lows = symbols[hashed & 255], masks[hashed >> 8]
    hashed, pairs = hashed.astype(np.int16), pairs.astype(np.int16)
    first, size = int(bounds[0]), int(bounds[-1] - bounds[0])
    rooms = _rooms(bounds)
    words: npt.NDArray[np.uint64] = np.ndarray((size,), "<u8", data, first, (1,))
    out = np.empty(size, np.int16)
    for begin in range(0, size, _AT_ONCE):
        here = slice(begin, begin + _AT_ONCE)
        word = words[here].astype(np.uint64)
        slots = (((word & masks[3]) * masks[9]) >> masks[10]).view(np.int64)
        fits = (lengths[slots] <= rooms[here]) & ((word ^ symbols[slots]) & lows[slots] == 0)
        out[here] = np.where(fits, hashed[slots], pairs[(word & masks[2]).view(np.int64)])
    # No pair begins at the last byte of a string.
    lasts = bounds[1:][np.diff(bounds) > 0] - 1
    out[lasts - first] = singles[data[lasts]]
    return out


def _rooms(bounds: Ints) -> npt.NDArray[np.int8]:
    """Bytes from each position to the end of its string, at most 8."""
    rooms = np.full(int(bounds[-1] - bounds[0]), _LONGEST, np.int8)
    for room in range(1, _LONGEST):
        rooms[(bounds[1:] - room - bounds[0])[np.diff(bounds) >= room]] = room
    return rooms


def decode(
    codes: npt.NDArray[np.uint8],
    offsets: npt.NDArray[Any],
    symbols: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.uint8], Ints] | None:
    """The strings' bytes and offsets; None for codes or offsets that make no sense. Arguments as of `fsst.decode`.

    `offsets` start anywhere in `codes`.
    """
    if int(offsets[0]) < 0 or int(offsets[-1]) > len(codes) or (offsets[1:] < offsets[:-1]).any():
        return None
    bounds = offsets.astype(np.int64)
    table = np.concatenate([symbols.astype("<u8").view(np.uint8), np.arange(256, dtype=np.uint8)])
    num_blocks = -(-int(bounds[-1] - bounds[0]) // _AT_ONCE)
    cuts = np.searchsorted(bounds, bounds[0] + np.arange(1, num_blocks) * _AT_ONCE)
    edges = np.unique(np.concatenate([[0], cuts, [len(bounds) - 1]])).tolist()
    parts, ends, done = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)], 0
    for first, last in pairwise(edges):
        found = _decode_block(codes[bounds[first] : bounds[last]], bounds[first : last + 1] - bounds[first], table, lengths)
        if found is None:
            return None
        parts.append(found[0])
        ends.append(found[1][1:] + done)
        done += len(found[0])
    return np.concatenate(parts), np.concatenate(ends)


def _decode_block(
    codes: npt.NDArray[np.uint8], bounds: Ints, table: npt.NDArray[np.uint8], lengths: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], Ints] | None:
    """Strings whose offsets begin at 0."""
    # In a run of 255 every other one escapes; no string begins with the byte of another one's escape.
    is_escape = codes == _ESCAPE
    begins = np.zeros(len(codes) + 1, np.bool_)
    begins[bounds] = True
    opens = is_escape & (begins[:-1] | ~np.append(False, is_escape[:-1])[: len(codes)])
    places = np.arange(len(codes))
    run = np.maximum.accumulate(np.where(opens, places, 0))
    escapes = is_escape & ((places - run) % 2 == 0)
    literal = np.zeros(len(codes) + 1, np.bool_)
    literal[1:] = escapes
    if (literal & begins).any():
        return None
    # A byte behind an escape is itself; 255 there neither escapes nor opens a run.
    literal = literal[:-1]
    sizes = np.where(literal, 1, np.where(escapes, 0, lengths[codes]))
    if (sizes[~escapes] == 0).any():
        return None
    starts = np.where(literal, 8 * 256 + codes.astype(np.int64), 8 * codes.astype(np.int64))
    stops = np.append(0, np.cumsum(sizes, dtype=np.int64))
    total = int(stops[-1])
    return table[np.repeat(starts - stops[:-1], sizes) + np.arange(total)], stops[bounds]
