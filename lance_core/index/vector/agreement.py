"""Compare a vector index with its vectors: every row there once, its codes those of its vector, its partition near.

::

    row 7 is in partition 2 with the codes [3, 250, 17]       coded again: [3, 250, 18], which is as near: they agree

Codes of others differ from ours where two are equally near, so what is compared is how well they stand for the row. Edges of
graphs are not compared: they say where to look next, never what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.format.index_details import Metric
from lance_core.index.base import ID, VALUE
from lance_core.index.scalar.agreement import places_of, require
from lance_core.index.vector.clustering import owners_of
from lance_core.index.vector.distances import Floats
from lance_core.index.vector.flat import Flat
from lance_core.index.vector.model import prepare
from lance_core.index.vector.product import COLUMN as PRODUCT_COLUMN
from lance_core.index.vector.product import Product
from lance_core.index.vector.quantizer import Columns, Quantizer
from lance_core.index.vector.rabit import HELD, Rabit
from lance_core.index.vector.scalar import Scalar
from lance_core.index.vector.segment import Codes

Bits = npt.NDArray[np.bool_]
_FAR_SHARE = 0.2
"""So many rows of a partition may be nearer to another centroid: training on samples and halves of floats leave some."""
_LEVELS_APART = {2: (0.2, 2.0), 3: (0.1, 0.5)}
"""Of RaBitQ codes with few levels, which others choose in another way: share of the code's own length, and so much by one of
the dimensions. Measured on the official library's: 0.27 at most with 2 bits in 8 dimensions, 0.12 in 24 and more."""


def require_agreement(
    metric: Metric, quantizer: Quantizer, centroids: Floats, parts: Iterable[Codes], batches: Iterable[pa.RecordBatch]
) -> None:
    """Raises CorruptFileError unless the codes of all partitions are those of the vectors (value, id)."""
    rows, ids = _vectors(batches, metric)
    codes = [*parts]
    stored = np.concatenate([part.ids for part in codes]) if codes else np.empty(0, np.uint64)
    require(np.isfinite(centroids).all(), "a centroid is not finite")
    places = places_of(stored, ids)
    numbers = np.full(len(stored), -1, np.int64)
    numbers[places] = np.arange(len(places))
    first = 0
    for part in codes:
        mine = numbers[first : first + len(part.ids)]
        first += len(part.ids)
        living = mine >= 0
        if living.any():
            _require_part(metric, quantizer, centroids, part, living, rows[mine[living]])


def _require_part(metric: Metric, quantizer: Quantizer, centroids: Floats, part: Codes, living: Bits, rows: Any) -> None:
    owners = part.owners[living]
    columns = {name: values[living] for name, values in part.columns.items()}
    expected = quantizer.encode(rows, owners, centroids)
    good = _AGREE[type(quantizer)](quantizer, columns, expected, rows, centroids[owners])
    require(good.all(), "the codes of a row are not those of its vector")
    if metric != "hamming":
        _require_near(metric, centroids, owners, rows)


def _require_near(metric: Metric, centroids: Floats, owners: Any, rows: Floats) -> None:
    is_spherical = metric == "dot"
    longest = float(np.einsum("ij,ij->i", rows, rows).max()) ** 0.5
    reach = 10 * max(longest, 1.0 if is_spherical else 0.0)
    require(np.linalg.norm(centroids[owners[0]]) <= reach, "a centroid is farther than all its rows")
    _, best = owners_of(rows, centroids, is_spherical=is_spherical)
    if is_spherical:
        own = -np.einsum("ij,ij->i", rows, centroids[owners])
    else:
        own = ((rows - centroids[owners]) ** 2).sum(axis=1)
    # Where rows are almost their centroid the rest is noise, hence the share of their own length.
    far = own > best + 0.05 * np.abs(best) + 1e-3 * np.einsum("ij,ij->i", rows, rows)
    require(far.sum() <= 2 + _FAR_SHARE * len(rows), "a centroid is not where its rows are")


def _vectors(batches: Iterable[pa.RecordBatch], metric: Metric) -> tuple[Any, npt.NDArray[np.uint64]]:
    kind = np.dtype(np.uint8 if metric == "hamming" else np.float32)
    rows, ids = [], [np.empty(0, np.uint64)]
    for here, mine in _arrays(batches, kind):
        ready, kept = prepare(here, metric) if metric != "hamming" else (here, None)
        rows.append(ready)
        ids.append(mine if kept is None else mine[kept])
    return np.concatenate(rows) if rows else np.empty((0, 1), kind), np.concatenate(ids)


def _arrays(batches: Iterable[pa.RecordBatch], kind: np.dtype[Any]) -> Iterator[tuple[Any, npt.NDArray[np.uint64]]]:
    for batch in batches:
        column: Any = batch.column(VALUE)
        array = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
        ids = batch.column(ID).to_numpy()
        if array.null_count:
            present = array.is_valid()
            array, ids = array.filter(present), ids[present.to_numpy(zero_copy_only=False)]
        yield array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), -1).astype(kind, copy=False), ids


def _flat(quantizer: Any, columns: Columns, expected: Columns, rows: Any, centroids: Floats) -> Bits:
    """The vectors themselves; those scaled to length one differ by rounding."""
    (have,), (want,) = columns.values(), expected.values()
    if have.dtype.kind != "f":
        return np.asarray((have == want).all(axis=1), np.bool_)
    step = 1e-2 if have.dtype.itemsize == 2 else 1e-5
    have, want = have.astype(np.float64), want.astype(np.float64)
    near = np.abs(have - want) <= step * np.abs(want).max(axis=1, keepdims=True)
    return np.asarray(near.all(axis=1), np.bool_)


def _scalar(quantizer: Any, columns: Columns, expected: Columns, rows: Any, centroids: Floats) -> Bits:
    """Bytes that differ by one step at most."""
    (have,), (want,) = columns.values(), expected.values()
    near = np.abs(have.astype(np.int16) - want.astype(np.int16)) <= 1
    return np.asarray(near.all(axis=1), np.bool_)


def _product(quantizer: Product, columns: Columns, expected: Columns, rows: Any, centroids: Floats) -> Bits:
    """Codes whose sub-vectors are as near as the nearest, or almost."""
    have, want = columns[PRODUCT_COLUMN], expected[PRODUCT_COLUMN]
    if quantizer.bits == 4:
        have, want = (np.stack([half & 15, half >> 4], axis=2).reshape(len(half), -1) for half in (have, want))
    good = np.ones(len(have), np.bool_)
    which, part = np.nonzero(have != want)
    if len(which) == 0:
        return good
    book = quantizer.codebook.transpose(0, 2, 1)
    target = rows[which] - centroids[which] if quantizer.is_residual else rows[which]
    target = target.reshape(len(which), quantizer.parts, -1)[np.arange(len(which)), part]
    length = np.einsum("ij,ij->i", rows[which], rows[which]) / quantizer.parts
    chosen, nearest = (((book[part, codes[which, part]] - target) ** 2).sum(axis=1) for codes in (have, want))
    good[which[chosen > nearest * 1.05 + 1e-3 * length]] = False
    return good


def _rabit(quantizer: Rabit, columns: Columns, expected: Columns, rows: Any, centroids: Floats) -> Bits:
    """What signs, levels and factors stand for; levels of others may be scaled a little differently."""
    have, want = (
        quantizer.hold({name: quantizer.arrange(name, values) for name, values in item.items()})
        for item in (columns, expected)
    )
    mine, theirs = (item[HELD].astype(np.float32) * item["scale"][:, None] for item in (have, want))
    # Where a row is almost its centroid all of this is noise, hence the share of the row's own length.
    length = np.einsum("ij,ij->i", rows, rows)
    apart = ((mine - theirs) ** 2).sum(axis=1)
    share, by_dimension = _LEVELS_APART.get(quantizer.num_bits, (0.1, 0.0))
    good = apart <= (share + by_dimension / rows.shape[1]) * (theirs**2).sum(axis=1) + 1e-3 * length
    good &= np.abs(have["add"] - want["add"]) <= 0.5 * np.abs(want["add"]).mean() + 1e-3 * length
    return np.asarray(good, np.bool_)


_AGREE: Mapping[type, Callable[[Any, Columns, Columns, Any, Floats], Bits]] = {
    Flat: _flat,
    Scalar: _scalar,
    Product: _product,
    Rabit: _rabit,
}
