"""Deletion files: the deleted rows of a fragment, as bytes, as arrays, on a store.

::

    fewer than 5,000 rows   _deletions/3-7-1234.arrow   an Arrow file, one column row_id: uint32, zstd
    more                    _deletions/3-7-1234.bin     a portable roaring bitmap

Offsets are physical positions in the fragment and cumulative: a new file repeats the old deletions. (Spec: FORMAT C.4.)
"""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.commit import naming
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer
from lance_core.format.fragment import DeletionFile, Fragment
from lance_core.io.store import Store
from lance_core.rowids.bitmap import bitmap_array, bitmap_of, decode_bitmap, encode_bitmap
from lance_core.rowids.ipc_size import claimed_size
from lance_core.shortage import ARROW_ERRORS

Offsets = npt.NDArray[np.int64]
"""Row offsets in a fragment: sorted, unique."""

ARRAY, BITMAP = "array", "bitmap"
BITMAP_FROM = 5000
"""From this many rows on, the official writer uses a bitmap."""

_COLUMN = "row_id"
_ARRAY_SLACK = 1 << 16
"""Bytes that padding and a validity bitmap may take beside the offsets."""


def decode_deletions(data: Buffer, *, file_type: str, where: str, expected: int | None = None) -> Offsets:
    """The offsets in the bytes of a deletion file. Raises CorruptFileError.

    `expected`: how many there must be; other numbers are refused before memory is taken for them.
    """
    if file_type == BITMAP:
        bitmap = decode_bitmap(data, what=where)
        if expected is not None and len(bitmap) != expected:
            raise CorruptFileError(f"{where} has {len(bitmap)} rows, the manifest says {expected}")
        return bitmap_array(bitmap).astype(np.int64)
    if expected is not None and claimed_size(memoryview(data), what=where) > _ARRAY_SLACK + 4 * expected:
        raise CorruptFileError(f"{where} has more than {expected} rows, the count in the manifest")
    try:
        with pa.ipc.open_file(pa.py_buffer(data), options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
            column = reader.read_all().column(_COLUMN).combine_chunks()
    except (*ARROW_ERRORS, KeyError, OSError, ValueError) as error:
        raise CorruptFileError(f"{where} is not a deletion file: {error}") from error
    if not pa.types.is_uint32(column.type) or column.null_count:
        raise CorruptFileError(f"{where}: {_COLUMN} must be uint32 without nulls, got {column.type}")
    return np.unique(numpy_of(column)).astype(np.int64)


def encode_deletions(offsets: Offsets, *, file_type: str) -> bytes:
    if file_type == BITMAP:
        return encode_bitmap(bitmap_of(offsets))
    column = arrow_of(offsets.astype(np.uint32), pa.uint32())
    batch = pa.record_batch([column], schema=pa.schema([pa.field(_COLUMN, pa.uint32(), nullable=False)]))
    sink = io.BytesIO()
    # Fewer than BITMAP_FROM numbers: a hand-over to a thread costs more than to compress them.
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_deletions(store: Store, fragment: Fragment) -> Offsets:
    """The deleted offsets of a fragment whose deletion file is in `store`. Raises CorruptFileError, NotFoundError."""
    file = fragment.deletion_file
    if file is None or file.num_deleted_rows == 0:
        return np.empty(0, np.int64)
    path = naming.deletion_path(fragment.id, file.read_version, file.id, file.file_type)
    where = f"{store.uri}: {path}"
    if file.num_deleted_rows > fragment.physical_rows:
        raise CorruptFileError(
            f"{where} should delete {file.num_deleted_rows} rows, but the fragment has {fragment.physical_rows}"
        )
    data = store.get(path)
    offsets = decode_deletions(data, file_type=file.file_type, where=where, expected=file.num_deleted_rows)
    if len(offsets) != file.num_deleted_rows:
        raise CorruptFileError(f"{where} has {len(offsets)} rows, the manifest says {file.num_deleted_rows}")
    if offsets[-1] >= fragment.physical_rows:
        raise CorruptFileError(f"{where} deletes row {offsets[-1]}, but the fragment has {fragment.physical_rows} rows")
    return offsets


def write_deletions(
    store: Store,
    fragment_id: int,
    offsets: Offsets,
    *,
    read_version: int,
    attempt: str | None = None,
    file_type: str | None = None,
) -> DeletionFile:
    """Write the (cumulative) deletions of a fragment and return the entry for its manifest.

    `attempt` goes into the file's name; `file_type` None picks as the official writer does.
    """
    kind = file_type or (ARRAY if len(offsets) < BITMAP_FROM else BITMAP)
    file = DeletionFile(kind, read_version, naming.deletion_file_id(attempt), len(offsets))
    store.put(deletion_file_path(fragment_id, file), encode_deletions(offsets, file_type=kind))
    return file


def deletion_file_path(fragment_id: int, file: DeletionFile) -> str:
    """Where a deletion file is below the root it belongs to."""
    return naming.deletion_path(fragment_id, file.read_version, file.id, file.file_type)
