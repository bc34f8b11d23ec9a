"""`nearest={...}` as users write it, checked.

::

    nearest={"column": "vector", "q": [0.1, ...], "k": 10, "metric": "cosine", "nprobes": 20, "refine_factor": 5}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow import field_to_arrow
from lance_core.arrow_numpy import number_type, numpy_of
from lance_core.errors import InputError, WrongTypeError
from lance_core.format.index_details import Metric
from lance_core.format.schema import Schema
from lance_core.index.vector.distances import parse_metric

DEFAULT_K = 10
_KEYS = frozenset(
    {
        "column", "q", "k", "metric", "nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "use_index", "ef",
        "query_parallelism", "approx_mode", "distance_range", "search_effort",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class NearestQuery:
    """The request: the `k` rows whose vectors are nearest. `queries` is [n, dimension]; `metric` None: the index's.

    `low` (included) and `high` (excluded) bound the distance. `is_batch`: the query was a list of vectors.
    """

    column: str
    queries: npt.NDArray[Any]
    is_batch: bool
    element: np.dtype[Any]
    k: int = DEFAULT_K
    metric: Metric | None = None
    min_probes: int | None = None
    max_probes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    low: float | None = None
    high: float | None = None
    use_index: bool = True

    @property
    def flat_metric(self) -> Metric:
        """The metric without an index."""
        return self.metric or ("hamming" if self.element == np.uint8 else "l2")


def parse_nearest(given: object, schema: Schema) -> NearestQuery:
    """Check a `nearest` option. Raises InputError: no such column, no vectors, a wrong dimension, a count below one."""
    if not isinstance(given, Mapping) or "column" not in given or "q" not in given:
        raise InputError(f"nearest must be a dict with at least 'column' and 'q', got {type(given).__name__}")
    for key in given:
        if key not in _KEYS:
            raise TypeError(f"nearest got an unexpected key {key!r}; expected one of {', '.join(sorted(_KEYS))}")
    column = given["column"]
    element, dimension = vector_type(schema, column)
    queries, is_batch = _queries(given["q"], dimension, element)
    least, most = _probes(given)
    low, high = _range(given.get("distance_range"))
    use_index = given.get("use_index")
    metric = given.get("metric")
    query = NearestQuery(
        column=column,
        queries=queries,
        is_batch=is_batch,
        element=element,
        k=_count(given, "k") or DEFAULT_K,
        metric=None if metric is None else parse_metric(metric),
        min_probes=least,
        max_probes=most,
        refine_factor=_count(given, "refine_factor"),
        ef=_count(given, "ef"),
        low=low,
        high=high,
        use_index=use_index is None or bool(use_index),
    )
    if (query.flat_metric == "hamming") != (element == np.uint8):
        raise InputError(
            f"distance {query.flat_metric} cannot be combined with {element} vectors",
            cure="Use the metric hamming for uint8 vectors.",
        )
    return query


def vector_type(schema: Schema, column: object) -> tuple[np.dtype[Any], int]:
    """(element type, dimension) of a vector column. Raises InputError when there is none of that name."""
    if not isinstance(column, str):
        raise InputError(f"the name of a vector column must be a string, got {column!r}")
    stored: Any = field_to_arrow(schema, schema.find(column)).type
    storage: Any = stored.storage_type if isinstance(stored, pa.BaseExtensionType) else stored
    if not pa.types.is_fixed_size_list(storage):
        raise WrongTypeError(f"column {column!r} has type {stored}, expected a fixed-size list of numbers")
    value = storage.value_type
    if not (pa.types.is_floating(value) or value in (pa.uint8(), pa.int8())):
        raise WrongTypeError(f"column {column!r} holds lists of {value}, expected floats, int8 or uint8")
    return number_type(value), storage.list_size


def _queries(given: Any, dimension: int, element: np.dtype[Any]) -> tuple[npt.NDArray[Any], bool]:
    value = given.as_py() if isinstance(given, pa.Scalar) else given
    try:
        if isinstance(value, (pa.Array, pa.ChunkedArray)):
            value = value.to_pylist() if pa.types.is_nested(value.type) else numpy_of(value, may_copy=True)
        wide = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the query vector is not a list of numbers: {error}") from error
    if wide.ndim not in (1, 2) or wide.shape[-1] != dimension or wide.size == 0:
        raise InputError(
            f"the query has shape {wide.shape}, but the column's vectors have dimension {dimension}",
            cure=f"Search with {dimension} numbers, computed as those of the column were.",
        )
    if not np.isfinite(wide).all():
        raise InputError("the query vector has numbers that are not finite")
    target = element if element in (np.float64, np.uint8) else np.dtype(np.float32)
    return np.ascontiguousarray(wide.reshape(-1, dimension).astype(target)), wide.ndim == 2


def _count(given: Mapping[Any, Any], key: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"nearest: {key} must be a positive integer, got {value!r}")
    return int(value)


def _probes(given: Mapping[Any, Any]) -> tuple[int | None, int | None]:
    exact = _count(given, "nprobes")
    least = _count(given, "minimum_nprobes") or exact
    most = _count(given, "maximum_nprobes") or exact
    if least is not None and most is not None and least > most:
        raise InputError(f"nearest: minimum_nprobes {least} exceeds maximum_nprobes {most}")
    return least, most


def _range(given: Any) -> tuple[float | None, float | None]:
    if given is None:
        return None, None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"nearest: distance_range must be (low, high), where either may be None, got {given!r}")
    bounds = [None if bound is None else float(bound) for bound in given]
    if any(bound is not None and math.isnan(bound) for bound in bounds):
        raise InputError(f"nearest: distance_range has a bound that is not a number: {given!r}")
    return bounds[0], bounds[1]
