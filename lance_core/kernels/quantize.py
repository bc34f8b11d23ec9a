"""Distances to rows that are stored as codes: table look-ups for product codes, scaled bytes for scalar codes.

::

    product codes are by sub-vector: all first codes of a partition, then all second codes (FORMAT E.5)
    distance of row r = table[0][code 0 of r] + table[1][code 1 of r] + ...
"""

from __future__ import annotations

from typing import Any

from lance_core.kernels import plain_vectors
from lance_core.kernels.jit import kernel


@kernel("in:f4 in:f4 i8 i8 i8 out:f4 -> i8", reorders=True, plain=plain_vectors.product_table, weight=0.06)
def product_table(query: Any, codebook: Any, dim: Any, num: Any, is_dot: Any, out: Any) -> Any:
    """Squared distances (or negative dot products) of each sub-vector of the query to its centroids; -1: wrong sizes.

    `query` is [m * dim], `codebook` [m, dim, num], `out` [m, num].
    """
    if dim <= 0 or num <= 0 or len(query) % dim != 0 or len(codebook) != len(query) * num:
        return -1
    parts = len(query) // dim
    if len(out) != parts * num:
        return -1
    for part in range(parts):
        target = out[part * num : part * num + num]
        for at in range(num):
            target[at] = 0
        for axis in range(dim):
            value = query[part * dim + axis]
            row = codebook[(part * dim + axis) * num : (part * dim + axis) * num + num]
            if is_dot:
                for at in range(num):
                    target[at] -= value * row[at]
            else:
                for at in range(num):
                    step = value - row[at]
                    target[at] += step * step
    return parts


@kernel("in:u1 in:f4 i8 out:f4 -> i8", reorders=True, plain=plain_vectors.product_scan, weight=0.06)
def product_scan(codes: Any, table: Any, parts: Any, out: Any) -> Any:
    """Sums of table entries for 8-bit codes [parts, n]; returns n, -1 when the arrays do not fit."""
    count = len(out)
    if parts <= 0 or len(codes) != count * parts or len(table) != parts * 256:
        return -1
    for row in range(count):
        out[row] = 0
    for part in range(parts):
        mine = codes[part * count : part * count + count]
        look = table[part * 256 : part * 256 + 256]
        for row in range(count):
            out[row] += look[mine[row]]
    return count


@kernel("in:u1 in:f4 i8 out:f4 -> i8", reorders=True, plain=plain_vectors.product_scan_4bit, weight=0.06)
def product_scan_4bit(codes: Any, table: Any, parts: Any, out: Any) -> Any:
    """The same for 4-bit codes [parts / 2, n]: the low half of a byte is the even sub-vector."""
    count = len(out)
    if parts <= 0 or parts % 2 != 0 or len(codes) * 2 != count * parts or len(table) != parts * 16:
        return -1
    for row in range(count):
        out[row] = 0
    for pair in range(parts // 2):
        mine = codes[pair * count : pair * count + count]
        low = table[pair * 32 : pair * 32 + 16]
        high = table[pair * 32 + 16 : pair * 32 + 32]
        for row in range(count):
            out[row] += low[mine[row] & 15] + high[mine[row] >> 4]
    return count


@kernel("in:f4 in:u1 i8 f4 f4 out:f4 -> i8", reorders=True, plain=plain_vectors.scaled_l2, weight=0.08)
def scaled_l2(query: Any, codes: Any, dim: Any, start: Any, step: Any, out: Any) -> Any:
    """Squared distances of the query to rows of bytes that stand for `start + step * byte`; -1: wrong sizes."""
    count = len(out)
    if dim <= 0 or len(query) != dim or len(codes) != count * dim:
        return -1
    for row in range(count):
        first = row * dim
        total = query[0] * 0
        for at in range(dim):
            apart = query[at] - (start + step * codes[first + at])
            total += apart * apart
        out[row] = total
    return count


@kernel("in:f4 in:u1 i8 f4 f4 out:f4 -> i8", reorders=True, plain=plain_vectors.scaled_dot, weight=0.08)
def scaled_dot(query: Any, codes: Any, dim: Any, start: Any, step: Any, out: Any) -> Any:
    """Dot products of the query with rows of bytes that stand for `start + step * byte`; -1: wrong sizes."""
    count = len(out)
    if dim <= 0 or len(query) != dim or len(codes) != count * dim:
        return -1
    for row in range(count):
        first = row * dim
        total = query[0] * 0
        for at in range(dim):
            total += query[at] * (start + step * codes[first + at])
        out[row] = total
    return count
