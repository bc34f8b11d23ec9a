"""Arrow's arrays and buffers as numpy sees them, and back, with types that a checker can follow.

pyarrow takes anything with the buffer protocol and any type of column; its published types are narrower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bytes
from lance_core.arrow import pick
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


def numbers_of(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[int]:
    """The values of a column of integers without nulls."""
    return cast("list[int]", column.to_pylist())


def fields_schema(fields: Sequence[pa.Field[Any]], metadata: Mapping[Any, Any] | None = None) -> pa.Schema:
    """The schema of fields of any types."""
    return pa.schema(cast("Any", fields), metadata=cast("Any", metadata))
