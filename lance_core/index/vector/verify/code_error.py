"""Verify codes: each quantizer measures how far codes deviate from their vectors.

::

    code_error(quantizer, columns, reference)   [0.2, 0.0, 7.1] in units of what is allowed: the third row is not that vector

Codes of others differ from ours where two are equally near, or where their sums round differently, and by no more than
that: the tolerances are a few times what was measured over the official library's, for each type of column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats
from lance_core.format.index_details import Metric
from lance_core.index.vector.clustering import encode, unit
from lance_core.index.vector.quantizer import Columns, Quantizer
from lance_core.index.vector.quantizers.flat import COLUMN as FLAT_COLUMN
from lance_core.index.vector.quantizers.flat import FlatQuantizer
from lance_core.index.vector.quantizers.product import COLUMN as PRODUCT_COLUMN
from lance_core.index.vector.quantizers.product import ProductQuantizer
from lance_core.index.vector.quantizers.rabit import RabitQuantizer
from lance_core.index.vector.quantizers.scalar import COLUMN as SCALAR_COLUMN
from lance_core.index.vector.quantizers.scalar import ScalarQuantizer


@dataclass(frozen=True, eq=False)
class Reference:
    """Some rows: `given` [n, dim] as in the column, `rows` as they are stored (float32; of length one for cosine), their
    partitions, all centroids, and these rotated where codes are of what was rotated."""

    metric: Metric
    given: npt.NDArray[Any]
    rows: Any
    owners: npt.NDArray[np.uint32]
    centroids: Floats
    rotated: Floats

    @property
    def is_rounded(self) -> bool:
        """Whether what was stored was computed from rows that had been rounded to half precision after scaling."""
        return self.metric == "cosine" and self.is_half

    @property
    def is_half(self) -> bool:
        """Whether the column is of half precision, in which others take differences too."""
        return self.given.dtype == np.float16


def reference_of(
    metric: Metric, given: npt.NDArray[Any], owners: npt.NDArray[np.uint32], centroids: Floats, rotated: Floats
) -> Reference:
    """What rows of a column are compared with: their vectors and partitions."""
    if metric == "hamming":
        return Reference(metric, given, given, owners, centroids, rotated)
    rows = given.astype(np.float32, copy=False)
    if metric == "cosine":
        rows = unit(rows)
        if given.dtype == np.float16:
            rows = rows.astype(np.float16).astype(np.float32)
    return Reference(metric, given, rows, owners, centroids, rotated)


def code_error(quantizer: Quantizer, columns: Columns, reference: Reference) -> Floats:
    """For each row how far its codes are from those of its vector, up to 1 is good; NaN: no code at all."""
    found: Floats = _ERRORS[type(quantizer)](quantizer, columns, reference)
    return found


def _flat(quantizer: FlatQuantizer, columns: Columns, reference: Reference) -> Any:
    """The vectors themselves; those scaled to length one differ by rounding."""
    have = columns[FLAT_COLUMN]
    if reference.metric != "cosine":
        same = (have == reference.given.astype(have.dtype, copy=False)).all(axis=1)
        if have.dtype == np.float64:
            # Our own were rounded to single precision on their way.
            same |= (have == reference.rows).all(axis=1)
        return np.where(same, 0, np.inf)
    step = 2e-3 if reference.is_half else 2e-6
    far = np.abs(have.astype(np.float32, copy=False) - reference.rows).max(axis=1)
    return far / (step * np.abs(reference.rows).max(axis=1))


def _scalar(quantizer: ScalarQuantizer, columns: Columns, reference: Reference) -> Any:
    """Numbers are where their bytes say: above them, or, in rows of releases up to 0.39, nearest to them."""
    have = columns[SCALAR_COLUMN].astype(np.float32)
    scale = np.float32(1 / quantizer.step)
    scaled = (reference.rows - np.float32(quantizer.start)) * scale
    np.clip(scaled, 0, np.float32(255.5), out=scaled)
    nearest = np.abs(np.minimum(scaled, np.float32(255)) - have).max(axis=1)
    scaled -= have + np.float32(0.5)
    largest = max(abs(quantizer.start), abs(quantizer.end))
    allowed = 0.002 + 1e-6 * largest / quantizer.step
    if reference.is_rounded:
        allowed += 1e-3 * largest / quantizer.step
    return (np.minimum(np.abs(scaled).max(axis=1), nearest) - 0.5) / np.float32(allowed)


def _product(quantizer: ProductQuantizer, columns: Columns, reference: Reference) -> Any:
    """Codes whose sub-vectors are as near as the nearest, or almost."""
    have = columns[PRODUCT_COLUMN]
    rows = _residuals(reference) if quantizer.is_residual else reference.rows
    if quantizer.bits == 4:
        have = np.stack([have & 15, have >> 4], axis=2).reshape(len(have), -1)
    found = _product_error(quantizer, have, rows, reference)
    others = np.flatnonzero(~(found <= 1))
    if len(others) and reference.metric == "dot":
        found[others] = _largest_products(quantizer.codebook.transpose(0, 2, 1), have[others], rows[others])
    if len(others) and reference.metric == "cosine" and quantizer.is_residual:
        # Release 0.9 subtracted the centroid from the row as it was given, and scaled what was left.
        few = replace(reference, given=reference.given[others], rows=reference.rows[others], owners=reference.owners[others])
        left = unit(few.given.astype(np.float32) - few.centroids[few.owners])
        found[others] = np.fmin(found[others], _product_error(quantizer, have[others], left, few))
    return found


def _product_error(quantizer: ProductQuantizer, have: npt.NDArray[np.uint8], rows: Floats, reference: Reference) -> Floats:
    """How much farther the chosen sub-vectors are from those of the rows than the nearest, in units of what is allowed."""
    want = encode(rows, quantizer.codebook)
    found = np.zeros(len(have), np.float32)
    which, part = np.nonzero(have != want)
    if len(which) == 0:
        return found
    book = quantizer.codebook.transpose(0, 2, 1)
    target = rows.reshape(len(rows), quantizer.parts, -1)[which, part]
    chosen, nearest = (((book[part, codes[which, part]] - target) ** 2).sum(axis=1) for codes in (have, want))
    lengths = _squares(reference)[which] / quantizer.parts
    allowed = (2e-2 if reference.is_rounded else 1e-3) * nearest + (1e-4 if reference.is_rounded else 1e-6) * lengths
    np.maximum.at(found, which, (chosen - nearest) / (allowed + np.float32(1e-38)))
    return found


def _largest_products(book: Any, codes: npt.NDArray[np.uint8], rows: Floats) -> Any:
    """With dot, the official library codes rows that it adds to an index later by the largest product."""
    found = np.zeros(len(rows), np.float32)
    pieces = rows.reshape(len(rows), len(book), -1)
    for part, words in enumerate(book):
        products = pieces[:, part] @ words.T
        lengths = np.sqrt(np.square(pieces[:, part]).sum(axis=1)) * np.sqrt(np.square(words).sum(axis=1).max())
        missing = (
            products.max(axis=1) - np.take_along_axis(products, codes[:, part : part + 1].astype(np.int64), axis=1)[:, 0]
        )
        np.maximum(found, missing / (1e-4 * lengths + np.float32(1e-38)), out=found)
    return found


def _rabit(quantizer: RabitQuantizer, columns: Columns, reference: Reference) -> Any:
    """Signs, levels of one scale, and factors that follow from them."""
    own = reference.centroids[reference.owners]
    whole = reference.rows - own
    found = _rabit_error(quantizer, columns, reference, whole, _residuals(reference))
    others = np.flatnonzero(~(found <= 1)) if reference.is_half else found[:0].astype(np.int64)
    if len(others):
        # Our own do not round what is left of a row to halves.
        mine = {name: values[others] for name, values in columns.items()}
        few = replace(reference, given=reference.given[others], rows=reference.rows[others], owners=reference.owners[others])
        found[others] = np.fmin(found[others], _rabit_error(quantizer, mine, few, whole[others], whole[others]))
    return found


def _rabit_error(quantizer: RabitQuantizer, columns: Columns, reference: Reference, whole: Floats, rest: Floats) -> Any:
    # The length is taken before rounding to halves, but with dot: it comes from the search for the nearest centroid.
    told = rest if reference.metric == "dot" else whole
    unsure = 1e-3 if reference.is_rounded else 5e-6 if reference.metric == "cosine" else 2e-6
    noise = np.sqrt(_squares(reference) / np.float32(quantizer.dimension)) * np.float32(unsure)
    share = np.float32(1e-4 if reference.is_rounded else 2e-5)
    return quantizer.code_error(
        rest, np.einsum("ij,ij->i", told, told), columns, reference.owners, reference.rotated, noise, share
    )


def _squares(reference: Reference) -> Any:
    """What may have been rounded: squared lengths of rows and of their centroids."""
    own = reference.centroids[reference.owners]
    return np.einsum("ij,ij->i", reference.rows, reference.rows) + np.einsum("ij,ij->i", own, own)


def _residuals(reference: Reference) -> Any:
    found = reference.rows - reference.centroids[reference.owners]
    return found.astype(np.float16).astype(np.float32) if reference.is_half else found


_ERRORS: Mapping[type, Callable[[Any, Columns, Reference], Any]] = {
    FlatQuantizer: _flat,
    ScalarQuantizer: _scalar,
    ProductQuantizer: _product,
    RabitQuantizer: _rabit,
}
