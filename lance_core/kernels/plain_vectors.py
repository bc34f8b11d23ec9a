"""Kernels of vector searches with numpy alone: a process that asks one question does not pay for the compiler.

Each takes the arguments of its kernel and gives the same numbers, up to the order in which floats are added. Rows are
worked on in pieces that fit a processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_PIECE = 1 << 16


def _pieces(rows: Any, dim: Any, out: Any) -> Iterator[tuple[Any, Any]]:
    """Rows as [n, dim] and where their numbers go, some at a time."""
    whole, step = rows.reshape(-1, dim), max(1, _PIECE // dim)
    for first in range(0, len(out), step):
        yield whole[first : first + step], out[first : first + step]


def _fit(query: Any, rows: Any, dim: Any, out: Any) -> bool:
    return bool(dim > 0 and len(query) == dim and len(rows) == len(out) * dim)


def l2_rows(query: Any, rows: Any, dim: Any, out: Any) -> int:
    """`distance.l2_rows`."""
    if not _fit(query, rows, dim, out):
        return -1
    for part, found in _pieces(rows, dim, out):
        apart = part - query
        found[:] = np.einsum("ij,ij->i", apart, apart)
    return len(out)


def dot_rows(query: Any, rows: Any, dim: Any, out: Any) -> int:
    """`distance.dot_rows`."""
    if not _fit(query, rows, dim, out):
        return -1
    for part, found in _pieces(rows, dim, out):
        found[:] = 1 - np.einsum("ij,j->i", part, query)
    return len(out)


def cosine_rows(query: Any, rows: Any, dim: Any, out: Any) -> int:
    """`distance.cosine_rows`."""
    if not _fit(query, rows, dim, out):
        return -1
    length = (query * query).sum()
    for part, found in _pieces(rows, dim, out):
        scale = np.sqrt(length * np.einsum("ij,ij->i", part, part))
        with np.errstate(divide="ignore", invalid="ignore"):
            found[:] = np.where(scale > 0, 1 - np.einsum("ij,j->i", part, query) / scale, np.nan)
    return len(out)


def product_table(query: Any, codebook: Any, dim: Any, num: Any, is_dot: Any, out: Any) -> int:
    """`quantize.product_table`."""
    if dim <= 0 or num <= 0 or len(query) % dim != 0 or len(codebook) != len(query) * num:
        return -1
    parts = len(query) // dim
    if len(out) != parts * num:
        return -1
    book, target = codebook.reshape(parts, dim, num), query.reshape(parts, dim, 1)
    apart = target - book
    found = -(target * book).sum(axis=1) if is_dot else (apart * apart).sum(axis=1)
    out[:] = found.reshape(-1)
    return int(parts)


def product_scan(codes: Any, table: Any, parts: Any, out: Any) -> int:
    """`quantize.product_scan`."""
    count = len(out)
    if parts <= 0 or len(codes) != count * parts or len(table) != parts * 256:
        return -1
    out[:] = 0
    for part in range(parts):
        out += table[part * 256 : part * 256 + 256].take(codes[part * count : part * count + count])
    return count


def product_scan_4bit(codes: Any, table: Any, parts: Any, out: Any) -> int:
    """`quantize.product_scan_4bit`: a table of pairs makes one look-up of two."""
    count = len(out)
    if parts <= 0 or parts % 2 != 0 or len(codes) * 2 != count * parts or len(table) != parts * 16:
        return -1
    out[:] = 0
    for pair in range(parts // 2):
        low, high = table[pair * 32 : pair * 32 + 16], table[pair * 32 + 16 : pair * 32 + 32]
        both = (high[:, None] + low[None, :]).reshape(-1)
        out += both.take(codes[pair * count : pair * count + count])
    return count


def scaled_l2(query: Any, codes: Any, dim: Any, start: Any, step: Any, out: Any) -> int:
    """`quantize.scaled_l2`."""
    if not _fit(query, codes, dim, out):
        return -1
    start, step = np.float32(start), np.float32(step)
    for part, found in _pieces(codes, dim, out):
        apart = part * step
        apart += start
        apart -= query
        found[:] = np.einsum("ij,ij->i", apart, apart)
    return len(out)


def scaled_dot(query: Any, codes: Any, dim: Any, start: Any, step: Any, out: Any) -> int:
    """`quantize.scaled_dot`."""
    if not _fit(query, codes, dim, out):
        return -1
    start, step = np.float32(start), np.float32(step)
    for part, found in _pieces(codes, dim, out):
        found[:] = np.einsum("ij,j->i", part * step + start, query)
    return len(out)


def signed_dots(query: Any, codes: Any, dim: Any, out: Any) -> int:
    """`rabit.signed_dots`."""
    if not _fit(query, codes, dim, out):
        return -1
    for part, found in _pieces(codes, dim, out):
        found[:] = np.einsum("ij,j->i", part.astype(np.float32), query)
    return len(out)


def rotate_rows(rows: Any, signs: Any, dim: Any, rounds: int = 4) -> int:
    """`rabit.rotate_rows`."""
    width = (dim + 7) // 8
    if dim <= 0 or len(rows) % dim != 0 or len(signs) != rounds * width:
        return -1
    whole = 1 << (int(dim).bit_length() - 1)
    scale, half = np.float32(1.0 / np.sqrt(np.float64(whole))), dim // 2
    turned = rows.reshape(-1, dim)
    flips = np.unpackbits(signs.reshape(rounds, width), axis=1, bitorder="little")[:, :dim].astype(bool)
    for turn in range(rounds):
        np.negative(turned, out=turned, where=flips[turn])
        part = turned[:, :whole] if turn % 2 == 0 or whole == dim else turned[:, dim - whole :]
        away = 1
        while away < whole:
            pairs = part.reshape(len(turned), whole // (2 * away), 2, away)
            left, right = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
            part = np.stack([left + right, left - right], axis=2).reshape(len(turned), whole)
            away *= 2
        start = 0 if turn % 2 == 0 or whole == dim else dim - whole
        turned[:, start : start + whole] = part * scale
        if whole != dim:
            left, right = turned[:, :half].copy(), turned[:, half : 2 * half].copy()
            turned[:, :half], turned[:, half : 2 * half] = left + right, left - right
    if whole != dim:
        turned *= np.float32(0.25)
    return len(turned)
