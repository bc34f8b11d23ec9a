"""Many small reads of one local file into one piece of memory: no object for each, neighbours in one call.

::

    asked    [0,10) [12,20) [900,910)      gap 64
    reads    [0,20) [900,910)              one `preadv` each, back to back in 30 bytes of memory
    answer   starts 0, 12, 20              sizes 10, 8, 10

The planning is pure; reading is the loop over the reads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lance_core.arrays import Ints
from lance_core.errors import CorruptFileError
from lance_core.fetch import JointBuffers, ManyRanges

SCATTER_GAP = 8 << 10
"""Copying this many bytes too many takes as long as one more call."""


_MIN_HELD = 256 << 10
_MAX_HELD = 4 << 20
"""A thread keeps memory between these sizes for its next read."""

_LOCAL = threading.local()


class ScatterPlan(NamedTuple):
    """The reads (int64, ascending), and where each range begins once they are back to back."""

    starts: Ints
    ends: Ints
    positions: Ints


def is_ascending(ranges: ManyRanges) -> bool:
    """Whether the ranges are sorted and disjoint, so that they can be planned."""
    return len(ranges) > 0 and bool((ranges.starts[1:] >= ranges.ends[:-1]).all())


def plan_scatter(ranges: ManyRanges, *, gap: int = SCATTER_GAP) -> ScatterPlan:
    """Join ascending ranges that are at most `gap` bytes apart."""
    starts, ends = ranges.starts, ranges.ends
    opens = np.ones(len(starts), np.bool_)
    np.greater(starts[1:] - ends[:-1], gap, out=opens[1:])
    firsts = np.flatnonzero(opens)
    read_starts, read_ends = starts[firsts], ends[np.append(firsts[1:] - 1, len(ends) - 1)]
    sizes = read_ends - read_starts
    shifts = np.cumsum(sizes) - sizes - read_starts
    return ScatterPlan(read_starts, read_ends, starts + shifts[np.cumsum(opens) - 1])


def read_scattered(fd: int, path: str, asked: Sequence[ManyRanges]) -> Iterator[JointBuffers]:
    """Ascending ranges of an open file, one list after the other. CorruptFileError when the file ends before one does.

    Each is read when it is requested. The memory of an answer that nobody holds any more is used for the next.
    """
    size = os.fstat(fd).st_size
    for item in asked:
        if int(item.starts[0]) < 0 or int(item.ends[-1]) > size:
            raise CorruptFileError(
                f"{path!r} ends at byte {size}, but bytes up to {int(item.ends[-1])} were requested",
                cure="The file is truncated, or the metadata that refers to it is damaged.",
            )
        yield _read(fd, path, item)


def _read(fd: int, path: str, ranges: ManyRanges) -> JointBuffers:
    plan = plan_scatter(ranges)
    sizes = plan.ends - plan.starts
    out = _memory(int(sizes.sum()))
    at, read = 0, os.preadv
    for start, wanted in zip(plan.starts.tolist(), sizes.tolist(), strict=True):
        end = at + wanted
        got = read(fd, (out[at:end],), start)
        while got < wanted:
            more = read(fd, (out[at + got : end],), start + got)
            if not more:
                raise CorruptFileError(f"{path!r} became shorter while it was read")
            got += more
        at = end
    return JointBuffers(out, plan.positions, ranges.ends - ranges.starts)


def _memory(size: int) -> memoryview:
    """Memory of this thread. Fresh memory costs more than the reading: the kernel hands it out page by page."""
    held: bytearray | None = getattr(_LOCAL, "memory", None)
    if held is not None and len(held) >= size and _is_free(held):
        return memoryview(held)[:size]
    fresh = bytearray(size if size > _MAX_HELD else max(size * 5 // 4, _MIN_HELD))
    if size <= _MAX_HELD:
        _LOCAL.memory = fresh
    return memoryview(fresh)[:size]


def _is_free(memory: bytearray) -> bool:
    """Whether no buffer, array or slice still looks into the memory: only then may a bytearray change its size."""
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True
