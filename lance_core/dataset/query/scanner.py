"""A planned scan that can be run: `LanceDataset.scanner(...)`.

::

    scanner = dataset.scanner(columns=["id"], filter="id > 3", limit=10)
    scanner.to_table()      scanner.to_batches()      scanner.count_rows()      scanner.to_reader()

Planning is done at once, so that a wrong column or filter fails where it was written.

Plans that find the rows of a scanner: a plain scan, or a search. Two plans behind one protocol.

::

    plan_rows(snapshot, ScanRequest(filter="id > 3"))       PlainPlan: fragments are read and tested
    plan_rows(snapshot, ScanRequest(nearest={...}))         SearchPlan: a search picks the rows, best first

The searches of a scan: nearest vectors, or full-text queries.

::

    ScanRequest(nearest={"column": "v", "q": [0.1, 0.2], "k": 10})     -> NearestSearch
    ScanRequest(full_text_query="fast train")                         -> TextScan

Their rooms are loaded when the first search comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from lance_core import pick
from lance_core.arrow_numpy import no_rows, numpy_of
from lance_core.cached import cached_property
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.indexing.served import Served
from lance_core.dataset.query.explain import explain
from lance_core.dataset.scan.blobs import open_blobs
from lance_core.dataset.scan.order_by import key_columns, sorted_indices
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS, ScanPlan, check_bounds, nearby, plan_scan
from lance_core.dataset.scan.postprocess import (
    ADDRESS,
    BLOB_MODES,
    as_objects,
    blob_outputs,
    plan_finish,
    without_deletions,
)
from lance_core.dataset.scan.projection import Projection, plan_projection
from lance_core.dataset.scan.rebatch import at_most_bytes, exactly
from lance_core.dataset.scan.request import ScanRequest, as_filter
from lance_core.dataset.scan.scored_rows import RowSearch, SearchOptions
from lance_core.dataset.scan.sinks import count_selected, scan, scan_table
from lance_core.dataset.scan.statistics import ScanStatistics, report
from lance_core.dataset.scan.take import take_addresses, take_rows
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import Expr
from lance_core.io.wrapped import CountingStore
from lance_core.shortage import told_while, verbs_tell_shortages

__all__ = ["LanceScanner", "ScanRequest", "as_filter"]


def _check(request: ScanRequest) -> None:
    for name in ("batch_size", "batch_size_bytes"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, got {value}")
    check_bounds(request.limit, request.offset)
    if request.strict_batch_size and request.batch_size_bytes is not None:
        raise InputError("strict_batch_size cannot be combined with batch_size_bytes", cure="Pass only one of them.")
    if request.nearest is None and request.full_text_query is None:
        return
    if request.include_deleted_rows or request.blob_handling is not None:
        name = "include_deleted_rows" if request.include_deleted_rows else "blob_handling"
        raise InputError(f"a search does not support {name}", cure="Search for row ids, then scan or take those rows.")


def ordered_table(snapshot: Snapshot, request: ScanRequest) -> pa.Table:
    """The rows a request selects, sorted. Of a limited request only the columns sorted by are read of all rows."""
    offset, limit = request.offset or 0, request.limit
    every = replace(request, order_by=(), limit=None, offset=None, scan_stats_callback=None)
    if request.nearest is not None or request.full_text_query is not None:
        found = LanceScanner(snapshot, replace(every, limit=limit, offset=request.offset)).to_table()
        return pick.take(found, sorted_indices(found, request.order_by))
    names = key_columns(request.order_by)
    small = limit is not None and request.fragments is None and not request.include_deleted_rows
    small = small and request.blob_handling is None
    keys_only = replace(every, columns=[*names, ADDRESS] if small and ADDRESS not in names else names, blob_handling=None)
    keys = LanceScanner(snapshot, replace(keys_only, with_row_id=request.include_deleted_rows, with_row_address=False))
    table = keys.to_table()
    wanted = sorted_indices(table, request.order_by).slice(offset, limit)
    if not small:
        return pick.take(LanceScanner(snapshot, every).to_table(), wanted)
    projection = PlainPlan(snapshot, every).projection
    addresses: Any = table.column(ADDRESS).take(wanted)
    if len(addresses) == 0:
        return no_rows(projection.arrow_schema)
    return take_addresses(snapshot, numpy_of(addresses), projection)


def blob_frame(snapshot: Snapshot, request: ScanRequest, blob_mode: str, **kwargs: Any) -> Any:
    """A scan's result as a pandas frame with blobs in the requested form. InputError for an unknown form."""
    if blob_mode not in BLOB_MODES:
        raise InputError(f"unknown blob_mode {blob_mode!r}", cure=f"Use one of {', '.join(BLOB_MODES)}.")
    plain = replace(request, blob_handling=BLOB_MODES[blob_mode], scan_stats_callback=None)
    blobs = blob_outputs(snapshot, PlainPlan(snapshot, replace(plain, blob_handling=None)).projection)
    if blob_mode != "lazy" or not blobs:
        return LanceScanner(snapshot, plain).to_table().to_pandas(**kwargs)
    table = LanceScanner(snapshot, replace(plain, with_row_address=True)).to_table()
    addresses: Any = numpy_of(table.column(ADDRESS))
    if not request.with_row_address and ADDRESS not in (request.columns or ()):
        table = table.drop_columns([ADDRESS])
    frame = table.to_pandas(**kwargs)
    for name, stored in blobs.items():
        frame[name] = as_objects(open_blobs(snapshot, stored, addresses))
    return frame


@verbs_tell_shortages
class LanceScanner:
    """One planned scan of one version; it may be run many times."""

    def __init__(self, snapshot: Snapshot, request: ScanRequest) -> None:
        _check(request)
        self._counting = None if request.scan_stats_callback is None else CountingStore(snapshot.store)
        self._own = snapshot if self._counting is None else replace(snapshot, store=self._counting)
        self._snapshot = without_deletions(self._own) if request.include_deleted_rows else self._own
        if request.include_deleted_rows and request.fragments is not None:
            wanted = {fragment.id for fragment in request.fragments}
            whole = [fragment for fragment in self._snapshot.manifest.fragments if fragment.id in wanted]
            request = replace(request, fragments=whole)
        self._request = request
        self._rows: RowPlan = plan_rows(self._snapshot, request, opened=snapshot)

    @property
    def plan(self) -> ScanPlan:
        """What a plain scan will read. InputError for a search."""
        if not isinstance(self._rows, PlainPlan):
            raise InputError("a search has no scan plan", cure="Use explain_plan.")
        return self._rows.plan

    @property
    def dataset_schema(self) -> pa.Schema:
        """The Arrow schema of the table, whatever this scan projects."""
        return self._snapshot.visible_schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._rows.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The result as a stream; memory is bounded whatever the table's size, unless rows are ordered or searched."""
        request = self._request
        batches = told_while(self._measured(self._batches()))
        if request.strict_batch_size:
            return exactly(batches, request.batch_size or DEFAULT_BATCH_ROWS)
        return batches if request.batch_size_bytes is None else at_most_bytes(batches, request.batch_size_bytes)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._request.order_by:
            return iter(self._table().to_batches(max_chunksize=self._request.batch_size))
        return self._rows.batches()

    def _measured(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._counting is None:
            return batches
        return self._reported(batches)

    def _reported(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start, rows = time.perf_counter_ns(), 0
        for batch in batches:
            rows += batch.num_rows
            yield batch
        self._report(rows, time.perf_counter_ns() - start)

    def _report(self, rows: int, nanoseconds: int) -> None:
        callback = self._request.scan_stats_callback
        if callback is None or self._counting is None:
            return
        counts = self._counting.counts
        scanned = {"rows_returned": rows, **self._rows.scanned()}
        made = ScanStatistics(
            iops=counts.requests,
            requests=counts.requests,
            bytes_read=counts.bytes_read,
            all_counts=scanned,
            all_times={"elapsed": nanoseconds},
        )
        self._counting.reset()
        report(callback, made)

    def scan_batches(self) -> Iterator[pa.RecordBatch]:
        """`to_batches` under its other name."""
        return self.to_batches()

    def to_table(self) -> pa.Table:
        """Run the scan and return all of its rows as one Arrow table.

        Raises CorruptFileError or NotFoundError for data files that are damaged or gone.
        """
        start = time.perf_counter_ns()
        table = self._table()
        self._report(table.num_rows, time.perf_counter_ns() - start)
        return table

    def _table(self) -> pa.Table:
        if self._request.order_by:
            return ordered_table(self._own, self._request)
        return self._rows.table()

    def to_reader(self) -> pa.RecordBatchReader:
        """The result as a reader that other Arrow libraries take."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(self, *, blob_mode: str | None = None, **kwargs: Any) -> Any:
        """The whole result as a pandas frame; `kwargs` go to `pyarrow.Table.to_pandas`.

        `blob_mode`: blob columns as "lazy" files (`BlobFile`), "bytes" or "descriptions"; None: as they were written.
        """
        if blob_mode is None:
            return self.to_table().to_pandas(**kwargs)
        return blob_frame(self._own, self._request, blob_mode, **kwargs)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The result for any library that speaks the Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def count_rows(self) -> int:
        """Rows of the result; without a filter nothing but the manifest is read."""
        return self._rows.count()

    def head(self, num_rows: int) -> pa.Table:
        """The first rows of the result."""
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        return LanceScanner(self._snapshot, replace(self._request, limit=limit)).to_table()

    def take(self, indices: Any) -> pa.Table:
        """Rows by their position in the result of a scan without filter, limit and fragments."""
        return pick.take(self.to_table(), indices) if self._request.order_by else self._rows.take(indices)

    def explain_plan(self, verbose: bool = False) -> str:
        """What will be read, in words, and which index answers what."""
        return self._rows.explain(verbose=verbose)

    def analyze_plan(self) -> str:
        """Run the scan, and describe it: the plan, the rows, the seconds it took to plan and to read."""
        start = time.perf_counter()
        told = self.explain_plan(verbose=True)
        planned = time.perf_counter()
        batches = [(batch.num_rows, batch.nbytes) for batch in self.to_batches()]
        rows, size = (sum(item[number] for item in batches) for number in (0, 1))
        took = f"planned in {planned - start:.4f} s, read in {time.perf_counter() - planned:.4f} s"
        return f"{told}\n{rows} rows, {size} bytes in {len(batches)} batches; {took}"


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
        return pick.take(self.table(), indices)

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
            return pick.take(self.table(), indices)
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


def plan_nearest(snapshot: Snapshot, request: ScanRequest) -> RowSearch:
    """The search of a request with `nearest`. Raises InputError, FilterError."""
    from lance_core.dataset.query.vector_query import DISTANCE, NearestSearch
    from lance_core.dataset.scan.nearest_request import parse_nearest

    limit, offset = check_bounds(request.limit, request.offset)
    return NearestSearch(
        snapshot=snapshot,
        query=parse_nearest(request.nearest, snapshot.manifest.schema),
        projection=_projection(snapshot, request, DISTANCE),
        fragments=tuple(snapshot.manifest.fragments if request.fragments is None else request.fragments),
        filter=_filter(snapshot, request, DISTANCE),
        filter_text=request.filter,
        limit=limit,
        offset=offset,
        options=_options(request),
    )


def plan_full_text(snapshot: Snapshot, request: ScanRequest) -> RowSearch:
    """The search of a request with `full_text_query`. Raises InputError, FilterError."""
    from lance_core.dataset.query.text_query import SCORE, TextScan
    from lance_core.index.text.query import as_query

    limit, offset = check_bounds(request.limit, request.offset)
    return TextScan(
        snapshot=snapshot,
        query=as_query(request.full_text_query),
        projection=_projection(snapshot, request, SCORE),
        fragments=None if request.fragments is None else tuple(request.fragments),
        filter=_filter(snapshot, request, SCORE),
        filter_text=request.filter,
        limit=limit,
        offset=offset,
        options=_options(request),
    )


def _projection(snapshot: Snapshot, request: ScanRequest, score: str) -> Projection:
    return plan_projection(
        snapshot.manifest.schema,
        request.columns,
        with_row_id=request.with_row_id,
        with_row_address=request.with_row_address,
        score=score,
        autoproject=request.scoring_autoprojection,
    )


def _filter(snapshot: Snapshot, request: ScanRequest, score: str) -> Expr | None:
    """A filter of what was found may ask for the score too."""
    if request.filter is None:
        return None
    tested = snapshot.arrow_schema
    if not request.prefilter:
        tested = tested.append(pa.field(score, pa.float32()))
    return as_filter(request.filter, tested)


def _options(request: ScanRequest) -> SearchOptions:
    return SearchOptions(
        prefilter=request.prefilter,
        fast_search=request.fast_search,
        use_scalar_index=request.use_scalar_index,
        trust=request.trust,
    )


def plan_search(snapshot: Snapshot, request: ScanRequest) -> RowSearch | None:
    """The search of a request, None for a plain scan. InputError for two searches."""
    if request.nearest is not None and request.full_text_query is not None:
        raise InputError("nearest cannot be combined with full_text_query", cure="Pass only one of them.")
    if request.full_text_query is not None:
        return plan_full_text(snapshot, request)
    return None if request.nearest is None else plan_nearest(snapshot, request)
