"""FastLanes bit packing: 1,024 numbers of T bits as W-bit numbers, in an order that suits vector registers.

The logical position of row r (0..T-1) and lane l (0..1024/T-1) is `ORDER[r // 8] * 16 + (r % 8) * 128 + l`. Lane l
packs its T numbers, lowest bits first, into W words; word w of lane l is at index `w * lanes + l`:

    T = 32: 32 lanes, W = 3: 3 * 32 words; row 0 of lane 0 is bits 0-2 of word 0, row 10 straddles words 0 and 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.kernels import plain
from lance_core.kernels.jit import kernel

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
BLOCK = 1024
_WORDS = ("u1", "u2", "u4", "u8")
_BLOCKS_AT_ONCE = 256
_ALL = np.uint64(2**64 - 1)


@kernel("in:T in:i8 in:i8 in:i8 out:T out:T -> i8", T=_WORDS)
def unpack(words: Any, starts: Any, widths: Any, counts: Any, scratch: Any, out: Any) -> Any:
    """Unpack blocks back to back into `out`; block b has its words at `starts[b]`, `widths[b]` bits, `counts[b]` values.

    A width of T + 1 means that the block holds plain words. `scratch` holds 1,024 items. Returns the number of values, or
    -1 - b for a block b that leaves `words` or `out`.
    """
    bits = words.itemsize * 8
    lanes = 1024 // bits
    at = 0
    for block in range(len(starts)):
        start, width, count = starts[block], widths[block], counts[block]
        if width < 0 or width > bits + 1 or count < 0 or count > 1024 or at + count > len(out):
            return -1 - block
        size = count if width > bits else width * lanes
        if start < 0 or start > len(words) - size:
            return -1 - block
        if width > bits:
            out[at : at + count] = words[start : start + count]
            at += count
            continue
        direct = count == 1024
        target = out[at : at + 1024] if direct else scratch
        mask = (1 << width) - 1 if width < 64 else -1
        for row in range(bits):
            first = ORDER[row // 8] * 16 + (row % 8) * 128
            word = start + row * width // bits * lanes
            shift = row * width % bits
            if width == 0:
                for lane in range(lanes):
                    target[first + lane] = 0
            elif shift + width <= bits:
                for lane in range(lanes):
                    target[first + lane] = (words[word + lane] >> shift) & mask
            else:
                rest = bits - shift
                for lane in range(lanes):
                    low = words[word + lane] >> shift
                    target[first + lane] = (low | (words[word + lanes + lane] << rest)) & mask
        if not direct:
            out[at : at + count] = scratch[:count]
        at += count
    return at


def unpack_plainly(
    words: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    widths: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> int:
    """`unpack` with numpy alone, blocks of one width at a time: a small read need not wait for the compiler."""
    lanes = BLOCK // (words.itemsize * 8)
    sizes = np.where(widths > words.itemsize * 8, counts, widths * lanes)
    bad = (widths < 0) | (widths > words.itemsize * 8 + 1) | (counts < 0) | (counts > BLOCK)
    bad |= (starts < 0) | (starts > len(words) - sizes)
    if bad.any() or int(counts.sum()) > len(out):
        return -1 - int(np.argmax(bad))
    targets = np.cumsum(counts) - counts
    for width in np.unique(widths).tolist():
        for numbers in _at_most(np.flatnonzero(widths == width), _BLOCKS_AT_ONCE):
            if width > words.itemsize * 8:
                blocks = [words[at : at + count] for at, count in zip(starts[numbers], counts[numbers], strict=True)]
            else:
                packed = words[starts[numbers][:, None] + np.arange(width * lanes)]
                blocks = [*_unpack_even(packed.reshape(len(numbers), width, lanes), width)]
            for block, target, count in zip(blocks, targets[numbers].tolist(), counts[numbers].tolist(), strict=True):
                out[target : target + count] = block[:count]
    return int(counts.sum())


def _at_most(numbers: npt.NDArray[np.int64], size: int) -> list[npt.NDArray[np.int64]]:
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def _unpack_even(packed: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Blocks of one width, shape (blocks, width, lanes), as shape (blocks, 1024)."""
    kind = packed.dtype.type
    bits, lanes = packed.itemsize * 8, packed.shape[2]
    out = np.zeros((len(packed), BLOCK), packed.dtype)
    mask = kind((1 << width) - 1)
    for row in range(bits if width else 0):
        first = ORDER[row // 8] * 16 + (row % 8) * 128
        word, shift = divmod(row * width, bits)
        values = packed[:, word] >> kind(shift)
        if shift + width > bits:
            values |= packed[:, word + 1] << kind(bits - shift)
        out[:, first : first + lanes] = values & mask
    return out


def unpack_one(data: memoryview, start: int, width: int, bits: int, position: int) -> int:
    """One of the 1,024 numbers of a block whose words begin at byte `start`: plain Python, for reads of single rows.

    The caller has checked that the block is inside `data` (uint8) and that the width is 1 to `bits`.
    """
    lanes, size = BLOCK // bits, bits // 8
    group, rest = divmod(position, 128)
    # ORDER is its own inverse.
    row = ORDER[rest // lanes * (lanes // 16)] * 8 + group
    at = start + (row * width // bits * lanes + rest % lanes) * size
    shift = row * width % bits
    value = int.from_bytes(data[at : at + size], "little") >> shift
    if shift + width > bits:
        at += lanes * size
        value |= int.from_bytes(data[at : at + size], "little") << (bits - shift)
    return value & ((1 << width) - 1)


def unpack_some(
    words: npt.NDArray[Any], starts: npt.NDArray[np.int64], widths: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Number `positions[i]` of the block whose words begin at `starts[i]`, with numpy alone: for a few of many blocks.

    A width of T + 1 means plain words. The caller has checked that the blocks are inside `words`.
    """
    bits = words.itemsize * 8
    lanes = BLOCK // bits
    group, rest = np.divmod(positions, 128)
    # ORDER is its own inverse.
    row = np.array(ORDER)[rest // lanes * (lanes // 16)] * 8 + group
    packed = starts + row * widths // bits * lanes + rest % lanes
    first = np.where(widths > bits, starts + positions, packed)
    last = len(words) - 1
    if last < 0:
        return np.zeros(len(positions), words.dtype)
    shift = np.where(widths > bits, 0, row * widths % bits).astype(np.uint64)
    low = words[np.minimum(first, last)].astype(np.uint64) >> shift
    # A shift by all 64 bits is undefined; it is only computed where nothing straddles.
    up = np.minimum(bits - shift.astype(np.int64), 63).astype(np.uint64)
    high = words[np.minimum(first + lanes, last)].astype(np.uint64) << up
    straddles = (shift.astype(np.int64) + widths > bits) & (widths <= bits)
    kept = np.minimum(widths, bits)
    masks = np.where(kept >= 64, _ALL, (np.uint64(1) << np.minimum(kept, 63).astype(np.uint64)) - np.uint64(1))
    found: npt.NDArray[Any] = (np.where(straddles, low | high, low) & masks).astype(words.dtype)
    return found


@kernel("in:T in:i8 in:i8 in:i8 out:T out:T -> i8", T=_WORDS, plain=plain.pack)
def pack(values: Any, counts: Any, starts: Any, widths: Any, scratch: Any, out: Any) -> Any:
    """Pack blocks of `counts[b]` (at most 1,024, zero padded) values, back to back in `values`, to word `starts[b]`.

    `out` is zero before. A width of T + 1 writes plain words. Returns the number of values, or -1 - b for a block b that
    leaves `values` or `out`.
    """
    bits = values.itemsize * 8
    lanes = 1024 // bits
    at = 0
    for block in range(len(starts)):
        start, width, count = starts[block], widths[block], counts[block]
        if width < 0 or width > bits + 1 or count < 0 or count > 1024 or at + count > len(values):
            return -1 - block
        size = count if width > bits else width * lanes
        if start < 0 or start > len(out) - size:
            return -1 - block
        if width > bits:
            out[start : start + count] = values[at : at + count]
            at += count
            continue
        scratch[:count] = values[at : at + count]
        scratch[count:] = 0
        at += count
        if width == 0:
            continue
        for row in range(bits):
            first = ORDER[row // 8] * 16 + (row % 8) * 128
            word = start + row * width // bits * lanes
            shift = row * width % bits
            for lane in range(lanes):
                out[word + lane] |= scratch[first + lane] << shift
            if shift + width > bits:
                rest = bits - shift
                for lane in range(lanes):
                    out[word + lanes + lane] |= scratch[first + lane] >> rest
    return at
