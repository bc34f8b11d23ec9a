"""Blob columns: pages hold descriptors, the values are elsewhere in the file or in files beside it.

    2.0, 2.1   position u64, size u64                           bytes of this file
    2.2        kind u8, position u64, size u64, blob_id u32, blob_uri utf8
                 kind 0   bytes of this file
                 kind 1   bytes of data/{stem}/{blob_id}.blob, shared by several values
                 kind 2   the whole of data/{stem}/{blob_id}.blob
                 kind 3   an object of somebody else's at blob_uri

Sidecar names are the 32 bits of the id, lowest first: blob 1 is `1000...0.blob`. (Spec: blob columns.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.codecs.blocks import FixedBlock, StructBlock, VariableBlock
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch
from lance_core.pages.leaf import LeafValues

BLOB_ROW_SIZE = float(256 << 10)
"""Assumed bytes of a blob when windows of rows are planned: descriptors do not tell before they are read."""

PAIR = pa.struct([pa.field("position", pa.uint64()), pa.field("size", pa.uint64())])
"""Descriptors of 2.0 and 2.1."""

DESCRIPTOR = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
"""Descriptors of 2.2."""

KIND_INLINE, KIND_PACKED, KIND_DEDICATED, KIND_EXTERNAL, KIND_MANAGED = range(5)

Numbers = npt.NDArray[np.uint64]


def descriptors(values: LeafValues) -> tuple[Numbers, Numbers]:
    """(positions, sizes) of the blobs of some rows of a 2.0 or 2.1 page. CorruptFileError when it holds something else."""
    if isinstance(values, StructBlock) and len(values.children) == 2:
        position, size = values.children
        if isinstance(position, FixedBlock) and isinstance(size, FixedBlock) and position.bits == size.bits == 64:
            return position.data.view("<u8"), size.data.view("<u8")
    raise CorruptFileError("a blob column's page does not hold pairs of position and size")


def fetch_values(positions: Numbers, sizes: Numbers, *, file_size: int) -> Fetch[VariableBlock]:
    """The bytes of all blobs of one file, in order; sizes of nulls are 0."""
    if len(sizes) and (int(sizes.max()) > file_size or bool((positions[sizes > 0] > file_size - sizes[sizes > 0]).any())):
        raise CorruptFileError(f"a blob is outside its file of {file_size} bytes")
    pairs = [(position, size) for position, size in zip(positions.tolist(), sizes.tolist(), strict=True) if size]
    buffers = (yield [ByteRange(position, position + size) for position, size in pairs]) if pairs else []
    parts = [np.frombuffer(buffer, np.uint8) for buffer in buffers]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes.astype(np.int64))))
    return VariableBlock(offsets, np.concatenate([np.empty(0, np.uint8), *parts]))


def sidecar_path(path: str, blob_id: int) -> str:
    """The file beside the data file at `path` that holds a blob.

    >>> sidecar_path("data/a.lance", 2)
    'data/a/01000000000000000000000000000000.blob'
    """
    bits = f"{blob_id:032b}"[::-1]
    return f"{path.removesuffix('.lance')}/{bits}.blob"
