"""The searches of a scan: nearest vectors, or full-text queries.

::

    ScanRequest(nearest={"column": "v", "q": [0.1, 0.2], "k": 10})     -> NearestSearch
    ScanRequest(full_text_query="fast train")                         -> TextScan

Their rooms are loaded when the first search comes.
"""

from __future__ import annotations

import pyarrow as pa

from lance_core.dataset.scan.plan import check_bounds
from lance_core.dataset.scan.projection import Projection, plan_projection
from lance_core.dataset.scan.request import ScanRequest, as_filter
from lance_core.dataset.scan.scored_rows import RowSearch, SearchOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import Expr


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
