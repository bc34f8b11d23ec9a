"""Numbers out of many serialized messages at once, without building any of them.

    entries   08 01 12 .. 20 64 | 08 02 12 .. 20 e8 07 | …       physical_rows = 100, 1000, …

All entries are walked in step: one header of each per round, as columns of numbers. A table has 100,000 fragments, and a
count of its rows wants one number of each. An entry that is not so plain is left to be decoded separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bools, Ints
from lance_core.rowids.walk import BYTES, VARINT

_PADDING = bytes(16)
_MAX_VARINT = 5
"""Bytes of a number that is read here: sizes and rows stay below 2^35."""


@dataclass(frozen=True, slots=True, eq=False)
class Peeked:
    """Of each message: a varint field (0 where absent), where a length-delimited field is (-1 where absent), and whether
    the message has to be decoded separately."""

    values: Ints
    inner_starts: Ints
    inner_ends: Ints
    is_odd: Bools


def join_messages(raws: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """The messages one behind the other, with where each begins and ends."""
    ends = np.cumsum(np.fromiter(map(len, raws), np.int64, len(raws)))
    starts = np.append(np.zeros(1, np.int64), ends[:-1])
    return np.frombuffer(b"".join((*raws, _PADDING)), np.uint8), starts[: len(ends)], ends


def peek(
    data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, *, number: int, inner: int, first_only: bool = False
) -> Peeked:
    """Varint field `number` and length-delimited field `inner` (both below 16) of the messages at `starts` to `ends`.

    `first_only`: a message that begins with field `number` is walked no further, as writers write a field once.
    """
    count = len(starts)
    found = Peeked(np.zeros(count, np.int64), np.full(count, -1), np.full(count, -1), np.zeros(count, np.bool_))
    for which, tag, value, after in _headers(data, starts, ends, found.is_odd, last=number if first_only else None):
        here = tag == number << 3 | VARINT
        found.values[which[here]] = value[here]
        here = tag == inner << 3 | BYTES
        found.inner_starts[which[here]] = (after - value)[here]
        found.inner_ends[which[here]] = after[here]
    return found


def peek_numbers(
    data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, *, numbers: tuple[int, ...]
) -> tuple[tuple[Ints, ...], Bools]:
    """Varint fields `numbers` (each below 16) of the messages, 0 where absent, and which have to be decoded separately."""
    is_odd = np.zeros(len(starts), np.bool_)
    found = tuple(np.zeros(len(starts), np.int64) for _ in numbers)
    for which, tag, value, _ in _headers(data, starts, ends, is_odd):
        for number, values in zip(numbers, found, strict=True):
            here = tag == number << 3 | VARINT
            values[which[here]] = value[here]
    return found, is_odd


def peek_each(data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, *, inner: int) -> tuple[Ints, Ints, Bools]:
    """Where every length-delimited field `inner` (below 16) of the messages is, however often it occurs in one, and which
    messages have to be walked by themselves (their fields may be among those found, too)."""
    is_odd = np.zeros(len(starts), np.bool_)
    found_starts, found_ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for _, tag, value, after in _headers(data, starts, ends, is_odd):
        here = tag == inner << 3 | BYTES
        found_starts.append((after - value)[here])
        found_ends.append(after[here])
    return np.concatenate(found_starts), np.concatenate(found_ends), is_odd


def _headers(
    data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, is_odd: Bools, *, last: int | None = None
) -> Iterator[tuple[Ints, npt.NDArray[np.uint8], Ints, Ints]]:
    """The next field of each message that has one: which messages, tags, varints behind the tags, where the fields end.

    A message with a field that is not plain is marked in `is_odd` and walked no further; so is one whose first field is
    number `last`, unmarked.
    """
    which = np.flatnonzero(starts < ends)
    position, end = starts[which], ends[which]
    while len(which):
        tag = data[position]
        value, after, is_long = varints(data, position + 1)
        kind = tag & 7
        is_bytes = kind == BYTES
        after = after + value * is_bytes
        odd = is_long | ~(is_bytes | (kind == VARINT)) | (tag >= 0x80) | (tag < 8) | (after > end)
        if odd.any():
            is_odd[which[odd]] = True
            which, tag, value, after, end = (column[~odd] for column in (which, tag, value, after, end))
        yield which, tag, value, after
        left = after < end
        if last is not None:
            left &= tag != last << 3 | VARINT
        if left.all():
            position = after
        else:
            which, position, end = which[left], after[left], end[left]


def varints(data: npt.NDArray[np.uint8], position: Ints) -> tuple[Ints, Ints, Bools]:
    """Value of the varint at each position, the position behind it, and whether it goes on for too long."""
    byte = data[position].astype(np.int64)
    value, after = byte & 0x7F, position + 1
    going = np.flatnonzero(byte >= 0x80)
    for shift in range(7, 7 * _MAX_VARINT, 7):
        if not len(going):
            break
        byte = data[np.minimum(after[going], len(data) - 1)].astype(np.int64)
        value[going] |= (byte & 0x7F) << shift
        after[going] += 1
        going = going[byte >= 0x80]
    is_long = np.zeros(len(position), np.bool_)
    is_long[going] = True
    return value, after, is_long
