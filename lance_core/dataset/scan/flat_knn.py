"""Nearest rows without an index: every vector is compared, batch by batch, the best so far are kept.

::

    nearest_in(snapshot, plan, query, q, "l2", k=3)   ->   Scored([17, 3, 9], [0.5, 0.9, 1.2])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.dataset.scan.nearest_request import NearestQuery
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, ScanPlan, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.scored_rows import Scored
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.scan.take import take_addresses
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import Expr
from lance_core.format.fragment import Fragment
from lance_core.format.index_details import Metric
from lance_core.index.vector.distances import distances, smallest, working_type

BATCH_BYTES = 16 << 20
"""Vectors compared at once."""


def vector_plan(snapshot: Snapshot, column: str, fragments: Sequence[Fragment], filter: Expr | None = None) -> ScanPlan:
    """The scan that gives (vector, _rowaddr) of live rows."""
    schema = snapshot.manifest.schema
    return plan_scan(schema, fragments, plan_projection(schema, [column, "_rowaddr"]), filter=filter)


def nearest_in(
    snapshot: Snapshot, plan: ScanPlan, query: NearestQuery, q: npt.NDArray[Any], metric: Metric, *, k: int
) -> Scored:
    """The `k` nearest rows of a plan made by `vector_plan`, within the distance range of the query."""
    best = Scored(np.empty(0, np.uint64), np.empty(0, np.float32))
    row_bytes = max(1, query.element.itemsize * len(q))
    size = max(256, min(LARGE_BATCH_ROWS, BATCH_BYTES // row_bytes))
    for batch in scan(snapshot, plan, batch_size=size):
        addresses = numpy_of(batch.column(1))
        found = measured(batch.column(0), addresses, query, q, metric)
        best = merged([best, found], k)
    return best


def measured(
    column: Any, addresses: npt.NDArray[np.uint64], query: NearestQuery, q: npt.NDArray[Any], metric: Metric
) -> Scored:
    """Distances of rows, without rows that have no vector (or are out of range)."""
    rows, present = vectors_of(column, working_type(query.element, metric))
    values = distances(metric, q, rows)
    kept = in_range(values, query)
    mine = addresses if present is None else addresses[present]
    return Scored(mine[kept], values[kept])


def in_range(values: npt.NDArray[np.float32], query: NearestQuery) -> npt.NDArray[np.bool_]:
    """Which distances are numbers within the query's range (low included, high excluded)."""
    kept: npt.NDArray[np.bool_] = ~np.isnan(values)
    if query.low is not None:
        kept &= values >= query.low
    if query.high is not None:
        kept &= values < query.high
    return kept


def vectors_of(column: Any, target: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """(rows [n, dimension] that are not null, which rows those are; None: all)."""
    array: Any = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    present = None
    if array.null_count:
        present = numpy_of(array.is_valid(), may_copy=True)
    values = numpy_of(array.flatten(), may_copy=True)
    return values.reshape(-1, array.type.list_size).astype(target, copy=False), present


def merged(parts: Sequence[Scored], k: int) -> Scored:
    """The `k` best of several results; of equal distances the lower address first."""
    addresses = np.concatenate([part.addresses for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Scored(*smallest(addresses, scores, k))


def refined(
    snapshot: Snapshot, found: Scored, query: NearestQuery, q: npt.NDArray[Any], metric: Metric, *, k: int
) -> Scored:
    """The rows found, measured by their stored vectors."""
    if len(found.addresses) == 0:
        return found
    projection = plan_projection(snapshot.manifest.schema, [query.column])
    table = take_addresses(snapshot, found.addresses, projection)
    column = table.column(0).combine_chunks()
    return merged([measured(column, found.addresses, query, q, metric)], k)
