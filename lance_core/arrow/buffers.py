"""Arrow's arrays and buffers as numpy sees them, and back, with types that a checker can follow.

pyarrow takes anything with the buffer protocol and any type of column; its published types are narrower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core import pick
from lance_core.arrays import Bytes
from lance_core.arrow_numpy import arrow_of


def buffer_of(values: npt.NDArray[Any] | bytes) -> pa.Buffer:
    """A buffer over the memory of a C-contiguous array or of bytes; nothing is copied."""
    return pa.py_buffer(cast("Any", values))


def bytes_of(buffer: pa.Buffer) -> Bytes:
    """The bytes of a buffer; nothing is copied."""
    return np.frombuffer(cast("Any", buffer), np.uint8)


def nulls(count: int, type_: pa.DataType) -> pa.Array[Any]:
    """`count` nulls of any type."""
    return cast("pa.Array[Any]", pa.nulls(count, cast("Any", type_)))


def take(array: pa.Array[Any], indices: npt.NDArray[Any]) -> pa.Array[Any]:
    """The values at the indices."""
    return pick.take(array, arrow_of(indices))


def with_buffers(array: pa.Array[Any]) -> pa.Array[Any]:
    """The array, with memory for each empty child of a list that came without, as Arrow's streams have them: Arrow's cast to
    lists of a fixed size reads there, and ends the process."""
    kind: Any = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        given = [cast("Any", array).values]
    elif pa.types.is_struct(kind) and array.offset == 0:
        given = [cast("Any", array).field(number) for number in range(kind.num_fields)]
    else:
        return array
    children = [_with_buffer(child) for child in given]
    if all(child is before for child, before in zip(children, given, strict=True)):
        return array
    own = array.buffers()[: kind.num_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, cast("Any", children))


def _with_buffer(child: pa.Array[Any]) -> pa.Array[Any]:
    is_bare = any(buffer is None or buffer.address == 0 for buffer in child.buffers()[1:])
    if len(child) == 0 and is_bare and not pa.types.is_null(child.type):
        return cast("pa.Array[Any]", pa.array([], cast("Any", child.type)))
    return with_buffers(child)


def numbers_of(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[int]:
    """The values of a column of integers without nulls."""
    return cast("list[int]", column.to_pylist())


def fields_schema(fields: Sequence[pa.Field[Any]], metadata: Mapping[Any, Any] | None = None) -> pa.Schema:
    """The schema of fields of any types."""
    return pa.schema(cast("Any", fields), metadata=cast("Any", metadata))
