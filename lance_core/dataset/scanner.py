"""A scan that was asked for and can be run: `LanceDataset.scanner(...)`.

::

    scanner = dataset.scanner(columns=["id"], filter="id > 3", limit=10)
    scanner.to_table()      scanner.to_batches()      scanner.count_rows()      scanner.to_reader()

Planning is done at once, so that a wrong column or filter is told where it was written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lance_core.dataset.by_address import nearby
from lance_core.dataset.explain import explain
from lance_core.dataset.index_use import Served, serve
from lance_core.dataset.plan import ScanPlan, check_bounds, plan_scan
from lance_core.dataset.projection import Columns, Projection, plan_projection
from lance_core.dataset.scan import DEFAULT_BATCH_ROWS, count_selected, scan
from lance_core.dataset.scored import RowSearch
from lance_core.dataset.snapshot import Snapshot
from lance_core.dataset.tables import scan_table
from lance_core.dataset.take import take_rows
from lance_core.errors import InputError
from lance_core.expr import Expr, from_pyarrow, parse_filter
from lance_core.format.fragment import Fragment


@dataclass(frozen=True)
class ScanRequest:
    """What a user asked of a scan, unchecked. `fragments` None means all."""

    columns: Columns = None
    filter: Any = None
    limit: int | None = None
    offset: int | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragments: Sequence[Fragment] | None = None
    use_scalar_index: bool = True
    strict_index: bool = False
    nearest: Any = None
    full_text_query: Any = None
    prefilter: bool = False
    fast_search: bool = False
    scoring_autoprojection: bool = True


def as_filter(value: Any, schema: pa.Schema) -> Expr | None:
    """A filter given as SQL text or as a pyarrow expression. Raises FilterError, InputError for anything else."""
    if value is None:
        return None
    if isinstance(value, str):
        return parse_filter(value, schema)
    if type(value).__module__.startswith("pyarrow") and type(value).__name__ == "Expression":
        return from_pyarrow(value, schema)
    raise InputError(f"a filter is SQL text or a pyarrow expression, got {type(value).__name__}")


def plan_nearest(snapshot: Snapshot, request: ScanRequest) -> RowSearch:
    """The search a request with `nearest` asks for. Raises InputError, FilterError."""
    from lance_core.dataset.nearest import DISTANCE, NearestOptions, NearestSearch
    from lance_core.dataset.nearest_query import parse_nearest

    schema = snapshot.manifest.schema
    tested = snapshot.arrow_schema
    if not request.prefilter:
        tested = tested.append(pa.field(DISTANCE, pa.float32()))
    limit, offset = check_bounds(request.limit, request.offset)
    return NearestSearch(
        snapshot=snapshot,
        query=parse_nearest(request.nearest, schema),
        projection=plan_projection(
            schema,
            request.columns,
            with_row_id=request.with_row_id,
            with_row_address=request.with_row_address,
            score=DISTANCE,
            autoproject=request.scoring_autoprojection,
        ),
        fragments=tuple(snapshot.manifest.fragments if request.fragments is None else request.fragments),
        filter=None if request.filter is None else as_filter(request.filter, tested),
        filter_text=request.filter,
        limit=limit,
        offset=offset,
        options=NearestOptions(
            prefilter=request.prefilter,
            fast_search=request.fast_search,
            use_scalar_index=request.use_scalar_index,
            strict=request.strict_index,
        ),
    )


def plan_full_text(snapshot: Snapshot, request: ScanRequest) -> RowSearch:
    """The search a request with `full_text_query` asks for. Raises InputError, FilterError."""
    from lance_core.dataset.text_scan import SCORE, TextOptions, TextScan
    from lance_core.index.text.query import as_query

    tested = snapshot.arrow_schema
    if not request.prefilter:
        tested = tested.append(pa.field(SCORE, pa.float32()))
    limit, offset = check_bounds(request.limit, request.offset)
    return TextScan(
        snapshot=snapshot,
        query=as_query(request.full_text_query),
        projection=plan_projection(
            snapshot.manifest.schema,
            request.columns,
            with_row_id=request.with_row_id,
            with_row_address=request.with_row_address,
            score=SCORE,
            autoproject=request.scoring_autoprojection,
        ),
        fragments=None if request.fragments is None else tuple(request.fragments),
        filter=None if request.filter is None else as_filter(request.filter, tested),
        filter_text=request.filter,
        limit=limit,
        offset=offset,
        options=TextOptions(
            prefilter=request.prefilter,
            fast_search=request.fast_search,
            use_scalar_index=request.use_scalar_index,
            strict=request.strict_index,
        ),
    )


def _planned_search(snapshot: Snapshot, request: ScanRequest) -> RowSearch | None:
    if request.nearest is not None and request.full_text_query is not None:
        raise InputError("a scan searches vectors or texts, not both", cure="Pass nearest or full_text_query.")
    if request.full_text_query is not None:
        return plan_full_text(snapshot, request)
    return None if request.nearest is None else plan_nearest(snapshot, request)


class LanceScanner:
    """One planned scan of one version; it may be run many times."""

    def __init__(self, snapshot: Snapshot, request: ScanRequest) -> None:
        if request.batch_size is not None and request.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {request.batch_size}")
        self._snapshot = snapshot
        self._request = request
        check_bounds(request.limit, request.offset)
        self._search = _planned_search(snapshot, request)
        if self._search is not None:
            return
        self._filter = None if request.filter is None else as_filter(request.filter, snapshot.arrow_schema)
        self._projection = plan_projection(
            snapshot.manifest.schema,
            request.columns,
            with_row_id=request.with_row_id,
            with_row_address=request.with_row_address,
        )

    @cached_property
    def plan(self) -> ScanPlan:
        """What will be done. Made late: it looks at every fragment, and a count may not need any."""
        return self._planned(self._projection)

    @cached_property
    def _served(self) -> Served:
        return self._serve(self.plan)

    def _serve(self, plan: ScanPlan) -> Served:
        request = self._request
        use, strict = request.use_scalar_index, request.strict_index
        return serve(self._snapshot, plan, use_indices=use, strict=strict, fast=request.fast_search)

    def _planned(self, projection: Projection) -> ScanPlan:
        manifest, request = self._snapshot.manifest, self._request
        every = manifest.fragments if request.fragments is None else request.fragments
        fragments = nearby(manifest, every, self._filter)
        return plan_scan(
            manifest.schema, fragments, projection, filter=self._filter, limit=request.limit, offset=request.offset
        )

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's schema."""
        return self._snapshot.arrow_schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._search.schema if self._search is not None else self._projection.arrow_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The result as a stream; memory is bounded whatever the table's size."""
        if self._search is not None:
            return iter(self._search.table().to_batches(max_chunksize=self._request.batch_size))
        return scan(self._snapshot, self._served.plan, batch_size=self._request.batch_size or DEFAULT_BATCH_ROWS)

    def scan_batches(self) -> Iterator[pa.RecordBatch]:
        """`to_batches` under its other name."""
        return self.to_batches()

    def to_table(self) -> pa.Table:
        """The whole result."""
        if self._search is not None:
            return self._search.table()
        return scan_table(self._snapshot, self._served.plan, batch_size=self._request.batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """The result as a reader that other Arrow libraries take."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(self, **kwargs: Any) -> Any:
        """The whole result as a pandas frame; `kwargs` go to `pyarrow.Table.to_pandas`."""
        return self.to_table().to_pandas(**kwargs)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The result for any library that speaks the Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def count_rows(self) -> int:
        """Rows of the result; without a filter nothing but the manifest is read."""
        request = self._request
        if self._search is not None:
            return int(self._search.table().num_rows)
        if self._filter is None:
            if request.limit is None and not request.offset and request.fragments is None:
                return self._snapshot.manifest.num_rows
            return sum(task.num_rows for task in self.plan.tasks)
        plan = self._planned(plan_projection(self._snapshot.manifest.schema, []))
        return count_selected(self._snapshot, self._serve(plan).plan)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows of the result."""
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        return LanceScanner(self._snapshot, replace(self._request, limit=limit)).to_table()

    def take(self, indices: Any) -> pa.Table:
        """Rows by their position in the result of a scan without filter, limit and fragments."""
        if self._search is not None or self._request.filter is not None or self._request.fragments is not None:
            return self.to_table().take(indices)
        return take_rows(self._snapshot, indices, self._projection)

    def explain_plan(self, verbose: bool = False) -> str:
        """What will be read, in words, and which index answers what."""
        if self._search is not None:
            return self._search.explain(verbose=verbose)
        return explain(self._snapshot, self._served, self._request.filter, verbose=verbose)

    def analyze_plan(self) -> str:
        """Run the scan, and tell what it did: the plan, the rows that came, the seconds it took to plan and to read."""
        start = time.perf_counter()
        told = self.explain_plan(verbose=True)
        planned = time.perf_counter()
        batches = [(batch.num_rows, batch.nbytes) for batch in self.to_batches()]
        rows, size = (sum(item[number] for item in batches) for number in (0, 1))
        took = f"planned in {planned - start:.4f} s, read in {time.perf_counter() - planned:.4f} s"
        return f"{told}\n{rows} rows, {size} bytes in {len(batches)} batches; {took}"
