"""Inputs and outputs of codecs: decoded values as blocks, encoded values as pieces.

A *block* is a run of decoded values without nulls (nulls are levels, which belong to the page). A *piece list* names
where one value buffer of many chunks is inside one larger buffer, so that a codec decodes all chunks of a read in one
call instead of one Python call for each chunk:

    data    |hdr|....chunk 0....|hdr|....chunk 1....|
    starts      ^                   ^
    sizes       <--------------->   <--------------->
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Bytes, Ints


@dataclass(frozen=True, slots=True)
class FixedBlock:
    """`count` values of `bits` bits each, as raw little-endian bytes (uint8, contiguous).

    `bits` is 1 (a bitmap, least significant bit first) or a multiple of 8.
    """

    bits: int
    data: Bytes
    count: int


@dataclass(frozen=True, slots=True)
class VariableBlock:
    """`len(offsets) - 1` values; offsets (int32 or int64) start at 0 and index into `data` (uint8)."""

    offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    data: Bytes

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.offsets) - 1


def block_of(items: Sequence[bytes]) -> VariableBlock:
    """Values as a block."""
    ends = [*accumulate(map(len, items), initial=0)]
    offsets: npt.NDArray[Any] = np.array(ends, np.int32 if ends[-1] < 1 << 31 else np.int64)
    return VariableBlock(offsets, np.frombuffer(b"".join(items), np.uint8))


def list_of(block: VariableBlock) -> list[bytes]:
    """The values of a block one by one."""
    data, offsets = block.data.tobytes(), block.offsets.tolist()
    return [data[start:end] for start, end in pairwise(offsets)]


@dataclass(frozen=True, slots=True)
class ListBlock:
    """Fixed-size lists: `count` values of `dimension` items each; `validity` is a bitmap over items (LSB, 1 = valid)."""

    dimension: int
    items: Block
    count: int
    validity: Bytes | None = None


@dataclass(frozen=True, slots=True)
class StructBlock:
    """Packed struct: one block for each child, all of the same count."""

    children: tuple[Block, ...]
    count: int


@dataclass(frozen=True, slots=True)
class DictionaryBlock:
    """Indices (FixedBlock of 8, 16, 32 or 64 bits, unsigned) into items."""

    indices: FixedBlock
    items: Block

    @property
    def count(self) -> int:
        """Number of values."""
        return self.indices.count


Block = FixedBlock | VariableBlock | ListBlock | StructBlock | DictionaryBlock


@dataclass(frozen=True, slots=True)
class Pieces:
    """Where one value buffer of each of several chunks is in `data` (byte positions, int64, one entry per chunk)."""

    data: Bytes
    starts: Ints
    sizes: Ints

    @classmethod
    def whole(cls, data: Bytes) -> Pieces:
        """One chunk that is the whole buffer."""
        return cls(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Picks:
    """Some values of many chunks: value `positions[i]` (below that chunk's count) of chunk `chunks[i]` (int64)."""

    chunks: Ints
    positions: Ints

    def __len__(self) -> int:
        return len(self.chunks)
