"""Storing blobs: the bytes go into the file as buffers, the column keeps descriptors.

2.2   {data: b"abc", uri: null}    kind 0, position 4096, size 3        bytes of this file
      {data: null, uri: "s3://x"}  kind 3, blob_uri "s3://x"            somebody else's object
2.1   b"abc"                       position 4096, size 3; a null is size 0 at position 1 << 16 (its level)
2.0   b"abc"                       position 4096, size 3; a null is size 0 at position 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.extension import BLOB_V2
from lance_core.errors import InputError
from lance_core.fetch import Buffer, ByteRange
from lance_core.file.blobs import DESCRIPTOR, KIND_EXTERNAL, KIND_INLINE, PAIR
from lance_core.file.tree import is_old_blob
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.format.version import FileVersion

Add = Callable[[Buffer], ByteRange]
_NULL_POSITION = {FileVersion.V2_0: 1, FileVersion.V2_1: 1 << 16}


def is_blob(field: Field, version: FileVersion) -> bool:
    """Whether a field's values go out of line."""
    if version.is_legacy:
        return False
    return field.extension_name == BLOB_V2 or (version in _NULL_POSITION and is_old_blob(field))


def check_blobs(schema: Schema, version: FileVersion) -> None:
    """InputError for blob columns below structs or lists, or of a kind that the version does not have."""
    for item in schema.fields:
        if is_blob(item, version) and item.parent_id != NO_PARENT:
            raise InputError(f"column {schema.path_of(item.id)!r} is a blob inside another column, which is not written")
        if item.extension_name == BLOB_V2 and version < FileVersion.V2_2:
            raise InputError(
                f"column {item.name!r} is a blob v2 column, which files of version {version.text} do not have",
                cure="Use storage version 2.2.",
            )


def store_blobs(array: pa.Array, version: FileVersion, add: Add) -> pa.Array:
    """Descriptors of the values, whose bytes are handed to `add`."""
    if pa.types.is_struct(array.type):
        return _store_new(array, add)
    return _store_old(array, _NULL_POSITION[version], add)


def _store_old(array: pa.Array, null_position: int, add: Add) -> pa.Array:
    positions = np.full(len(array), null_position, np.uint64)
    sizes = np.zeros(len(array), np.uint64)
    for row, value in enumerate(array):
        if value.is_valid:
            data = value.as_buffer()
            spot = add(data) if data.size else ByteRange(0, 0)
            positions[row], sizes[row] = spot.start, spot.size
    return pa.StructArray.from_arrays([pa.array(positions), pa.array(sizes)], fields=list(PAIR))


def _store_new(array: pa.StructArray, add: Add) -> pa.Array:
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    columns: dict[str, Any] = {name: array.field(number) for number, name in enumerate(names)}
    data, uri = columns.get("data"), columns.get("uri")
    valid = array.is_valid()
    rows: list[tuple[int, int, int, str] | None] = []
    for row in range(len(array)):
        rows.append(_describe(row, data, uri, columns, add) if valid[row].as_py() else None)
    stored = [(0, 0, 0, "") if item is None else item for item in rows]
    children = [
        pa.array([item[0] for item in stored], pa.uint8()),
        pa.array([item[1] for item in stored], pa.uint64()),
        pa.array([item[2] for item in stored], pa.uint64()),
        pa.array(np.zeros(len(rows), np.uint32)),
        pa.array([item[3] for item in stored], pa.string()),
    ]
    mask = pa.array([item is None for item in rows], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(DESCRIPTOR), mask=mask)


def _describe(row: int, data: Any, uri: Any, columns: dict[str, Any], add: Add) -> tuple[int, int, int, str] | None:
    """(kind, position, size, uri) of one value; None when it is neither here nor elsewhere."""
    if data is not None and data[row].is_valid:
        buffer = data[row].as_buffer()
        spot = add(buffer) if buffer.size else ByteRange(0, 0)
        return KIND_INLINE, spot.start, spot.size, ""
    if uri is not None and uri[row].is_valid:
        numbers = [columns[name][row].as_py() if name in columns else None for name in ("position", "size")]
        return KIND_EXTERNAL, numbers[0] or 0, numbers[1] or 0, uri[row].as_py()
    return None
