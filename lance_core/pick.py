"""Rows of Arrow data by place or by truth, also where Arrow's own kernels take wrong ones.

::

    take(batch, [3, 0])     rows 3 and 0, in that order        keep(batch, [true, false, null])     row 0

Of a fixed-size list of fixed-size lists of numbers that begins at an offset (a slice, as most batches are), Arrow's `take`
and `filter` pick values as if it began at its buffer's first. Such columns are copied to an offset of zero first.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, true_of

Rows = TypeVar("Rows", "pa.Array[Any]", "pa.ChunkedArray[Any]", "pa.RecordBatch", "pa.Table")


def take(data: Rows, indices: Any) -> Rows:
    """The rows at places (an Arrow array; null gives null)."""
    found: Rows = _from_zero(data).take(indices)
    return found


def keep(data: Rows, mask: Any) -> Rows:
    """The rows for which a mask is true."""
    whole: Any = _from_zero(data)
    flags = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    # Where a table has several chunks, the kernel makes slices of its own.
    found: Rows = data.filter(mask) if whole is data else whole.take(arrow_of(np.flatnonzero(true_of(flags))))
    return found


def _from_zero(data: Any) -> Any:
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _copied(data) if _is_grid(data.type) else data
    grids = [number for number, kind in enumerate(data.schema.types) if _is_grid(kind)]
    for number in grids:
        data = data.set_column(number, data.schema.field(number), _copied(data.column(number)))
    return data


def _copied(column: Any) -> Any:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not chunks:
        return column
    # Arrow returns one array alone as it is.
    whole = pa.concat_arrays([*chunks, chunks[0].slice(0, 0)])
    return pa.chunked_array([whole]) if isinstance(column, pa.ChunkedArray) else whole


def _is_grid(kind: Any, *, inside: bool = False) -> bool:
    """Whether a type has a fixed-size list in a fixed-size list, at any depth."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _is_grid(kind.storage_type, inside=inside)
    if types.is_struct(kind):
        return any(_is_grid(kind.field(number).type) for number in range(kind.num_fields))
    if types.is_fixed_size_list(kind):
        return inside or _is_grid(kind.value_type, inside=True)
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_grid(kind.value_type)
    if types.is_map(kind):
        return _is_grid(kind.item_type)
    return False
