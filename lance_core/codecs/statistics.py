"""Statistics for the writer's rules, computed once per block.

::

    FixedStatistics.of(values 7 7 7 9 of 64 bits)   num_runs 2, widths [4], plain 32 bytes, packed 520, runs 18
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs import bitpack, rle
from lance_core.codecs.blocks import FixedBlock, VariableBlock
from lance_core.kernels import distinct as kernels
from lance_core.kernels.bytes import copy_runs

_SAMPLE = 4096
WORD_BITS = (8, 16, 32, 64)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class FixedStatistics:
    """Of values of 8, 16, 32 or 64 bits: runs of equal neighbours, and the bits each block of 1,024 needs."""

    bits: int
    count: int
    num_runs: int
    widths: Ints

    @classmethod
    def of(cls, block: FixedBlock) -> FixedStatistics:
        """Two passes over the values."""
        values = bitpack.unsigned(block)
        return cls(block.bits, block.count, rle.count_runs(values), bitpack.block_widths(values))

    @property
    def plain_size(self) -> int:
        """Bytes of plain values."""
        return self.count * self.bits // 8

    @property
    def packed_size(self) -> int:
        """Bytes of inline bit packing."""
        return bitpack.inline_size(self.widths, self.bits)

    @property
    def rle_size(self) -> int:
        """Bytes of runs; an upper bound, because long runs and chunk edges cut some."""
        return (self.num_runs + self.count // rle.MAX_RUN + 1) * (self.bits // 8 + 1)


def number_fixed(block: FixedBlock, limit: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    """(number of each value, where each distinct value appears first), None above `limit` distinct values."""
    size = block.bits // 8
    data = block.data[: block.count * size]
    if size == 8:
        return _number(limit, block.count, kernels.number_words, (np.ascontiguousarray(data).view("<u8"),))
    offsets = np.arange(block.count + 1, dtype=np.int64) * size
    return number_variable(VariableBlock(offsets, data), limit)


def number_variable(block: VariableBlock, limit: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    """The same for byte strings."""
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    padded = np.empty(last - first + 8, np.uint8)
    padded[: last - first] = block.data[first:last]
    offsets = np.ascontiguousarray(block.offsets - block.offsets[0] if first else block.offsets)
    return _number(limit, block.count, kernels.number_strings, (offsets, padded, _MASKS))


def pick(block: FixedBlock | VariableBlock, numbers: Ints) -> FixedBlock | VariableBlock:
    """Some values of a block, in the order of `numbers` (which are inside it)."""
    if isinstance(block, FixedBlock):
        size = block.bits // 8
        rows = block.data[: block.count * size].reshape(block.count, size)
        return FixedBlock(block.bits, rows[numbers].reshape(-1), len(numbers))
    starts = block.offsets[numbers].astype(np.int64)
    sizes = block.offsets[numbers + 1].astype(np.int64) - starts
    ends = np.cumsum(sizes)
    out = np.empty(int(sizes.sum()), np.uint8)
    copy_runs(np.ascontiguousarray(block.data), starts, sizes, ends - sizes, out)
    offsets: npt.NDArray[Any] = np.append(0, ends).astype(block.offsets.dtype)
    return VariableBlock(offsets, out)


def has_many_distinct(block: FixedBlock | VariableBlock, limit: int) -> bool:
    """Whether two small samples make more than `limit` distinct values all but certain.

    One sample is the first values, the other spread over the block: repeats nearby or afar keep the question open. With
    d distinct among m drawn values, about m * m / (2 * (m - d)) exist (the birthday bound).
    """
    if block.count < 4 * _SAMPLE:
        return False
    # Spread with chance: a fixed step could run in time with a period of the values.
    step = block.count // _SAMPLE
    near = np.arange(_SAMPLE, dtype=np.int64)
    for numbers in (near, near * step + np.random.default_rng(block.count).integers(0, step, _SAMPLE)):
        drawn = pick(block, numbers)
        found = number_fixed(drawn, _SAMPLE) if isinstance(drawn, FixedBlock) else number_variable(drawn, _SAMPLE)
        repeats = 0 if found is None else _SAMPLE - len(found[1])
        # Twice the limit for safety; the bound holds for few repeats only.
        if repeats > _SAMPLE // 10 or repeats * 4 * limit > _SAMPLE * _SAMPLE:
            return False
    return True


def _number(
    limit: int, count: int, kernel: Any, values: tuple[npt.NDArray[Any], ...]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None:
    if limit <= 0:
        return None
    slot_bits = max(6, (2 * limit).bit_length())
    slots = np.full(1 << slot_bits, -1, np.int32)
    codes, firsts = np.empty(count, np.uint32), np.empty(limit, np.uint32)
    found = kernel(*values, kernels.FACTOR, 64 - slot_bits, limit, slots, codes, firsts)
    return (codes, firsts[:found]) if found >= 0 else None
