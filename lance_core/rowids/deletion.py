"""Deletion vectors: the deleted physical rows of a fragment, in memory and in the two forms of deletion files.

    "array"     an Arrow IPC file with one non-null uint32 column "row_id", body compressed with zstd
    "bitmap"    3a300000 01000000 ...    a portable 32-bit roaring bitmap

Offsets are physical and cumulative: a new file repeats the old deletions. (Spec: table format, deletion files; C.4.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import CorruptFileError
from lance_core.rowids.bitmap import BitMap, UInt32Array, bitmap_array, bitmap_of, decode_bitmap, encode_bitmap
from lance_core.shortage import ARROW_ERRORS

MAX_ARRAY_ROWS = 5000
"""From this many deleted rows on, the official writer uses a bitmap."""

DeletionKind = Literal["array", "bitmap"]
_COLUMN = "row_id"


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A set of physical row offsets."""

    rows: BitMap

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, offset: int) -> bool:
        return offset in self.rows

    def __or__(self, other: DeletionVector) -> DeletionVector:
        return DeletionVector(self.rows | other.rows)

    def intersects(self, other: DeletionVector) -> bool:
        """Whether any row is in both."""
        return bool(self.rows.intersect(other.rows))

    def offsets(self) -> UInt32Array:
        """The deleted offsets, ascending, uint32."""
        return bitmap_array(self.rows)

    def live_mask(self, num_rows: int) -> npt.NDArray[np.bool_]:
        """For each of `num_rows` physical rows whether it is still there."""
        mask = np.ones(num_rows, dtype=np.bool_)
        mask[self.offsets()] = False
        return mask

    def live_offsets(self, num_rows: int) -> npt.NDArray[np.int64]:
        """Physical offsets of the rows that are still there, int64."""
        return np.flatnonzero(self.live_mask(num_rows)).astype(np.int64)

    def check(self, *, num_rows: int, num_deleted: int, what: str) -> DeletionVector:
        """Itself, if it fits the fragment and the count the manifest gives; else CorruptFileError."""
        if len(self) != num_deleted:
            raise CorruptFileError(f"{what} holds {len(self)} offsets, the manifest says {num_deleted}")
        if len(self) and int(self.rows.max()) >= num_rows:
            raise CorruptFileError(f"{what} deletes row {self.rows.max()} of a fragment of {num_rows} rows")
        return self


def deletion_vector(offsets: npt.NDArray[np.integer] | Iterable[int]) -> DeletionVector:
    """A vector of these offsets."""
    return DeletionVector(bitmap_of(offsets))


def decode_deletions(kind: str, data: bytes, *, what: str = "deletion file") -> DeletionVector:
    """The vector in a deletion file of `kind` "array" or "bitmap". Raises CorruptFileError."""
    if kind == "bitmap":
        return DeletionVector(decode_bitmap(data, what=what))
    return deletion_vector(_decode_array(data, what=what))


def _decode_array(data: bytes, *, what: str) -> UInt32Array:
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
    except (*ARROW_ERRORS, OSError, ValueError) as error:
        raise CorruptFileError(f"{what} is not an Arrow file: {error}", cure="The file is damaged.") from error
    if table.num_columns != 1 or table.schema.field(0).type != pa.uint32() or table.column(0).null_count:
        raise CorruptFileError(f"{what} has the columns {table.schema}, expected one column of non-null uint32")
    values: UInt32Array = numpy_of(table.column(0)).astype(np.uint32, copy=False)
    return values


def encode_deletions(vector: DeletionVector, *, kind: DeletionKind | None = None) -> tuple[DeletionKind, bytes]:
    """(kind, bytes) of a deletion file; without `kind`, an array below 5,000 rows and a bitmap from there on."""
    chosen: DeletionKind = kind or ("array" if len(vector) < MAX_ARRAY_ROWS else "bitmap")
    return chosen, encode_bitmap(vector.rows) if chosen == "bitmap" else _encode_array(vector)


def _encode_array(vector: DeletionVector) -> bytes:
    schema = pa.schema([pa.field(_COLUMN, pa.uint32(), nullable=False)])
    batch = pa.record_batch([arrow_of(vector.offsets(), pa.uint32())], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
