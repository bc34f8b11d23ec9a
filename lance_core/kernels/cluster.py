"""Nearest centroid for many rows at once, and the sums that make the next centroids.

::

    rows of 2 numbers, 256 centroids stored by dimension: all first numbers, then all second numbers
    -> distances to 256 centroids in one register-wide sweep, the smallest found on the bits of the floats

A float that is not negative orders like its bits read as an integer; the lowest bits make room for the centroid's number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel


@kernel("in:f4 in:f4 i8 i8 out:f4 out:u1 -> i8", reorders=True)
def nearest_code(rows: Any, centroids: Any, dim: Any, num: Any, scratch: Any, out: Any) -> Any:
    """The nearest of `num` (16 or 256) centroids for each row; returns -1 when the arrays do not fit.

    `centroids` is [dim, num]; `scratch` holds `num` floats. Distances closer than one part in 30,000 count as equal.
    """
    count = len(out)
    if len(rows) != count * dim or len(centroids) != dim * num or len(scratch) < num or num > 256:
        return -1
    bits = scratch.view(np.int32)
    for row in range(count):
        for at in range(num):
            scratch[at] = 0
        for axis in range(dim):
            value = rows[row * dim + axis]
            start = axis * num
            for at in range(num):
                step = value - centroids[start + at]
                scratch[at] += step * step
        best = np.int32(0x7FFFFFFF)
        for at in range(num):
            best = min(best, np.int32(bits[at] & np.int32(-256)) | np.int32(at))
        out[row] = best & 255
    return count


@kernel("in:f4 in:f4 i8 i8 out:u1 -> i8", reorders=True)
def encode_products(rows: Any, codebook: Any, dim: Any, num: Any, out: Any) -> Any:
    """Product codes: for each row and sub-vector the nearest of `num` centroids; returns the number of rows or -1.

    `rows` is [n, m * dim], `codebook` [m, dim, num], `out` [n, m].
    """
    width = dim * num
    if dim <= 0 or num <= 0 or num > 256 or len(codebook) % width != 0:
        return -1
    parts = len(codebook) // width
    if parts == 0 or len(out) % parts != 0:
        return -1
    count = len(out) // parts
    if len(rows) != count * parts * dim:
        return -1
    scratch = np.empty(num, np.float32)
    bits = scratch.view(np.int32)
    for row in range(count):
        for part in range(parts):
            first = (row * parts + part) * dim
            for at in range(num):
                scratch[at] = 0
            for axis in range(dim):
                value = rows[first + axis]
                start = part * width + axis * num
                for at in range(num):
                    step = value - codebook[start + at]
                    scratch[at] += step * step
            best = np.int32(0x7FFFFFFF)
            for at in range(num):
                best = min(best, np.int32(bits[at] & np.int32(-256)) | np.int32(at))
            out[row * parts + part] = best & 255
    return count


@kernel("in:f4 in:C i8 out:f4 out:i8 -> i8", C=("u1", "u4"))
def add_to_clusters(rows: Any, owners: Any, dim: Any, sums: Any, counts: Any) -> Any:
    """Add each row to the sum of its cluster and count it; returns the number of rows, -1 for a wrong owner or size."""
    count = len(owners)
    if len(rows) != count * dim or len(sums) != len(counts) * dim:
        return -1
    for row in range(count):
        owner = np.int64(owners[row])
        if owner >= len(counts):
            return -1
        counts[owner] += 1
        for axis in range(dim):
            sums[owner * dim + axis] += rows[row * dim + axis]
    return count
