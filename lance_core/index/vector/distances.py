"""Distances by the name of a metric, over rows of any element type; and the few that are smallest.

::

    distances("l2", q, rows)          squared              distances("cosine", q, rows)   1 - cos, NaN for a row of zeros
    distances("dot", q, rows)         1 - dot product      distances("hamming", q, rows)  bits that differ (uint8 only)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats
from lance_core.errors import InputError
from lance_core.format.index_details import Metric
from lance_core.kernels.distance import cosine_rows, dot_rows, hamming_rows, l2_rows

_KERNELS: Mapping[str, Any] = {"l2": l2_rows, "cosine": cosine_rows, "dot": dot_rows, "hamming": hamming_rows}
_METRICS: Mapping[str, Metric] = {
    "l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming",
}  # fmt: skip


def parse_metric(name: object) -> Metric:
    """A metric as users write it: any case, "euclidean" for "l2". Raises InputError."""
    found = _METRICS.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown metric {name!r}; expected l2, cosine, dot or hamming")
    return found


def distances(metric: Metric, query: npt.NDArray[Any], rows: npt.NDArray[Any]) -> Floats:
    """float32[n] for rows [n, dim] and a query [dim] of the same element type (float32, float64; uint8 for hamming)."""
    out = np.empty(len(rows), np.float32)
    flat = np.ascontiguousarray(rows).reshape(-1)
    _KERNELS[metric](np.ascontiguousarray(query, flat.dtype), flat, len(query), out)
    return out


def working_type(element: np.dtype[Any], metric: Metric) -> np.dtype[Any]:
    """What distances are computed in: doubles for doubles, bytes for hamming, else float32."""
    if metric == "hamming":
        return np.dtype(np.uint8)
    return element if element == np.float64 else np.dtype(np.float32)


def smallest(ids: npt.NDArray[np.uint64], values: Floats, count: int) -> tuple[npt.NDArray[np.uint64], Floats]:
    """The `count` smallest values float32[n] with their ids uint64[n], sorted by value, then id."""
    if len(values) > count:
        bound = np.partition(values, count - 1)[count - 1]
        kept = values <= bound
        ids, values = ids[kept], values[kept]
    order = np.lexsort((ids, values))[:count]
    return ids[order], values[order]
