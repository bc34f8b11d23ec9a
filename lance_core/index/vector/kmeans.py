"""k-means over vectors, with the official library's names (`lance.util.KMeans`).

::

    model = KMeans(8)
    model.fit(vectors)
    model.predict(vectors)        the cluster of each row, uint32
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import InputError
from lance_core.index.vector.clustering import owners_of, train, unit

_METRICS = ("l2", "cosine", "dot")


class KMeans:
    """`k` clusters of float32 vectors by "l2", "cosine" or "dot" distance."""

    def __init__(self, k: int, metric_type: str = "l2", max_iters: int = 50, centroids: Any = None) -> None:
        metric = "l2" if metric_type.lower() == "euclidean" else metric_type.lower()
        if metric not in _METRICS:
            raise InputError(f"unknown metric_type {metric_type!r}", cure=f"Use one of {', '.join(_METRICS)}.")
        self.k = k
        self._metric = metric
        self._max_iters = max_iters
        self._centroids: Floats | None = None if centroids is None else _rows(centroids)

    def __repr__(self) -> str:
        return f"KMeans(k={self.k}, metric_type={self._metric})"

    @property
    def centroids(self) -> pa.Array[Any] | None:
        """The centres as a column of `k` float32 tensors [dimension], None before `fit`."""
        if self._centroids is None:
            return None
        size = self._centroids.shape[1]
        made: Any = pa
        lists = pa.FixedSizeListArray.from_arrays(arrow_of(self._centroids.reshape(-1)), size)
        found: pa.Array[Any] = made.ExtensionArray.from_storage(made.fixed_shape_tensor(pa.float32(), (size,)), lists)
        return found

    def fit(self, data: Any) -> None:
        """Find the centres of float32[n, dimension]. InputError when there are fewer vectors than clusters."""
        rows = self._prepared(data)
        if len(rows) < self.k:
            raise InputError(f"{len(rows)} vectors are too few for {self.k} clusters")
        self._centroids, _ = train(rows, self.k, is_spherical=self._metric == "dot", max_iters=self._max_iters)

    def predict(self, data: Any) -> pa.Array[Any]:
        """The cluster uint32[n] of each vector of float32[n, dimension]. InputError before `fit`."""
        if self._centroids is None:
            raise InputError("the model is not trained", cure="Call fit first.")
        owners, _ = owners_of(self._prepared(data), self._centroids, is_spherical=self._metric == "dot")
        return arrow_of(owners, pa.uint32())

    def _prepared(self, data: Any) -> Floats:
        rows = _rows(data)
        found: Floats = unit(rows) if self._metric == "cosine" else rows
        return found


def _rows(data: Any) -> Floats:
    """float32[n, dimension] of a two-dimensional array, a fixed-size list column or a tensor column."""
    array: Any = data.storage if isinstance(data, pa.ExtensionArray) else data
    if isinstance(array, pa.FixedSizeListArray):
        array = numpy_of(array.flatten(), may_copy=True).reshape(-1, array.type.list_size)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != np.float32:
        raise InputError("expected float32 vectors: a two-dimensional array, a fixed-size list column or a tensor column")
    return np.ascontiguousarray(array)
