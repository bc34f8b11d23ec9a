"""Arrow's arrays and buffers as numpy sees them, and back, with types that a checker can follow.

pyarrow takes anything with the buffer protocol and any type of column; its published types are narrower.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bools, Bytes


def buffer_of(values: npt.NDArray[Any]) -> pa.Buffer:
    """A buffer over the memory of a C-contiguous array; nothing is copied."""
    return pa.py_buffer(cast("Any", values))


def bytes_of(buffer: pa.Buffer) -> Bytes:
    """The bytes of a buffer; nothing is copied."""
    return np.frombuffer(cast("Any", buffer), np.uint8)


def nulls(count: int, type_: pa.DataType) -> pa.Array[Any]:
    """`count` nulls of any type."""
    return cast("pa.Array[Any]", pa.nulls(count, cast("Any", type_)))


def take_where(table: pa.Table, mask: Bools) -> pa.Table:
    """The rows where `mask` is true."""
    return table.filter(pa.array(mask))
