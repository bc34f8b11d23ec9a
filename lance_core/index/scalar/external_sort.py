"""Values and row ids in index order, however many there are: sorted runs on this machine's disk, merged range by range.

::

    values arrive       3 1 2 | 9 1 7 | 4 8 5            each part fits the memory that may be used
    runs on disk        1 2 3   1 7 9   4 5 8            memory-mapped Arrow files
    borders             4       7                        from a sample of all runs
    merged              1 1 2 3 | 4 | 5 | 7 | 8 9        rows equal to a border need no sorting

What fits is sorted in memory and never reaches the disk. Equal values keep the order in which they came.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.index.base import ID, VALUE, gather
from lance_core.index.scalar.order import order_of
from lance_core.scratch import scratch_folder

_BYTES_PER_BYTE = 8
"""Sorting holds about this many times the bytes of what is sorted: values, words of them, orders, the result."""
_RANGES_PER_RUN = 4
"""While a range is merged, what was made of the one before is still being written."""
_SAMPLES_PER_RANGE = 64
_HANDED_ON_ROWS = 1 << 18

Part = tuple[Any, Any]
"""Values (an Arrow array) and their ids (uint64)."""


def in_order(batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, limit: int) -> Iterator[Part]:
    """All rows in index order, in parts; `limit` bytes of memory are used, about."""
    most = limit // _BYTES_PER_BYTE
    pending: list[pa.RecordBatch] = []
    size = 0
    with scratch_folder("sorting an index") as folder:
        runs: list[_Run] = []
        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            if size >= most:
                runs.append(_Run.write(folder / f"{len(runs)}.arrow", *_sorted(pending, value_type)))
                size = 0
        if not runs:
            yield _sorted(pending, value_type)
            return
        if pending:
            runs.append(_Run.write(folder / f"{len(runs)}.arrow", *_sorted(pending, value_type)))
        yield from _merged(runs, most // _RANGES_PER_RUN)


def _sorted(batches: list[pa.RecordBatch], value_type: pa.DataType) -> Part:
    """All rows of the batches in order; takes the batches out of the list."""
    values, ids = gather(batches, value_type)
    batches.clear()  # their memory is wanted for sorting
    order = order_of(values)
    return values.take(arrow_of(order)), ids[order]


@dataclass(frozen=True)
class _Run:
    """Rows in order, nulls first, in a file that is mapped."""

    values: Any
    ids: Any
    mapped: mmap.mmap

    @classmethod
    def write(cls, path: Path, values: Any, ids: Any) -> _Run:
        batch = pa.RecordBatch.from_arrays([values, arrow_of(ids)], [VALUE, ID])
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        found = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).get_batch(0)
        return cls(found.column(0), numpy_of(found.column(1)), mapped)

    def forget(self) -> None:
        """Give back the memory of pages that were read; they are read again where they are wanted again."""
        if sys.platform != "win32":
            self.mapped.madvise(mmap.MADV_DONTNEED)

    def part(self, start: int, end: int) -> Part:
        return self.values.slice(start, end - start), self.ids[start:end]


def _merged(runs: list[_Run], most: int) -> Iterator[Part]:
    starts = [run.values.null_count for run in runs]
    for run, nulls in zip(runs, starts, strict=True):
        yield from _handed_on(run, 0, nulls)
    for border in _borders(runs, most):
        lefts = [_first(run, start, border, is_behind=False) for run, start in zip(runs, starts, strict=True)]
        yield from _joined(runs, starts, lefts)
        rights = [_first(run, left, border, is_behind=True) for run, left in zip(runs, lefts, strict=True)]
        for run, left, right in zip(runs, lefts, rights, strict=True):
            yield from _handed_on(run, left, right)
        starts = rights
        for run in runs:
            run.forget()
    yield from _joined(runs, starts, [len(run.values) for run in runs])


def _borders(runs: list[_Run], most: int) -> Iterator[Any]:
    """Distinct values, ascending, between which about `most` bytes are; as arrays of one value."""
    num_bytes = sum(run.values.nbytes + run.ids.nbytes for run in runs)
    num_ranges = -(-num_bytes // most)
    samples = []
    for run in runs:
        present = len(run.values) - run.values.null_count
        step = max(1, present * len(runs) // (num_ranges * _SAMPLES_PER_RANGE))
        samples.append(run.values.take(arrow_of(np.arange(run.values.null_count, len(run.values), step))))
        run.forget()
    joined = pa.concat_arrays(samples)
    ordered = joined.take(arrow_of(order_of(joined)))
    last = None
    for number in range(1, num_ranges):
        border = ordered.slice(number * len(ordered) // num_ranges, 1)
        if len(border) and (last is None or _is_less(last, border)):
            yield border
            last = border


def _first(run: _Run, start: int, border: Any, *, is_behind: bool) -> int:
    """The first place from `start` on whose value is not less than the border, or is greater than it (`is_behind`)."""

    def passes(one: Any) -> bool:
        return _is_less(border, one) if is_behind else not _is_less(one, border)

    low, high = start, len(run.values)
    while low < high:
        middle = (low + high) // 2
        if passes(run.values.slice(middle, 1)):
            high = middle
        else:
            low = middle + 1
    return low


def _is_less(one: Any, other: Any) -> bool:
    """Whether a value comes before another; equal ones keep the order in which they are given."""
    return bool(order_of(pa.concat_arrays([other, one]))[0] == 1)


def _joined(runs: list[_Run], starts: list[int], ends: list[int]) -> Iterator[Part]:
    parts = [run.part(start, end) for run, start, end in zip(runs, starts, ends, strict=True) if end > start]
    if parts:
        yield _in_order([part[0] for part in parts], [part[1] for part in parts])


def _in_order(values: list[Any], ids: list[Any]) -> Part:
    joined = pa.concat_arrays(values)
    order = order_of(joined)
    return joined.take(arrow_of(order)), np.concatenate(ids)[order]


def _handed_on(run: _Run, start: int, end: int) -> Iterator[Part]:
    for first in range(start, end, _HANDED_ON_ROWS):
        yield run.part(first, min(end, first + _HANDED_ON_ROWS))
