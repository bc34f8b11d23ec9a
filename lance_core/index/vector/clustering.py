"""k-means in numpy and compiled kernels: distances of many rows to many centroids are one matrix product.

::

    train(rows [n, dim], 256)            centroids [256, dim], trained until the loss settles
    owners_of(rows, centroids)           the nearest centroid of each row
    train_products(rows, parts, 256)     a codebook [parts, dim / parts, 256] for product quantization

`is_spherical` (for dot products): centroids have length one and rows belong where the dot product is largest. (ADR 031.)
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats
from lance_core.io.pool import in_work_pool, work_pool
from lance_core.kernels.cluster import add_to_clusters, encode_products, nearest_code

Owners = npt.NDArray[np.uint32]
CHUNK_FLOATS = 1 << 22
DIRECT_CENTROIDS = 512
TOLERANCE = 1e-4
"""Training stops when an iteration lowers the loss by less than this share."""


def owners_of(rows: Floats, centroids: Floats, *, is_spherical: bool = False) -> tuple[Owners, Floats]:
    """(nearest centroid of each row, its squared distance; or minus the dot product when spherical)."""
    owners = np.empty(len(rows), np.uint32)
    losses = np.empty(len(rows), np.float32)
    turned = np.ascontiguousarray(centroids.T) * (-1 if is_spherical else -2)
    lengths = None if is_spherical else np.einsum("ij,ij->i", centroids, centroids)
    step = max(1, CHUNK_FLOATS // max(len(centroids), 1))
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        scores = part @ turned
        if lengths is not None:
            scores += lengths
        owner = scores.argmin(axis=1)
        owners[first : first + step] = owner
        losses[first : first + step] = scores[np.arange(len(part)), owner]
    if not is_spherical:
        losses += np.einsum("ij,ij->i", rows, rows)
        np.maximum(losses, 0, out=losses)
    return owners, losses


def train(
    rows: Floats, num: int, *, is_spherical: bool = False, max_iters: int = 50, seed: int = 42
) -> tuple[Floats, float]:
    """(centroids [num, dim], loss over the rows [n, dim]). With fewer rows than centroids some rows serve twice.

    Many centroids are trained in two levels: a few large clusters, then each split in proportion to its rows.
    """
    if num > DIRECT_CENTROIDS and len(rows) >= num:
        return _train_in_two(rows, num, is_spherical, max_iters, seed)
    return _train_at_once(rows, num, is_spherical, max_iters, seed)


def _train_in_two(rows: Floats, num: int, is_spherical: bool, max_iters: int, seed: int) -> tuple[Floats, float]:
    coarse = round(num**0.5)
    few = rows[np.random.default_rng(seed).permutation(len(rows))[: coarse * 256]]
    owners, _ = owners_of(rows, _train_at_once(few, coarse, is_spherical, max_iters, seed)[0], is_spherical=is_spherical)
    sizes = np.bincount(owners, minlength=coarse)
    shares = _shares(sizes, num)
    parts = []
    for cluster in np.flatnonzero(shares).tolist():
        mine = rows[owners == cluster]
        parts.append(_train_at_once(mine, int(shares[cluster]), is_spherical, max_iters, seed + cluster)[0])
    # One more move over all rows: those at the borders of the large clusters find their place.
    return _train_at_once(rows, num, is_spherical, 1, seed, start=np.concatenate(parts))


def _shares(sizes: npt.NDArray[np.int64], num: int) -> npt.NDArray[np.int64]:
    """`num` centroids in proportion to the sizes, none where there are no rows, at least one where there are."""
    exact = sizes * (num / sizes.sum())
    shares = np.where(sizes > 0, np.maximum(1, np.floor(exact)), 0).astype(np.int64)
    order = np.argsort(-(exact - shares), kind="stable")
    order = order[sizes[order] > 0]
    at = 0
    while shares.sum() != num:
        step = 1 if shares.sum() < num else -1
        cluster = order[at % len(order)] if step > 0 else int(shares.argmax())
        shares[cluster] += step
        at += 1
    return shares


def _train_at_once(
    rows: Floats, num: int, is_spherical: bool, max_iters: int, seed: int, *, start: Floats | None = None
) -> tuple[Floats, float]:
    rng = np.random.default_rng(seed)
    dim = rows.shape[1]
    picked = rng.permutation(len(rows))[:num] if len(rows) >= num else rng.integers(0, len(rows), num)
    centroids = np.ascontiguousarray(rows[picked] if start is None else start, np.float32)
    if is_spherical:
        centroids = unit(centroids)
    loss = np.inf
    for _ in range(max_iters):
        owners, losses = owners_of(rows, centroids, is_spherical=is_spherical)
        now = float(losses.sum(dtype=np.float64))
        sums, counts = np.zeros(num * dim, np.float32), np.zeros(num, np.int64)
        add_to_clusters(rows.reshape(-1), owners, dim, sums, counts)
        centroids = _means(sums.reshape(num, dim), counts, centroids, rng)
        if is_spherical:
            centroids = unit(centroids)
        if np.isfinite(loss) and loss - now <= TOLERANCE * abs(now):
            break
        loss = now
    return centroids, now


def _means(sums: Floats, counts: npt.NDArray[np.int64], before: Floats, rng: np.random.Generator) -> Any:
    """New centroids; an empty cluster takes half of a large one, a little apart from it."""
    means: Any = sums / np.maximum(counts, 1)[:, None].astype(np.float32)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        large = np.argsort(-counts, kind="stable")
        for number, cluster in enumerate(empty.tolist()):
            source = int(large[number % max(1, len(counts) - len(empty))])
            nudge = rng.normal(size=means.shape[1]).astype(np.float32)
            scale = np.abs(means[source]).mean() * np.float32(1e-3)
            means[cluster] = means[source] + nudge * scale
    good: Any = np.where(np.isfinite(means), means, before)
    return good


def unit(rows: Floats) -> Any:
    """Rows [n, dim] scaled to length one; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
    scaled: Any = rows / np.where(lengths > 0, lengths, 1)[:, None].astype(np.float32)
    return scaled


def train_products(rows: Floats, parts: int, num: int, *, max_iters: int = 50, seed: int = 42) -> Floats:
    """A codebook [parts, dim / parts, num] of rows [n, dim]: the centroids of each sub-vector, trained apart."""
    width = rows.shape[1] // parts
    book = np.empty((parts, width, num), np.float32)

    def one(part: int) -> None:
        mine = np.ascontiguousarray(rows[:, part * width : (part + 1) * width])
        book[part] = _train_codes(mine, num, max_iters, seed + part).T

    _each(one, parts)
    return book


def _train_codes(rows: Floats, num: int, max_iters: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    dim = rows.shape[1]
    picked = rng.permutation(len(rows))[:num] if len(rows) >= num else rng.integers(0, len(rows), num)
    centroids = rows[picked].copy()
    codes, scratch = np.empty(len(rows), np.uint8), np.empty(num, np.float32)
    total = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
    loss = np.inf
    for _ in range(max_iters):
        nearest_code(rows.reshape(-1), np.ascontiguousarray(centroids.T).reshape(-1), dim, num, scratch, codes)
        sums, counts = np.zeros(num * dim, np.float32), np.zeros(num, np.int64)
        add_to_clusters(rows.reshape(-1), codes, dim, sums, counts)
        centroids = _means(sums.reshape(num, dim), counts, centroids, rng)
        # The loss after the move, without another look at the rows: sum of squares less what the means explain.
        now = total - float((np.square(centroids, dtype=np.float64).sum(axis=1) * counts).sum())
        if np.isfinite(loss) and loss - now <= TOLERANCE * abs(now):
            break
        loss = now
    return centroids


def encode(rows: Floats, codebook: Floats) -> npt.NDArray[np.uint8]:
    """Product codes uint8[n, parts], on all cores."""
    parts, width, num = codebook.shape
    out = np.empty((len(rows), parts), np.uint8)
    flat = codebook.reshape(-1)
    step = max(256, -(-len(rows) // 16))

    def one(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        encode_products(np.ascontiguousarray(rows[part]).reshape(-1), flat, width, num, out[part].reshape(-1))

    _each(one, -(-len(rows) // step))
    return out


def _each(one: Any, count: int) -> None:
    """Run `one(0)`, ... on all cores; in turn where this thread is one of the workers."""
    if count < 2 or in_work_pool():
        for number in range(count):
            one(number)
        return
    pending: list[Future[None]] = [work_pool().submit(one, number) for number in range(count)]
    for item in pending:
        item.result()
