"""A scan with `nearest=`: vector indices answer for the fragments they cover, the rest is scanned row by row.

::

    prefilter       rows that fail the filter are never candidates: k rows come back when k pass
    postfilter      (the default, as in the official library) the k nearest are found first, then tested
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.cached import cached_property
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.indexing.served import Served
from lance_core.dataset.indexing.vector_search import (
    VectorSegment,
    metric_of_index,
    row_mask,
    search_segment,
    vector_segments,
    vector_title,
)
from lance_core.dataset.query.explain import explain
from lance_core.dataset.scan.flat_knn import merged, nearest_in, refined, vector_plan
from lance_core.dataset.scan.nearest_request import NearestQuery
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import Projection, plan_projection
from lance_core.dataset.scan.scored_rows import Scored, SearchOptions, scored_table
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import Expr
from lance_core.format.fragment import Fragment
from lance_core.format.index_details import Metric

DISTANCE = "_distance"


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
    options: SearchOptions

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the result: a batch of queries has their number in front."""
        plain = self.projection.arrow_schema
        return pa.schema([pa.field("query_index", pa.int32(), nullable=False), *plain]) if self.query.is_batch else plain

    def table(self) -> pa.Table:
        """The nearest rows, nearest first; of a batch of queries one result after the other, bounded as a whole."""
        if not self.query.is_batch:
            return self._one(self.query.queries[0], limit=self.limit, offset=self.offset)
        parts = []
        for number, q in enumerate(self.query.queries):
            found = self._one(q, limit=None, offset=0)
            index = arrow_of(np.full(found.num_rows, number, np.int32))
            parts.append(pa.Table.from_arrays([index, *found.columns], schema=self.schema))
        return pa.concat_tables(parts).slice(self.offset, self.limit)

    def _one(self, q: npt.NDArray[Any], *, limit: int | None, offset: int) -> pa.Table:
        return scored_table(
            self.snapshot,
            self._find(q),
            self.projection,
            score=DISTANCE,
            filter=None if self.options.prefilter else self.filter,
            limit=limit,
            offset=offset,
        )

    def _find(self, q: npt.NDArray[Any]) -> Scored:
        query, wide = self.query, self.query.k * (self.query.refine_factor or 1)
        parts: list[Scored] = []
        failed: set[int] = set()
        for segment in self._segments:
            mask = row_mask(self.snapshot, segment.coverage, self._passing)
            found = search_segment(self.snapshot, segment, query, q, mask, k=wide, trust=self.options.trust)
            if found is None:
                failed |= segment.coverage
            else:
                parts.append(found)
        flat = self._flat
        if failed:
            flat = self._served(tuple(item for item in self.fragments if item.id in failed or item.id not in self._covered))
        is_flat = bool(flat.plan.tasks) and (bool(failed) or not self.options.fast_search or not self._segments)
        if parts and (query.refine_factor or is_flat):
            # Estimates from codes are not compared with distances that were measured.
            parts = [refined(self.snapshot, merged(parts, wide), query, q, self._metric, k=query.k)]
        if is_flat:
            parts.append(nearest_in(self.snapshot, flat.plan, query, q, self._metric, k=query.k))
        return merged(parts, query.k) if parts else Scored(np.empty(0, np.uint64), np.empty(0, np.float32))

    @cached_property
    def _segments(self) -> tuple[VectorSegment, ...]:
        """The segments that are searched, their coverage cut to the fragments of the scan."""
        if not self.query.use_index:
            return ()
        asked = frozenset(fragment.id for fragment in self.fragments)
        found = vector_segments(self.snapshot, self.query.column, self.query.metric)
        cut = (replace(segment, coverage=segment.coverage & asked) for segment in found)
        return tuple(segment for segment in cut if segment.coverage)

    @cached_property
    def _covered(self) -> frozenset[int]:
        return frozenset().union(*(segment.coverage for segment in self._segments))

    @property
    def _metric(self) -> Metric:
        if self._segments:
            return self._segments[0].metric
        told = None
        if self.query.metric is None and self.query.use_index:
            told = metric_of_index(self.snapshot, self.query.column)
        return told or self.query.flat_metric

    @cached_property
    def _passing(self) -> npt.NDArray[np.uint64] | None:
        """Addresses of covered rows that pass the prefilter; None when there is none."""
        if self.filter is None or not self.options.prefilter:
            return None
        schema = self.snapshot.manifest.schema
        fragments = [fragment for fragment in self.fragments if fragment.id in self._covered]
        plan = plan_scan(schema, fragments, plan_projection(schema, ["_rowaddr"]), filter=self.filter)
        served = serve(self.snapshot, plan, use_indices=self.options.use_scalar_index, trust=self.options.trust)
        found = [numpy_of(batch.column(0)) for batch in scan(self.snapshot, served.plan, batch_size=LARGE_BATCH_ROWS)]
        return np.concatenate(found) if found else np.empty(0, np.uint64)

    @cached_property
    def _flat(self) -> Served:
        """The scan of what no vector index answers for."""
        return self._served(tuple(fragment for fragment in self.fragments if fragment.id not in self._covered))

    def _served(self, fragments: tuple[Fragment, ...]) -> Served:
        wanted = self.filter if self.options.prefilter else None
        plan = vector_plan(self.snapshot, self.query.column, fragments, wanted)
        return serve(self.snapshot, plan, use_indices=self.options.use_scalar_index, trust=self.options.trust)

    def explain(self, *, verbose: bool = False) -> str:
        """What is searched, and how."""
        query = self.query
        lines = [f"nearest {query.k} rows by {self._metric} distance of {query.column}"]
        lines.extend(self._segment_line(segment) for segment in self._segments)
        if query.refine_factor and self._segments:
            lines.append(f"    the best {query.k * query.refine_factor} are compared again by their stored vectors")
        if self._flat.plan.tasks and not (self.options.fast_search and self._segments):
            lines.append("  KNNVectorDistance: every vector of")
            below = explain(self.snapshot, self._flat, self.filter_text, verbose=verbose)
            lines.extend(f"    {line}" for line in below.splitlines())
        if self.filter is not None:
            when = "before the search, only rows" if self.options.prefilter else "of the rows found, those"
            lines.append(f"  keep {when} with {self.filter_text}")
        return "\n".join(lines)

    def _segment_line(self, segment: VectorSegment) -> str:
        query = self.query
        probes = f"{query.min_probes or 'auto'} to {query.max_probes or 'all'}"
        return (
            f"  ANNSubIndex: {segment.index.name} ({vector_title(segment.index)}) segment {segment.index.uuid}, "
            f"probes {probes}, answers for {len(segment.coverage)} fragments"
        )
