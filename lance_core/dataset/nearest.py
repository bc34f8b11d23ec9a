"""A scan with `nearest=`: vector indices answer for the fragments they cover, the rest is looked at row by row.

::

    prefilter       rows that fail the filter are never candidates: k rows come back when k pass
    postfilter      (the default, as in the official library) the k nearest are found first, then tested
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.dataset.explain import explain
from lance_core.dataset.index_use import Served, serve
from lance_core.dataset.nearest_flat import nearest_in, vector_plan
from lance_core.dataset.nearest_query import NearestQuery
from lance_core.dataset.projection import Projection
from lance_core.dataset.scored import Scored, scored_table
from lance_core.dataset.snapshot import Snapshot
from lance_core.expr import Expr
from lance_core.format.fragment import Fragment

DISTANCE = "_distance"


@dataclass(frozen=True)
class NearestOptions:
    """How a search goes about it."""

    prefilter: bool = False
    fast_search: bool = False
    use_scalar_index: bool = True
    strict: bool = False


@dataclass(frozen=True, eq=False)
class NearestSearch:
    """A planned search for the nearest rows of some fragments."""

    snapshot: Snapshot
    query: NearestQuery
    projection: Projection
    fragments: tuple[Fragment, ...]
    filter: Expr | None
    filter_text: object
    limit: int | None
    offset: int
    options: NearestOptions

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the result: a batch of queries has their number in front."""
        plain = self.projection.arrow_schema
        return pa.schema([pa.field("query_index", pa.int32(), nullable=False), *plain]) if self.query.is_batch else plain

    def table(self) -> pa.Table:
        """The nearest rows, nearest first; of a batch of queries one result after the other."""
        if not self.query.is_batch:
            return self._one(self.query.queries[0])
        parts = []
        for number, q in enumerate(self.query.queries):
            found = self._one(q)
            index = pa.array(np.full(found.num_rows, number, np.int32))
            parts.append(pa.Table.from_arrays([index, *found.columns], schema=self.schema))
        return pa.concat_tables(parts)

    def _one(self, q: npt.NDArray[Any]) -> pa.Table:
        return scored_table(
            self.snapshot,
            self._find(q),
            self.projection,
            score=DISTANCE,
            filter=None if self.options.prefilter else self.filter,
            limit=self.limit,
            offset=self.offset,
        )

    def _find(self, q: npt.NDArray[Any]) -> Scored:
        query = self.query
        metric = query.flat_metric
        return nearest_in(self.snapshot, self._flat.plan, query, q, metric, k=query.k)

    @cached_property
    def _flat(self) -> Served:
        """The scan of what no vector index answers for."""
        return self._served(self.fragments)

    def _served(self, fragments: tuple[Fragment, ...]) -> Served:
        wanted = self.filter if self.options.prefilter else None
        plan = vector_plan(self.snapshot, self.query.column, fragments, wanted)
        return serve(self.snapshot, plan, use_indices=self.options.use_scalar_index, strict=self.options.strict)

    def explain(self, *, verbose: bool = False) -> str:
        """What is searched, and how."""
        query = self.query
        lines = [f"nearest {query.k} rows by {query.flat_metric} distance of {query.column}"]
        lines.append("  KNNVectorDistance: every vector of")
        below = explain(self.snapshot, self._flat, self.filter_text, verbose=verbose)
        lines.extend(f"    {line}" for line in below.splitlines())
        if self.filter is not None and not self.options.prefilter:
            lines.append(f"  of the rows found keep those with {self.filter_text}")
        return "\n".join(lines)
