"""Pieces of one buffer joined into contiguous bytes, with plain numpy.

::

    data    |h|aaaa|h|bbbb|h|cc|        starts 1, 6, 11   sizes 4, 4, 2     ->   aaaabbbbcc

One piece, or pieces without a gap, are a view; pieces of one size at one distance (plain columns) are one strided copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Pieces
from lance_core.errors import CorruptFileError

_WORDS = (1, 2, 4, 8)


def check_pieces(pieces: Pieces, counts: Ints) -> None:
    """Refuse pieces that leave their buffer or do not match the counts (CorruptFileError)."""
    if not len(pieces.starts) == len(pieces.sizes) == len(counts):
        raise CorruptFileError(f"{len(pieces.starts)} chunks of bytes for {len(counts)} chunks of values")
    if not len(counts):
        return
    size = len(pieces.data)
    low, high = int(pieces.starts.min()), int(pieces.sizes.max())
    inside = low >= 0 and high <= size and int(pieces.sizes.min()) >= 0 and int(pieces.starts.max()) <= size
    if inside and int((pieces.starts + pieces.sizes).max()) <= size and int(counts.min()) >= 0:
        return
    bad = (pieces.starts < 0) | (pieces.sizes < 0) | (pieces.sizes > size) | (pieces.starts > size - pieces.sizes)
    if bad.any():
        chunk = int(np.argmax(bad))
        raise CorruptFileError(
            f"chunk {chunk} is at byte {int(pieces.starts[chunk])} with {int(pieces.sizes[chunk])} bytes, "
            f"outside its buffer of {size} bytes"
        )
    if int(counts.min()) < 0:
        raise CorruptFileError("a chunk claims a negative number of values")


def require_sizes(pieces: Pieces, needed: Ints, what: str) -> None:
    """Refuse pieces smaller than the bytes their values need (CorruptFileError)."""
    short = pieces.sizes < needed
    if short.any():
        chunk = int(np.argmax(short))
        raise CorruptFileError(
            f"{what}: chunk {chunk} has {int(pieces.sizes[chunk])} bytes, expected at least {int(needed[chunk])}"
        )


def gather(data: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """The bytes `data[start : start + size]` of all pieces, joined (uint8, contiguous, maybe a view).

    The caller has checked that the pieces are inside `data`.
    """
    if len(starts) == 0:
        return np.empty(0, np.uint8)
    if np.array_equal(starts[1:], starts[:-1] + sizes[:-1]):
        return data[int(starts[0]) : int(starts[-1] + sizes[-1])]
    stride = _stride(starts, sizes)
    if stride is not None:
        return _gather_even(data, starts, sizes, stride)
    ends = (starts + sizes).tolist()
    return np.concatenate([data[start:end] for start, end in zip(starts.tolist(), ends, strict=True)])


def pick_even(data: Bytes, starts: Ints, size: int) -> Bytes:
    """`size` bytes at each of the starts, joined: for many short ones. The caller has checked that they are inside."""
    if size in _WORDS and not (starts % size).any():
        return words(data, f"u{size}")[starts // size].view(np.uint8)
    picked: Bytes = data[starts[:, None] + np.arange(size, dtype=np.int64)].reshape(-1)
    return picked


def pick_uneven(data: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """The same for short ranges of different sizes."""
    before = np.cumsum(sizes) - sizes
    picked: Bytes = data[np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()), dtype=np.int64)]
    return picked


def words(data: Bytes, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Contiguous bytes as little-endian words, copied only when they are not aligned. Trailing bytes are cut."""
    item = np.dtype(dtype).newbyteorder("<")
    whole = data[: len(data) // item.itemsize * item.itemsize]
    view = whole.view(item)
    out: npt.NDArray[Any] = view if view.flags.aligned else view.copy()
    return out


def _stride(starts: Ints, sizes: Ints) -> int | None:
    """The distance between pieces when all have it and all but the last have one size."""
    stride = int(starts[1] - starts[0])
    even = stride > 0 and (starts[1:] - starts[:-1] == stride).all() and (sizes[:-1] == sizes[0]).all()
    return stride if even and sizes[-1] <= stride else None


def _gather_even(data: Bytes, starts: Ints, sizes: Ints, stride: int) -> Bytes:
    first, size, last = int(starts[0]), int(sizes[0]), int(sizes[-1])
    num_even = len(starts) - 1
    out = np.empty(num_even * size + last, np.uint8)
    rows = np.lib.stride_tricks.as_strided(data[first:], (num_even, size), (stride, 1), writeable=False)
    out[: num_even * size].reshape(num_even, size)[:] = rows
    out[num_even * size :] = data[int(starts[-1]) : int(starts[-1]) + last]
    return out


def aligned_words(pieces: Pieces, size: int) -> tuple[npt.NDArray[Any], Ints, Ints]:
    """(words, starts, sizes) in words of `size` bytes: a view where the pieces are aligned, joined copies elsewhere.

    Bytes behind the last whole word of a piece are left out.
    """
    address = pieces.data.__array_interface__["data"][0]
    sizes = pieces.sizes // size
    if address % size == 0 and not (pieces.starts % size).any():
        return words(pieces.data, f"u{size}"), pieces.starts // size, sizes
    joined = words(gather(pieces.data, pieces.starts, sizes * size), f"u{size}")
    return joined, np.cumsum(sizes) - sizes, sizes
