"""How much of an exact search an index finds: one pass over the vectors for the truth, one search for each sampled row.

::

    1,000 rows of the column, evenly apart, as queries; k = 10
    truth     the distance of the 10th nearest, by every vector of the column
    found     the 10 that the index gives; those count that are no farther (equal vectors are equally near)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.dataset import LanceDataset
from lance_core.errors import InputError

Vectors = Any
"""(rows, dimensions) of float32."""

_BATCH_ROWS = 4096
_TOLERANCE = 1e-4


def measure_recall(table: LanceDataset, column: str, *, k: int, sample: int, search: Mapping[str, Any]) -> dict[str, Any]:
    """{"recall", "queries", "metric"}: of `sample` rows as queries. InputError for a column without a vector index."""
    metric = _metric_of(table, column)
    queries = _sampled(table, column, sample)
    if not len(queries):
        return {"recall": 1.0, "queries": 0, "metric": metric}
    k = min(k, table.count_rows(f"`{column}` IS NOT NULL"))
    limits = _farthest(table, column, queries, k, metric)
    hits = 0
    for query, limit in zip(queries, limits, strict=True):
        nearest = {"column": column, "q": query, "k": k, **search}
        found = _vectors(table.to_table(columns=[column], nearest=nearest).column(column).combine_chunks())
        if len(found):
            distances = _distances(query[None, :], found, metric)[0]
            hits += int((distances <= limit + _TOLERANCE * (1 + abs(limit))).sum())
    return {"recall": min(1.0, hits / (k * len(queries))), "queries": len(queries), "metric": metric}


def _metric_of(table: LanceDataset, column: str) -> str:
    for index in table.list_indices():
        if index["fields"] == [column] and ("IVF" in str(index["type"]).upper() or "HNSW" in str(index["type"]).upper()):
            (first, *_) = table.stats.index_stats(str(index["name"]))["indices"]
            metric = str(first["metric_type"]).lower()
            if metric not in _METRICS:
                raise InputError(f"the recall of an index by {metric!r} cannot be measured", cure="Pass min_recall=None.")
            return metric
    raise InputError(f"column {column!r} has no vector index whose recall could be measured", cure="Build one first.")


_METRICS = ("l2", "cosine", "dot")


def _sampled(table: LanceDataset, column: str, sample: int) -> Vectors:
    total = table.count_rows()
    spread = np.linspace(0, max(total - 1, 0), num=min(sample, total)).astype(np.int64)
    places = [int(place) for place in np.unique(spread)]
    return _vectors(table.take(places, columns=[column]).column(column))


def _vectors(values: Any) -> Vectors:
    """The vectors that are not null, as float32."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    values = values.drop_null()
    if not pa.types.is_fixed_size_list(values.type):
        raise InputError(f"recall is measured for vectors of a fixed size, got {values.type}")
    size = values.type.list_size
    return numpy_of(values.flatten().cast(pa.float32()), may_copy=True).reshape(-1, size)


def _farthest(table: LanceDataset, column: str, queries: Vectors, k: int, metric: str) -> Any:
    """For each query the distance of its k-th nearest vector."""
    nearest = np.full((len(queries), k), np.inf, np.float32)
    for batch in table.to_batches(columns=[column], batch_size=_BATCH_ROWS):
        vectors = _vectors(batch.column(0))
        if len(vectors):
            both = np.concatenate([nearest, _distances(queries, vectors, metric)], axis=1)
            nearest = np.partition(both, k - 1, axis=1)[:, :k]
    return nearest.max(axis=1)


def _distances(queries: Vectors, vectors: Vectors, metric: str) -> Any:
    products = queries @ vectors.T
    if metric == "dot":
        return -products
    if metric == "cosine":
        lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)[None, :]
        return 1.0 - products / np.maximum(lengths, np.finfo(np.float32).tiny)
    squares = (queries**2).sum(axis=1)[:, None] + (vectors**2).sum(axis=1)[None, :]
    return np.maximum(squares - 2.0 * products, 0.0)
