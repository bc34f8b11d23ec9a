"""How far vectors are from a query, one number for each row: squared L2, one minus dot product, one minus cosine, Hamming.

::

    query [1, 2]   rows [1, 2], [0, 0], [4, 6]      squared L2  ->  0, 5, 25

Rows are one after the other in one array; `dim` numbers are a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import plain_vectors
from lance_core.kernels.jit import kernel

_FLOATS = ("f4", "f8")


@kernel("in:T in:T i8 out:f4 -> i8", reorders=True, plain=plain_vectors.l2_rows, weight=0.06, T=_FLOATS)
def l2_rows(query: Any, rows: Any, dim: Any, out: Any) -> Any:
    """Squared distances; returns the number of rows, -1 when the arrays do not fit."""
    count = len(out)
    if dim < 0 or len(query) != dim or len(rows) != count * dim:
        return -1
    for row in range(count):
        start = row * dim
        total = query[0] * 0
        for at in range(dim):
            step = rows[start + at] - query[at]
            total += step * step
        out[row] = total
    return count


@kernel("in:T in:T i8 out:f4 -> i8", reorders=True, plain=plain_vectors.dot_rows, weight=0.06, T=_FLOATS)
def dot_rows(query: Any, rows: Any, dim: Any, out: Any) -> Any:
    """One minus the dot product; returns the number of rows, -1 when the arrays do not fit."""
    count = len(out)
    if dim < 0 or len(query) != dim or len(rows) != count * dim:
        return -1
    for row in range(count):
        start = row * dim
        total = query[0] * 0
        for at in range(dim):
            total += rows[start + at] * query[at]
        out[row] = 1 - total
    return count


@kernel("in:T in:T i8 out:f4 -> i8", reorders=True, plain=plain_vectors.cosine_rows, weight=0.12, T=_FLOATS)
def cosine_rows(query: Any, rows: Any, dim: Any, out: Any) -> Any:
    """One minus the cosine of the angle (NaN for a row of zeros); returns the number of rows, -1 when arrays do not fit."""
    count = len(out)
    if dim < 0 or len(query) != dim or len(rows) != count * dim:
        return -1
    length = query[0] * 0
    for at in range(dim):
        length += query[at] * query[at]
    for row in range(count):
        start = row * dim
        total = query[0] * 0
        square = query[0] * 0
        for at in range(dim):
            value = rows[start + at]
            total += value * query[at]
            square += value * value
        scale = (length * square) ** 0.5
        out[row] = 1 - total / scale if scale > 0 else query[0] * 0 + float("nan")
    return count


@kernel("in:u1 in:u1 i8 out:f4 -> i8")
def hamming_rows(query: Any, rows: Any, dim: Any, out: Any) -> Any:
    """Bits that differ; returns the number of rows, -1 when the arrays do not fit."""
    count = len(out)
    if dim < 0 or len(query) != dim or len(rows) != count * dim:
        return -1
    for row in range(count):
        start = row * dim
        total = 0
        for at in range(dim):
            bits = np.int64(rows[start + at] ^ query[at])
            bits = bits - ((bits >> 1) & 0x55)
            bits = (bits & 0x33) + ((bits >> 2) & 0x33)
            total += (bits + (bits >> 4)) & 0x0F
        out[row] = total
    return count
