"""Build the result of a search: read the columns of its rows, apply the filter, add the score.

::

    picked 17, 3 with _distance 0.5, 0.9      columns ["id"]   ->   id, _distance in that order
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, no_rows
from lance_core.dataset.scan.chain import project
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.scan.projection import OutputColumn, Projection, needs_of
from lance_core.dataset.scan.take import take_addresses
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import SYSTEM_COLUMNS, Expr, ast, columns_of, evaluate
from lance_core.pick import keep


@dataclass(frozen=True, eq=False)
class Scored:
    """Living rows, best first, each with its score."""

    addresses: npt.NDArray[np.uint64]
    scores: npt.NDArray[np.float32]


@dataclass(frozen=True)
class SearchOptions:
    """How a search goes about it."""

    prefilter: bool = False
    fast_search: bool = False
    use_scalar_index: bool = True
    trust: IndexPolicy = DEFAULT_POLICY


class RowSearch(Protocol):
    """A scan whose rows a search picks: used by `LanceScanner`."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""

    def table(self) -> pa.Table:
        """Run the search; the best rows are first."""

    def explain(self, *, verbose: bool = False) -> str:
        """What is done, in words."""


def scored_table(
    snapshot: Snapshot,
    found: Scored,
    projection: Projection,
    *,
    score: str,
    filter: Expr | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> pa.Table:
    """The outputs for the rows found that pass the filter, in their order. The filter may name the score."""
    if filter is None:
        end = None if limit is None else offset + limit
        found = Scored(found.addresses[offset:end], found.scores[offset:end])
    if len(found.addresses) == 0:
        return no_rows(projection.arrow_schema)
    rows = _read(snapshot, found, projection, score, filter)
    if filter is not None:
        known: Any = evaluate(filter, rows)
        passed = known.fill_null(False)
        rows = keep(rows, passed).slice(offset, limit)
    return pa.Table.from_batches([project(rows, projection)], schema=projection.arrow_schema)


def _read(snapshot: Snapshot, found: Scored, projection: Projection, score: str, filter: Expr | None) -> pa.RecordBatch:
    schema = snapshot.manifest.schema
    tested = needs_of(schema, () if filter is None else (name for name in columns_of(filter) if name != score))
    ids, system = projection.field_ids | tested.field_ids, projection.system | tested.system
    scores = arrow_of(found.scores, pa.float32())
    if not ids and not system:
        return pa.RecordBatch.from_arrays([scores], [score])
    raw = take_addresses(snapshot, found.addresses, _plain(snapshot, ids, system))
    batch = raw.combine_chunks().to_batches()[0]
    return pa.RecordBatch.from_arrays([*batch.columns, scores], schema=batch.schema.append(pa.field(score, pa.float32())))


def _plain(snapshot: Snapshot, ids: frozenset[int], system: frozenset[str]) -> Projection:
    from lance_core.arrow import schema_to_arrow

    fields = [*schema_to_arrow(snapshot.part_of_schema(ids))] if ids else []
    fields += [pa.field(name, SYSTEM_COLUMNS[name]) for name in sorted(system)]
    outputs = tuple(OutputColumn(field, ast.Column((field.name,))) for field in fields)
    return Projection(outputs, ids, system)
