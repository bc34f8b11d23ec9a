"""Move byte strings: copy runs to new positions, select strings by number.

::

    gather   data "redblue", offsets [0, 3, 7], numbers [1, 0, 1]   ->   "blueredblue", offsets [0, 4, 7, 11]
"""

from __future__ import annotations

from typing import Any

from lance_core.kernels import plain
from lance_core.kernels.jit import kernel, load_u64, store_u64

SLACK = 8
"""Spare bytes that `gather_strings` needs behind its data and its output."""


@kernel("in:u1 in:i8 in:i8 in:i8 out:u1 -> i8", plain=plain.copy_runs)
def copy_runs(data: Any, starts: Any, sizes: Any, targets: Any, out: Any) -> Any:
    """Copy `data[starts[i] : starts[i] + sizes[i]]` to `out[targets[i]:]`; -1 - i for a run outside either array."""
    for run in range(len(starts)):
        start, size, target = starts[run], sizes[run], targets[run]
        if size < 0 or start < 0 or target < 0 or start > len(data) - size or target > len(out) - size:
            return -1 - run
        for index in range(size):
            out[target + index] = data[start + index]
    return len(starts)


@kernel("in:i8 in:u4 out:O -> i8", O=("i4", "i8"))
def gather_offsets(offsets: Any, numbers: Any, out: Any) -> Any:
    """Offsets of the strings `numbers` of a list with `offsets`; returns the bytes in all, -1 - i for a bad number i."""
    at = 0
    out[0] = 0
    last = len(offsets) - 1
    for index in range(len(numbers)):
        number = numbers[index]
        if number >= last:
            return -1 - index
        at += offsets[number + 1] - offsets[number]
        out[index + 1] = at
    return at


@kernel("in:i8 in:u1 in:u4 in:O out:u1 -> i8", O=("i4", "i8"))
def gather_strings(offsets: Any, data: Any, numbers: Any, targets: Any, out: Any) -> Any:
    """Copy the strings `numbers` to the places that `gather_offsets` found; both byte arrays have `SLACK` to spare."""
    for index in range(len(numbers)):
        start, target = offsets[numbers[index]], targets[index]
        size = targets[index + 1] - target
        if size < 0 or start < 0 or start + size > len(data) - 8 or target < 0 or target + size > len(out) - 8:
            return -1 - index
        copied = 0
        while copied < size:
            store_u64(out, target + copied, load_u64(data, start + copied))
            copied += 8
    return len(numbers)
