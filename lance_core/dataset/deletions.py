"""Deletion files of a fragment into physical offsets.

::

    _deletions/3-7-1234.arrow   an Arrow file with one column row_id: uint32
    _deletions/3-7-1234.bin     a portable roaring bitmap
    -> int64 array, sorted, unique

(Spec: FORMAT C.4.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.commit import naming
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import CorruptFileError
from lance_core.fetch import Buffer
from lance_core.format.fragment import Fragment
from lance_core.io.cache import shared_cache
from lance_core.rowids.bitmap import bitmap_array, decode_bitmap

NONE: npt.NDArray[np.int64] = np.empty(0, np.int64)
_BITMAP = "bitmap"


def read_deleted(snapshot: Snapshot, fragment: Fragment) -> npt.NDArray[np.int64]:
    """Sorted physical offsets of the fragment's deleted rows; cached, for the files never change.

    Raises NotFoundError, and CorruptFileError when the file is not what the manifest says.
    """
    file = fragment.deletion_file
    if file is None or file.num_deleted_rows == 0:
        return NONE
    store, is_root = snapshot.store_of(file.base_id)
    path = naming.deletion_path(fragment.id, file.read_version, file.id, file.file_type)
    where = path if is_root else path.rsplit("/", 1)[-1]
    key = ("deleted", store.uri, where)

    def load() -> tuple[npt.NDArray[np.int64], int]:
        offsets = decode_deleted(store.get(where), file_type=file.file_type, where=f"{store.uri}: {where}")
        _check(offsets, fragment, where=f"{store.uri}: {where}")
        return offsets, offsets.nbytes

    return shared_cache().get_or_make(key, load)


def decode_deleted(data: Buffer, *, file_type: str, where: str) -> npt.NDArray[np.int64]:
    """Sorted, unique offsets from the bytes of a deletion file."""
    if file_type == _BITMAP:
        return bitmap_array(decode_bitmap(data, what=where)).astype(np.int64)
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            column = reader.read_all().column("row_id").combine_chunks()
    except (pa.ArrowException, KeyError, OSError) as error:
        raise CorruptFileError(f"{where} is not a deletion file: {error}") from error
    if not pa.types.is_uint32(column.type) or column.null_count:
        raise CorruptFileError(f"{where}: row_id must be uint32 without nulls, got {column.type}")
    return np.unique(column.to_numpy()).astype(np.int64)


def _check(offsets: npt.NDArray[np.int64], fragment: Fragment, *, where: str) -> None:
    if len(offsets) != fragment.num_deleted_rows:
        raise CorruptFileError(f"{where} has {len(offsets)} rows, the manifest says {fragment.num_deleted_rows}")
    if len(offsets) and offsets[-1] >= fragment.physical_rows:
        raise CorruptFileError(
            f"{where} deletes row {offsets[-1]} of fragment {fragment.id}, which has {fragment.physical_rows}"
        )
