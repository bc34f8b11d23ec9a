"""What the writer's rules look at, computed once for a block.

::

    FixedStatistics.of(values 7 7 7 9 of 64 bits)   num_runs 2, widths [4], plain 32 bytes, packed 520, runs 18
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.codecs import bitpack, rle
from lance_core.codecs.blocks import FixedBlock, Ints, VariableBlock
from lance_core.kernels import distinct as kernels

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
        """Bytes of runs; an upper bound, for long runs and chunk edges cut some."""
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
