"""Blob columns of 2.0 and 2.1: pages hold (position, size) pairs, the values lie elsewhere in the file.

position 4096, size 70000      the value is bytes 4096..74096 of the file
position 0, size 0             an empty value
position not 0, size 0         a null (2.0; in 2.1 the levels say so)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_core.codecs.blocks import FixedBlock, StructBlock, VariableBlock
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.pages.leaf import LeafValues

BLOB_ROW_SIZE = float(256 << 10)
"""Assumed bytes of a blob when windows of rows are planned: descriptors do not tell before they are read."""

Numbers = npt.NDArray[np.uint64]


def descriptors(values: LeafValues) -> tuple[Numbers, Numbers]:
    """(positions, sizes) of the blobs of some rows. CorruptFileError when the page holds something else."""
    if isinstance(values, StructBlock) and len(values.children) == 2:
        position, size = values.children
        if isinstance(position, FixedBlock) and isinstance(size, FixedBlock) and position.bits == size.bits == 64:
            return position.data.view("<u8"), size.data.view("<u8")
    raise CorruptFileError("a blob column's page does not hold pairs of position and size")


def fetch_values(positions: Numbers, sizes: Numbers, *, file_size: int) -> Fetch[VariableBlock]:
    """The bytes of all blobs, in order; sizes of nulls are 0."""
    if len(sizes) and (int(sizes.max()) > file_size or bool((positions[sizes > 0] > file_size - sizes[sizes > 0]).any())):
        raise CorruptFileError(f"a blob lies outside its file of {file_size} bytes")
    pairs = [(position, size) for position, size in zip(positions.tolist(), sizes.tolist(), strict=True) if size]
    buffers = (yield [ByteRange(position, position + size) for position, size in pairs]) if pairs else []
    parts = [np.frombuffer(buffer, np.uint8) for buffer in buffers]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes.astype(np.int64))))
    return VariableBlock(offsets, np.concatenate([np.empty(0, np.uint8), *parts]))
