"""Values and row ids in index order, however many there are: sorted runs on this machine's disk, merged range by range.

::

    values arrive       3 1 2 | 9 1 7 | 4 8 5            each part fits the memory that may be used
    runs on disk        1 2 3   1 7 9   4 5 8            each in blocks of some rows, read one by one
    borders             4       7                        from the blocks' first values
    merged              1 1 2 3 | 4 | 5 | 7 | 8 9        rows equal to a border need no sorting

What fits is sorted in memory and never reaches the disk. Equal values keep the order in which they came.

The order of values in indices: nulls first, then ascending; floats by their bits, -NaN < -inf < -0.0 < 0.0 < inf < NaN.

::

    order_of([2, null, 1])  ->  [1, 2, 0]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.index.base import ID, VALUE, gather
from lance_core.kernels.sort import WORD, Words, order_of_words, words_of
from lance_core.scratch import BatchFile, scratch_folder

_BYTES_PER_BYTE = 8
"""Sorting holds about this many times the bytes of what is sorted: values, words of them, orders, the result."""
_RANGES_PER_RUN = 4
"""While a range is merged, what was made of the one before is still being written."""
_BLOCKS_PER_RANGE = 64
_HANDED_ON_BLOCKS = 16

Part = tuple[Any, Any]
"""Values (an Arrow array) and their ids (uint64)."""


def in_order(batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, limit: int) -> Iterator[Part]:
    """All rows in index order, in parts; `limit` bytes of memory are used, about."""
    most = limit // _BYTES_PER_BYTE
    pending: list[pa.RecordBatch] = []
    size = 0
    with scratch_folder("sorting an index") as folder:
        runs: list[_Run] = []

        def put_down() -> None:
            path = folder / f"{len(runs)}.arrow"
            block_bytes = most // (_RANGES_PER_RUN * _BLOCKS_PER_RANGE)
            runs.append(_Run.write(path, *_sorted(pending, value_type), block_bytes=block_bytes))

        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            if size >= most:
                put_down()
                size = 0
        if not runs:
            yield _sorted(pending, value_type)
            return
        if pending:
            put_down()
        yield from _merged(runs, most // _RANGES_PER_RUN)


def _sorted(batches: list[pa.RecordBatch], value_type: pa.DataType) -> Part:
    """All rows of the batches in order; takes the batches out of the list."""
    values, ids = gather(batches, value_type)
    batches.clear()  # their memory is wanted for sorting
    order = order_of(values)
    return values.take(arrow_of(order)), ids[order]


@dataclass(frozen=True)
class _Run:
    """Rows in order, nulls first, in a file of blocks of `block_rows` rows (the last may have fewer)."""

    file: BatchFile
    num_rows: int
    num_nulls: int
    num_bytes: int
    block_rows: int
    firsts: Any
    """The first value of each block."""

    @classmethod
    def write(cls, path: Path, values: Any, ids: Any, *, block_bytes: int) -> _Run:
        batch = pa.RecordBatch.from_arrays([values, arrow_of(ids)], [VALUE, ID])
        rows = max(1, block_bytes * len(values) // max(1, batch.nbytes))
        starts = range(0, len(values), rows)
        file = BatchFile.write(path, batch.schema, (batch.slice(start, rows) for start in starts))
        firsts = values.take(arrow_of(np.arange(0, len(values), rows)))
        return cls(file, len(values), values.null_count, batch.nbytes, rows, firsts)

    def parts(self, start: int, end: int) -> Iterator[Part]:
        """The rows of a range, block by block."""
        while start < end:
            number, at = divmod(start, self.block_rows)
            found = self.file.get(number).slice(at, end - start)
            yield found.column(0), numpy_of(found.column(1))
            start += len(found)

    def first(self, start: int, border: Any, *, is_behind: bool) -> int:
        """The first row from `start` on whose value is not less than the border, or is greater than it (`is_behind`)."""
        number = _first(self.firsts, -(-start // self.block_rows), border, is_behind=is_behind) - 1
        if (number + 1) * self.block_rows <= start:
            return start
        values = self.file.get(number).column(0)
        first = number * self.block_rows
        return first + _first(values, max(0, start - first), border, is_behind=is_behind)


def _merged(runs: list[_Run], most: int) -> Iterator[Part]:
    starts = [run.num_nulls for run in runs]
    for run, nulls in zip(runs, starts, strict=True):
        yield from _handed_on(run, 0, nulls)
    for border in _borders(runs, most):
        lefts = [run.first(start, border, is_behind=False) for run, start in zip(runs, starts, strict=True)]
        yield from _joined(runs, starts, lefts)
        rights = [run.first(left, border, is_behind=True) for run, left in zip(runs, lefts, strict=True)]
        for run, left, right in zip(runs, lefts, rights, strict=True):
            yield from _handed_on(run, left, right)
        starts = rights
    yield from _joined(runs, starts, [run.num_rows for run in runs])


def _borders(runs: list[_Run], most: int) -> Iterator[Any]:
    """Distinct values, ascending, between which about `most` bytes are; as arrays of one value."""
    num_ranges = -(-sum(run.num_bytes for run in runs) // most)
    joined = pa.concat_arrays([run.firsts.drop_null() for run in runs])
    ordered = joined.take(arrow_of(order_of(joined)))
    last = None
    for number in range(1, num_ranges):
        border = ordered.slice(number * len(ordered) // num_ranges, 1)
        if len(border) and (last is None or _is_less(last, border)):
            yield border
            last = border


def _first(values: Any, start: int, border: Any, *, is_behind: bool) -> int:
    """The first place from `start` on whose value is not less than the border, or is greater than it (`is_behind`)."""

    def passes(one: Any) -> bool:
        return _is_less(border, one) if is_behind else not _is_less(one, border)

    low, high = min(start, len(values)), len(values)
    while low < high:
        middle = (low + high) // 2
        if passes(values.slice(middle, 1)):
            high = middle
        else:
            low = middle + 1
    return low


def _is_less(one: Any, other: Any) -> bool:
    """Whether a value comes before another; equal ones keep the order in which they are given."""
    return bool(order_of(pa.concat_arrays([other, one]))[0] == 1)


def _joined(runs: list[_Run], starts: list[int], ends: list[int]) -> Iterator[Part]:
    parts = [part for run, start, end in zip(runs, starts, ends, strict=True) for part in run.parts(start, end)]
    if parts:
        values, ids = _together(parts)
        del parts  # as large as what is sorted
        order = order_of(values)
        yield values.take(arrow_of(order)), ids[order]


def _together(parts: list[Part]) -> Part:
    return pa.concat_arrays([values for values, _ in parts]), np.concatenate([ids for _, ids in parts])


def _handed_on(run: _Run, start: int, end: int) -> Iterator[Part]:
    step = _HANDED_ON_BLOCKS * run.block_rows
    for first in range(start, end, step):
        yield _together([*run.parts(first, min(end, first + step))])


pc: Any = compute  # the stubs know only some of what the kernels take
Order = npt.NDArray[np.int64]
_SIGN = np.uint64(1 << 63)
_BLOCK = 1 << 16


def order_of(values: Any) -> Order:
    """The positions of an Arrow array's values in index order; equal values keep theirs."""
    if values.null_count == 0:
        return _order_of_present(values)
    nulls = numpy_of(values.is_null(), may_copy=True)
    present = np.flatnonzero(~nulls)
    return np.concatenate([np.flatnonzero(nulls), present[_order_of_present(values.drop_null())]])


def _order_of_present(values: Any) -> Order:
    keys = integer_keys(values)
    if keys is not None:
        words = keys.view(np.uint64)
        words ^= _SIGN
        return order_of_words(words, may_overwrite=True)
    if _is_text(values.type):
        return _order_of_texts(values)
    found: Order = numpy_of(pc.sort_indices(values)).astype(np.int64)
    return found


def _order_of_texts(values: Any) -> Order:
    """By the sixteen bytes behind what all begin with; what these do not tell apart is distinguished by its distinct
    values."""
    texts = _Texts.of(values)
    at, first = texts.behind_common_start()
    second = texts.words(at + WORD)
    is_told = texts.are_told_by(at + 2 * WORD)
    del texts  # as large as what is sorted
    order = order_of_words(second, may_overwrite=is_told)
    order = order[order_of_words(first[order], may_overwrite=True)]
    if is_told:
        return order
    is_same = _repeats(first, order) & _repeats(second, order)
    del first, second
    tied = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
    if len(tied):
        run = np.append(0, np.cumsum(~is_same))[tied].astype(np.uint64)
        among = order_of_words(_ranks(values.take(arrow_of(order[tied]))))
        order[tied] = order[tied[among[order_of_words(run[among])]]]
    return order


def _repeats(words: Any, order: Order) -> Any:
    ordered = words[order]
    return ordered[1:] == ordered[:-1]


def _ranks(values: Any) -> Any:
    """Numbers that order as the values do, one per distinct value."""
    coded = values.dictionary_encode()
    ranks = np.empty(len(coded.dictionary), np.uint64)
    ranks[numpy_of(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks), dtype=np.uint64)
    return ranks[numpy_of(coded.indices)]


@dataclass(frozen=True)
class _Texts:
    """Strings or byte strings without nulls: their bytes with a word to spare, and `offsets` less `base` into these."""

    data: npt.NDArray[np.uint8]
    offsets: Any
    base: int

    @classmethod
    def of(cls, values: Any) -> _Texts:
        _, offsets, data = values.buffers()
        is_wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
        width = np.dtype(np.int64 if is_wide else np.int32)
        ends = np.zeros(1, width)
        if len(values):
            ends = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize)
        first, last = int(ends[0]), int(ends[-1])
        body = np.frombuffer(data, np.uint8, last - first, first) if last > first else np.empty(0, np.uint8)
        return cls(np.concatenate([body, np.zeros(WORD, np.uint8)]), ends, first)

    def behind_common_start(self) -> tuple[int, Words]:
        """How many bytes (whole words) all texts have in common at their start, and the words behind them."""
        lengths = np.diff(self.offsets)
        shortest = int(lengths.min()) if len(lengths) else 0
        at = 0
        while True:
            words = self.words(at)
            if shortest < at + WORD or int(words.min()) != int(words.max()):
                return at, words
            at += WORD

    def words(self, at: int) -> Words:
        """The word at a place of each text."""
        found = np.empty(len(self.offsets) - 1, np.uint64)
        for start in range(0, len(found), _BLOCK):
            block = found[start : start + _BLOCK]
            places = self.offsets[start : start + len(block) + 1].astype(np.int64) - (self.base - at)
            lengths = np.diff(places) - at
            block[:] = words_of(self.data, np.minimum(places[:-1], len(self.data) - WORD), lengths)
        return found

    def are_told_by(self, size: int) -> bool:
        """Whether the first bytes tell all texts apart: none is longer, none has a zero byte (short ones are filled)."""
        lengths = np.diff(self.offsets)
        return len(lengths) == 0 or (int(lengths.max()) <= size and bool(self.data[:-WORD].all()))


def integer_keys(values: Any) -> Any:
    """Whole numbers (int64) that order as values without nulls do, equal where they are the same; None for other types."""
    t = values.type
    if pa.types.is_floating(t):
        return float_keys(values)
    if pa.types.is_unsigned_integer(t):
        return (numpy_of(values).astype(np.uint64) ^ _SIGN).view(np.int64)
    if pa.types.is_signed_integer(t):
        return numpy_of(values).astype(np.int64)
    if pa.types.is_temporal(t) and t.bit_width in (32, 64):
        return numpy_of(values.view(pa.int64() if t.bit_width == 64 else pa.int32())).astype(np.int64)
    return None


def is_change(ordered: Any) -> Any:
    """Whether each value of an ordered array (but the first) is another than the one before it; bool."""
    nulls = ordered.null_count
    present = ordered.slice(nulls)
    keys = integer_keys(present)
    if keys is not None:
        changes = keys[1:] != keys[:-1]
    else:
        changes = numpy_of(pc.not_equal(present.slice(1), present.slice(0, max(0, len(present) - 1))), may_copy=True)
    border = np.ones(1 if nulls and len(present) else 0, np.bool_)
    return np.concatenate([np.zeros(max(0, nulls - 1), np.bool_), border, changes])


def float_keys(values: Any) -> npt.NDArray[np.int64]:
    """Integers that order as the bits of floats do (what is under nulls is anything)."""
    width = values.type.bit_width // 8
    floats = np.frombuffer(values.buffers()[1], f"f{width}", len(values), values.offset * width) if len(values) else ()
    bits = np.asarray(floats, f"f{width}").view(f"i{width}")
    keys: npt.NDArray[np.int64] = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(np.int64, copy=False)
    return keys


def extremes(values: Any) -> tuple[Any, Any]:
    """The smallest and largest value (Arrow scalars) that is not null; nulls when there is none."""
    present = values.drop_null() if values.null_count else values
    if len(present) == 0:
        nothing = pa.scalar(None, values.type)
        return nothing, nothing
    if pa.types.is_floating(values.type):
        numbers = numpy_of(present)
        low, high = numbers.min(), numbers.max()
        if low == low and low and high:
            return pa.scalar(low, values.type), pa.scalar(high, values.type)
        # Not a number, or a zero, of which there are two: the bits tell.
        keys = float_keys(present)
        return present[int(keys.argmin())], present[int(keys.argmax())]
    try:
        both = pc.min_max(present)
        return both["min"], both["max"]
    except pa.ArrowNotImplementedError:
        order = order_of(present)
        return present[int(order[0])], present[int(order[-1])]


def _is_text(data_type: pa.DataType) -> bool:
    t = pa.types
    return any(test(data_type) for test in (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary))


def is_ordered(data_type: pa.DataType) -> bool:
    """Whether an index can sort values of a type."""
    t = pa.types
    tests = (
        t.is_boolean, t.is_integer, t.is_floating, t.is_string, t.is_large_string, t.is_binary, t.is_large_binary,
        t.is_decimal, t.is_temporal, t.is_fixed_size_binary,
    )  # fmt: skip
    return any(test(data_type) for test in tests) and not t.is_interval(data_type)
