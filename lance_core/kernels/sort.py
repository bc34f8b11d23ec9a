"""The order of many whole numbers, or of many byte strings by their first bytes: sorts of numbers with their positions.

::

    keys  30 10 30      packed  (20, 0) (0, 1) (20, 2)     sorted  (0, 1) (20, 0) (20, 2)     order  1 0 2

A word holds what a key is above the smallest in its high bits and the key's place in its low ones, so that one plain sort of
words (which numpy does many times as fast as an argsort) is a stable order. Keys too wide for that take two rounds, the low
bits first.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
WORD = 8
_BLOCK = 1 << 16
_Number = TypeVar("_Number", bound=np.integer[Any])


def order_of_words(keys: Words, *, may_overwrite: bool = False) -> Order:
    """The stable ascending order of unsigned 64-bit keys, in memory of theirs where it may be overwritten.

    Each array here is as large as what is sorted: there are at most three of them besides the keys, one where few bits tell
    keys apart.
    """
    count = len(keys)
    if count == 0:
        return np.empty(0, np.int64)
    place_bits = max(1, (count - 1).bit_length())
    reduced = np.subtract(keys, keys.min(), out=keys if may_overwrite else None)
    used = int(np.bitwise_or.reduce(reduced))
    if used == 0:
        return np.arange(count)
    lowest = (used & -used).bit_length() - 1
    if lowest:
        reduced >>= np.uint64(lowest)
    room = 64 - place_bits
    if used.bit_length() - lowest <= room:
        return _sorted_places(reduced, place_bits)
    first = _sorted_places(reduced & np.uint64((1 << room) - 1), place_bits)
    reduced >>= np.uint64(room)
    rest = reduced[first]
    del reduced
    return first[order_of_words(rest, may_overwrite=True)]


def _sorted_places(packed: Words, place_bits: int) -> Order:
    """The places of keys in order; the array of the keys becomes the answer."""
    packed <<= np.uint64(place_bits)
    for start in range(0, len(packed), _BLOCK):
        block = packed[start : start + _BLOCK]
        block |= np.arange(start, start + len(block), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << place_bits) - 1)
    places: Order = packed.view(np.int64)
    return places


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Each number once, ascending; a sort, which beats the hash table of `np.unique` by far."""
    ordered = np.sort(values)
    return ordered if len(ordered) < 2 else ordered[np.append(True, ordered[1:] != ordered[:-1])]


def words_of(data: npt.NDArray[np.uint8], starts: Order, lengths: Order) -> Words:
    """The first eight bytes of each string as a number that orders as they do; short strings end in zero bytes.

    `data` has at least eight bytes behind the last start.
    """
    # Every byte of the data as the begin of a word: numpy gathers from there as quickly as from an ordinary array.
    anywhere = np.ndarray((max(0, len(data) - WORD + 1),), ">u8", data, strides=(1,))
    gathered = anywhere[starts]
    words: Words = gathered.byteswap(inplace=True).view(np.uint64) if sys.byteorder == "little" else gathered.view(np.uint64)
    if len(lengths) and int(lengths.min()) < WORD:
        words &= _MASKS[np.clip(lengths, 0, WORD)]
    return words


_MASKS = np.array([(1 << 64) - (1 << 8 * (WORD - kept)) for kept in range(WORD + 1)], np.uint64)
"""Keeps the first k bytes of a word, for k up to 8."""
