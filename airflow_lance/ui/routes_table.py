"""Everything about one table: its page, versions, diff, schema, storage, doctor; rows and searches under their own right."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from airflow_lance.ui.catalog import Source, TableRef
from airflow_lance.ui.errors import PageError
from airflow_lance.ui.routing import PageRoute, PagesDep, UserDep, respond
from airflow_lance.ui.security import may_see_rows, require_same_site
from airflow_lance.ui.service import Looked, Pages
from airflow_lance.ui.table_rows import table_row

router = APIRouter(route_class=PageRoute, prefix="/tables/{number}")

Json = dict[str, object]
Version = Annotated[int | None, Query(ge=1)]
ACTIONS = ("compact", "merge_columns", "optimize_indices", "cleanup", "gc", "tag", "restore", "abort", "settle", "describe")
_MENDS = {
    "small-fragments": "compact",
    "deleted-rows": "compact",
    "many-column-files": "merge_columns",
    "stale-index": "optimize_indices",
    "many-index-segments": "optimize_indices",
    "many-versions": "cleanup",
    "stranded-files": "cleanup",
    "dead-attempts": "gc",
}
SLOW = 6.0
"""So many times the usual limit for what lists or reads everything."""


@router.get("")
async def table(number: str, pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """The newest version: health, schema, fragments, indices, references, staged work."""
    ref, source = await pages.table(number)

    def load() -> Json:
        from lance_core.maintenance.facts.table import observed_page
        from lance_core.maintenance.policy import ManagedTable
        from lance_core.maintenance.presence import MAX_REQUESTS

        policy = pages.policy()
        managed = ManagedTable(uri=ref.uri, conn_id=ref.conn_id)
        options, levels = source.options, pages.levels(policy, ref)
        seen, page = observed_page(managed, levels, storage_options=options, now=pages.clock(), file_requests=MAX_REQUESTS)
        return {"table": table_row(Looked(ref, seen), policy), **page, "actions": list(ACTIONS)}

    entry = await pages.fact("page", ref, load, refresh=refresh)
    return await respond(pages, user, {**entry.value, "made_at": entry.at})


def _store(ref: TableRef, source: Source) -> Any:
    from lance_core.jobs.api import open_store

    return open_store(ref.uri, source.options)


async def _fact(
    pages: Pages,
    user: Any,
    number: str,
    kind: str,
    load: Callable[[TableRef, Source], Json],
    refresh: bool,
    times: float = 1.0,
) -> Response:
    ref, source = await pages.table(number)
    entry = await pages.fact(kind, ref, lambda: load(ref, source), refresh=refresh, times=times)
    return await respond(pages, user, {**entry.value, "made_at": entry.at})


@router.get("/versions")
async def versions(
    number: str,
    pages: PagesDep,
    user: UserDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
    before: Version = None,
    refresh: bool = False,
) -> Response:
    """The timeline, newest first."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.facts.history import versions_page

        return versions_page(_store(ref, source), limit=limit, before=before)

    return await _fact(pages, user, number, f"versions {limit} {before}", load, refresh)


@router.get("/diff")
async def diff(
    number: str,
    pages: PagesDep,
    user: UserDep,
    older: Annotated[int, Query(alias="from", ge=1)],
    newer: Annotated[int, Query(alias="to", ge=1)],
    refresh: bool = False,
) -> Response:
    """What is different in one version."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.facts.diff import diff_page

        return diff_page(_store(ref, source), older, newer)

    return await _fact(pages, user, number, f"diff {older} {newer}", load, refresh)


@router.get("/schema")
async def schema(number: str, pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """The columns, and in which versions they changed."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.facts.history import schema_page

        return schema_page(_store(ref, source))

    return await _fact(pages, user, number, "schema", load, refresh)


@router.get("/storage")
async def storage(number: str, pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """Bytes by kind; lists every file."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.facts.storage import storage_page

        levels = pages.levels(pages.policy(), ref)
        return storage_page(
            _store(ref, source),
            keep_seconds=levels.keep_seconds,
            keep_versions=levels.keep_versions,
            storage_options=source.options,
        )

    return await _fact(pages, user, number, "storage", load, refresh, SLOW)


@router.get("/failed")
async def failed(number: str, pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """The rows of declared columns for which functions failed: no values, and no words of an exception."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.facts.failed import failed_page

        return failed_page(_store(ref, source), storage_options=source.options)

    return await _fact(pages, user, number, "failed", load, refresh)


@router.get("/doctor")
async def doctor(number: str, pages: PagesDep, user: UserDep, deep: bool = False, refresh: bool = False) -> Response:
    """Findings, the gravest first. `deep` lists all files and reads every data file's ends."""

    def load(ref: TableRef, source: Source) -> Json:
        from lance_core.maintenance.isolated import shared_checks

        levels = asdict(pages.levels(pages.policy(), ref))
        asked = {"uri": ref.uri, "deep": deep, "levels": levels, "options": dict(source.options)}
        seconds = pages.settings.timeout_seconds * SLOW
        found = shared_checks().run(ref.id, "doctor", asked, seconds=seconds)
        return {"findings": [{**item, "action": _MENDS.get(item["code"])} for item in found]}

    return await _fact(pages, user, number, f"doctor {deep}", load, refresh, SLOW)


class Search(BaseModel):
    """The body of a search."""

    model_config = ConfigDict(extra="forbid")

    filter: str | None = Field(None, max_length=10_000)
    text: str | None = Field(None, max_length=10_000)
    text_column: str | None = None
    vector: list[float] | None = Field(None, max_length=65_536)
    vector_column: str | None = None
    k: int = Field(20, ge=1, le=200)
    columns: list[str] | None = Field(None, max_length=200)
    version: int | None = Field(None, ge=1)


@router.get("/rows")
async def rows(
    number: str,
    pages: PagesDep,
    user: UserDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    version: Version = None,
    filter: Annotated[str | None, Query(max_length=10_000)] = None,
    columns: Annotated[str | None, Query(max_length=10_000)] = None,
) -> Response:
    """A few rows, those that match a filter where one is given."""
    names = tuple(name for name in (columns or "").split(",") if name) or None
    wanted = {"limit": limit, "offset": offset, "version": version, "filter": filter or None, "columns": names}
    return await _rows(pages, user, number, wanted)


@router.post("/search", dependencies=[Depends(require_same_site)])
async def search(number: str, body: Search, pages: PagesDep, user: UserDep) -> Response:
    """The best rows for words or for a vector, among those that match a filter."""
    wanted = {
        "limit": body.k,
        "version": body.version,
        "filter": body.filter or None,
        "columns": None if body.columns is None else tuple(body.columns),
        "text": body.text or None,
        "text_column": body.text_column,
        "vector": None if body.vector is None else tuple(body.vector),
        "vector_column": body.vector_column,
    }
    return await _rows(pages, user, number, wanted)


@router.get("/column")
async def column(
    number: str,
    pages: PagesDep,
    user: UserDep,
    path: Annotated[str, Query(max_length=10_000)],
    version: Version = None,
) -> Response:
    """Statistics of a column. Its extremes and frequent values are rows' values, and need the right to see rows."""
    ref, source = await _with_rows(pages, user, number)
    seconds = pages.settings.timeout_seconds

    def load() -> Json:
        from lance_core.maintenance.isolated import shared_checks

        asked = {"uri": ref.uri, "path": path, "version": version, "options": dict(source.options), "seconds": seconds}
        found: Json = shared_checks().run(ref.id, "column", asked, seconds=seconds)
        return found

    found: Json = await pages.run(f"rows of {ref.conn_id}", load)
    return await respond(pages, user, {**found, "made_at": time.time()})


@router.get("/dags")
async def dags(number: str, pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """Which DAGs write the table, read it, wait for it."""

    def load(ref: TableRef, source: Source) -> Json:
        from airflow_lance.ui.table_dags import table_dags
        from lance_core.maintenance.facts.history import versions_page

        versions: Any = versions_page(_store(ref, source))["versions"]
        writers = [{**writer, "timestamp": item["timestamp"]} for item in versions for writer in item["writers"]]
        return table_dags(ref, writers)

    return await _fact(pages, user, number, "dags", load, refresh)


async def _with_rows(pages: Pages, user: Any, number: str) -> tuple[TableRef, Source]:
    """The table, for a user who may see its rows."""
    ref, source = await pages.table(number)
    may = await pages.run("airflow", lambda: may_see_rows(user, pages.settings.rows, ref.conn_id))
    if not may:
        raise PageError(
            "rows_forbidden", "You may not see rows of this table.", cure="[lance] pages_rows configures who may."
        )
    return ref, source


async def _rows(pages: Pages, user: Any, number: str, wanted: dict[str, Any]) -> Response:
    ref, source = await _with_rows(pages, user, number)

    def load() -> Json:
        from lance_core.maintenance.isolated import shared_checks

        seconds = pages.settings.timeout_seconds
        asked = {"uri": ref.uri, "request": wanted, "options": dict(source.options), "seconds": seconds}
        found: Json = shared_checks().run(ref.id, "rows", asked, seconds=seconds)
        return found

    # Rows are read in a pool of their own, so that long scans never keep facts waiting, and are never cached.
    found: Json = await pages.run(f"rows of {ref.conn_id}", load)
    return await respond(pages, user, {**found, "made_at": time.time()})
