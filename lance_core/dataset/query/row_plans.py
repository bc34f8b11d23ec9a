"""Plans that find the rows of a scanner: a plain scan, or a search. Two plans behind one protocol.

::

    plan_rows(snapshot, ScanRequest(filter="id > 3"))       PlainPlan: fragments are read and tested
    plan_rows(snapshot, ScanRequest(nearest={...}))         SearchPlan: a search picks the rows, best first
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from lance_core.cached import cached_property
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.indexing.served import Served
from lance_core.dataset.query.explain import explain
from lance_core.dataset.query.plan_search import plan_search
from lance_core.dataset.scan.address_pruning import nearby
from lance_core.dataset.scan.order_by import key_columns
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS, ScanPlan, plan_scan
from lance_core.dataset.scan.postprocess import plan_finish
from lance_core.dataset.scan.projection import Projection, plan_projection
from lance_core.dataset.scan.request import ScanRequest, as_filter
from lance_core.dataset.scan.scored_rows import RowSearch
from lance_core.dataset.scan.sinks import count_selected, scan, scan_table
from lance_core.dataset.scan.take import take_rows
from lance_core.dataset.snapshot.snapshot import Snapshot


class RowPlan(Protocol):
    """Rows that were requested, planned; each call finds them again."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream."""

    def table(self) -> pa.Table:
        """The rows as a table."""

    def count(self) -> int:
        """How many rows there are."""

    def take(self, indices: Any) -> pa.Table:
        """Rows by their position in the result."""

    def explain(self, *, verbose: bool) -> str:
        """What is done, in words."""

    def scanned(self) -> Mapping[str, int]:
        """Counts for statistics of a run."""


class SearchPlan:
    """A search picks the rows, so the whole result exists before its first batch."""

    def __init__(self, search: RowSearch, request: ScanRequest) -> None:
        self._search = search
        self._batch_size = request.batch_size

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, with the score."""
        return self._search.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, best first."""
        return iter(self.table().to_batches(max_chunksize=self._batch_size))

    def table(self) -> pa.Table:
        """The rows, best first."""
        return self._search.table()

    def count(self) -> int:
        """How many rows were found."""
        return int(self.table().num_rows)

    def take(self, indices: Any) -> pa.Table:
        """Rows by their rank."""
        return self.table().take(indices)

    def explain(self, *, verbose: bool) -> str:
        """How the search goes about it."""
        return self._search.explain(verbose=verbose)

    def scanned(self) -> Mapping[str, int]:
        """Nothing: a search has no read statistics."""
        return {}


class PlainPlan:
    """Fragments are read and rows tested; indices answer what they can of the filter. Memory is bounded."""

    def __init__(self, snapshot: Snapshot, request: ScanRequest, *, opened: Snapshot | None = None) -> None:
        self._snapshot = snapshot
        self._request = request
        schema = snapshot.manifest.schema
        self._filter = None if request.filter is None else as_filter(request.filter, snapshot.arrow_schema)
        self.projection = plan_projection(
            schema, request.columns, with_row_id=request.with_row_id, with_row_address=request.with_row_address
        )
        self._finish = plan_finish(
            opened or snapshot, self.projection, deleted=request.include_deleted_rows, blobs=request.blob_handling
        )
        if self._finish is not None:
            self.projection = self._finish.projection
        if request.order_by:
            # A wrong column is an error now.
            plan_projection(schema, key_columns(request.order_by))

    @cached_property
    def plan(self) -> ScanPlan:
        """What will be read. Made late: it looks at every fragment, and a count may not need any."""
        return self._planned(self.projection)

    @cached_property
    def _served(self) -> Served:
        return self._serve(self.plan)

    def _serve(self, plan: ScanPlan) -> Served:
        request = self._request
        use = request.use_scalar_index and not request.include_deleted_rows
        return serve(self._snapshot, plan, use_indices=use, trust=request.trust, fast=request.fast_search)

    def _planned(self, projection: Projection) -> ScanPlan:
        manifest, request = self._snapshot.manifest, self._request
        every = manifest.fragments if request.fragments is None else request.fragments
        fragments = nearby(manifest, every, self._filter)
        return plan_scan(
            manifest.schema, fragments, projection, filter=self._filter, limit=request.limit, offset=request.offset
        )

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self.projection.arrow_schema if self._finish is None else self._finish.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream."""
        found = scan(self._snapshot, self._served.plan, batch_size=self._request.batch_size or DEFAULT_BATCH_ROWS)
        return found if self._finish is None else map(self._finish, found)

    def table(self) -> pa.Table:
        """The rows as a table."""
        table = scan_table(self._snapshot, self._served.plan, batch_size=self._request.batch_size)
        if self._finish is None:
            return table
        return pa.Table.from_batches(map(self._finish, table.to_batches()), schema=self._finish.schema)

    def count(self) -> int:
        """How many rows there are; without a filter nothing but the manifest is read."""
        request = self._request
        if self._filter is None:
            if request.limit is None and not request.offset and request.fragments is None:
                return self._snapshot.manifest.num_rows
            return sum(task.num_rows for task in self.plan.tasks)
        plan = self._planned(plan_projection(self._snapshot.manifest.schema, []))
        return count_selected(self._snapshot, self._serve(plan).plan)

    def take(self, indices: Any) -> pa.Table:
        """Rows by their position; only those are read where all rows are requested."""
        request = self._request
        if self._finish is not None or request.filter is not None or request.fragments is not None:
            return self.table().take(indices)
        return take_rows(self._snapshot, indices, self.projection)

    def explain(self, *, verbose: bool) -> str:
        """What is read, and which index answers what."""
        return explain(self._snapshot, self._served, self._request.filter, verbose=verbose)

    def scanned(self) -> Mapping[str, int]:
        """Rows and fragments that were read."""
        tasks = self._served.plan.tasks
        return {"rows_scanned": sum(task.num_rows for task in tasks), "fragments_scanned": len(tasks)}


def plan_rows(snapshot: Snapshot, request: ScanRequest, *, opened: Snapshot) -> PlainPlan | SearchPlan:
    """The plan for a request over a snapshot, which is `opened` but for its deletions where deleted rows are requested.

    Raises InputError, FilterError.
    """
    search = plan_search(snapshot, request)
    return PlainPlan(snapshot, request, opened=opened) if search is None else SearchPlan(search, request)
