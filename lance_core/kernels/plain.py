"""Kernels with numpy alone, for arrays so small that the compiler would cost more: distinct values, runs, bit packing.

Each takes the arguments of its kernel, and gives the same numbers and the same arrays. Where a kernel returns less than 0,
so does the plain function, and what either has written by then means nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
_BLOCK = 1024
_BLOCKS_AT_ONCE = 256


def number_words(values: Any, factor: Any, shift: Any, limit: Any, slots: Any, codes: Any, firsts: Any) -> int:
    """`distinct.number_words`: a sort instead of a hash table."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    found = len(first)
    if found > limit:
        return -1
    order = np.argsort(first, kind="stable")
    ranks = np.empty(found, np.uint32)
    ranks[order] = np.arange(found, dtype=np.uint32)
    firsts[:found], codes[:] = first[order], ranks[inverse.reshape(-1)]
    return found


def number_strings(
    offsets: Any, data: Any, masks: Any, factor: Any, shift: Any, limit: Any, slots: Any, codes: Any, firsts: Any
) -> int:
    """`distinct.number_strings`: a dictionary of bytes."""
    bounds, last = offsets.tolist(), len(data) - 8
    if any(start < 0 or end < start or end > last for start, end in pairwise(bounds)):
        return -2
    whole = data.tobytes()
    known: dict[bytes, int] = {}
    numbers: list[int] = []
    for index, (start, end) in enumerate(pairwise(bounds)):
        value = whole[start:end]
        number = known.get(value)
        if number is None:
            number = len(known)
            if number == limit:
                return -1
            known[value] = number
            firsts[number] = index
        numbers.append(number)
    codes[: len(numbers)] = numbers
    return len(known)


def copy_runs(data: Any, starts: Any, sizes: Any, targets: Any, out: Any) -> int:
    """`bytes.copy_runs`: every byte by its place."""
    bad = (sizes < 0) | (starts < 0) | (targets < 0)
    bad |= (starts > len(data) - sizes) | (targets > len(out) - sizes)
    if bad.any():
        return -1 - int(np.argmax(bad))
    within = _within(sizes)
    out[np.repeat(targets, sizes) + within] = data[np.repeat(starts, sizes) + within]
    return len(starts)


def _within(sizes: Ints) -> Ints:
    """0, 1, ... for each size: `[2, 3]` gives `[0, 1, 0, 1, 2]`."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    within: Ints = np.arange(total, dtype=np.int64) - np.repeat(ends - sizes, sizes)
    return within


def pack(values: Any, counts: Any, starts: Any, widths: Any, scratch: Any, out: Any) -> int:
    """`bits.pack`: blocks of one width at a time."""
    bits = values.itemsize * 8
    lanes = _BLOCK // bits
    begins = np.cumsum(counts) - counts
    sizes = np.where(widths > bits, counts, widths * lanes)
    bad = (widths < 0) | (widths > bits + 1) | (counts < 0) | (counts > _BLOCK) | (begins + counts > len(values))
    bad |= (starts < 0) | (starts > len(out) - sizes)
    if bad.any():
        return -1 - int(np.argmax(bad))
    for width in np.unique(widths).tolist():
        chosen = np.flatnonzero(widths == width)
        for first in range(0, len(chosen), _BLOCKS_AT_ONCE):
            numbers = chosen[first : first + _BLOCKS_AT_ONCE]
            if width > bits:
                for begin, count, start in zip(begins[numbers], counts[numbers], starts[numbers], strict=True):
                    out[start : start + count] = values[begin : begin + count]
            elif width:
                blocks = np.zeros((len(numbers), _BLOCK), values.dtype)
                for block, begin, count in zip(blocks, begins[numbers], counts[numbers], strict=True):
                    block[:count] = values[begin : begin + count]
                places = starts[numbers][:, None] + np.arange(width * lanes)
                out[places.reshape(-1)] |= _packed(blocks, width).reshape(-1)
    return int(counts.sum())


def _packed(blocks: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Blocks of 1,024 values, shape (blocks, 1024), as words, shape (blocks, width, lanes)."""
    kind = blocks.dtype.type
    bits = blocks.itemsize * 8
    lanes = _BLOCK // bits
    out = np.zeros((len(blocks), width, lanes), blocks.dtype)
    for row in range(bits):
        first = _ORDER[row // 8] * 16 + (row % 8) * 128
        values = blocks[:, first : first + lanes]
        word, shift = divmod(row * width, bits)
        out[:, word] |= values << kind(shift)
        if shift + width > bits:
            out[:, word + 1] |= values >> kind(bits - shift)
    return out


def crc32c_of(data: Any, table: Any) -> int:
    """`text.crc32c_of`."""
    steps, state = table.tolist(), 0xFFFFFFFF
    for byte in data.tobytes():
        state = steps[(state ^ byte) & 0xFF] ^ (state >> 8)
    return int(state ^ 0xFFFFFFFF)
