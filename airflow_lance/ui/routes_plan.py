"""The plan and history of the policy, and the results of the work of a task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from airflow_lance.ui.errors import PageError, page_error
from airflow_lance.ui.routes_tables import plan_of
from airflow_lance.ui.routing import PageRoute, PagesDep, UserDep, respond
from airflow_lance.ui.security import may_read_runs
from airflow_lance.ui.service import FoundSource, Managed, Pages
from airflow_lance.ui.table_rows import budget_answer

if TYPE_CHECKING:
    from lance_core.maintenance.evidence import Evidence

router = APIRouter(route_class=PageRoute)

Json = dict[str, object]
_EMPTY: Json = {"policy": None, "error": None, "steps": [], "skipped": [], "alarms": [], "cost": None, "budget": None}


@router.get("/plan")
async def plan(pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """The steps that are due, their price, and why others are not done."""
    dag: Json = {"plan_dag": {"dag_id": pages.settings.plan_dag, "run_id": None, "task_id": None}}
    try:
        managed = await pages.managed(refresh=refresh)
    except Exception as error:
        told = page_error(error).to_dict()
        return await respond(pages, user, {**_EMPTY, **dag, "made_at": time.time(), "error": told})
    if managed is None:
        return await respond(pages, user, {**_EMPTY, **dag, "made_at": time.time()})
    sources = await pages.sources()
    looked = await pages.look(sources, refresh=refresh)
    now = pages.clock()
    found = await pages.run("policy", lambda: plan_of(managed, looked, now).to_dict())
    names = _names(sources)
    answer = {
        **dag,
        "made_at": now,
        "policy": {"name": managed.name, "base_uri": managed.policy.base_uri},
        "error": None,
        "pending": sum(item.seen is None and item.error is None for item in looked),
        "steps": [_step(step, names) for step in found["steps"]],
        "skipped": [{**names.get(item["uri"], _unnamed(item["uri"])), **item} for item in found["skipped"]],
        "alarms": [{**names.get(item["uri"], _unnamed(item["uri"])), **item} for item in found["alarms"]],
        "cost": found["cost"],
        "budget": budget_answer(managed, now),
    }
    return await respond(pages, user, answer)


def _names(sources: Sequence[FoundSource]) -> dict[str, Json]:
    return {ref.uri: {"table": ref.id, "name": ref.name} for found in sources for ref in found.tables}


def _unnamed(uri: object) -> Json:
    return {"table": None, "name": str(uri).rstrip("/").rpartition("/")[2]}


def _step(step: Mapping[str, object], names: Mapping[str, Json]) -> Json:
    cost = step["cost"]
    assert isinstance(cost, Mapping)
    shown = {name: step[name] for name in ("uri", "action", "reason", "urgency", "gain", "gb_hours")}
    return {**names.get(str(step["uri"]), _unnamed(step["uri"])), **shown, **cost}


@router.get("/plan/history")
async def history(
    pages: PagesDep,
    user: UserDep,
    days: Annotated[float, Query(gt=0, le=365)] = 7.0,
    table: str | None = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Response:
    """The evidence of steps, newest first: predicted against real."""
    managed = await pages.managed()
    if managed is None:
        return await respond(pages, user, {"made_at": time.time(), "rows": [], "more": False})
    uri = None if table is None else (await pages.table(table))[0].uri
    rows = await pages.run("policy", lambda: _evidence(pages, managed, days, uri))
    names = _names(await pages.sources())
    newest = rows[::-1][:limit]
    answer = {"made_at": time.time(), "rows": [_row(row, names) for row in newest], "more": len(rows) > limit}
    return await respond(pages, user, answer)


def _evidence(pages: Pages, managed: Managed, days: float, uri: str | None) -> list[Evidence]:
    from lance_core.maintenance.evidence import history

    options = pages.options_of(pages.settings.policy_conn_id)
    since = pages.clock() - days * 86400
    return history(managed.policy.evidence_uri, since=since, table=uri, storage_options=options)


def _row(row: Evidence, names: Mapping[str, Json]) -> Json:
    dag_id, _, run_id = row.run.partition("/")
    return {
        **names.get(row.uri, _unnamed(row.uri)),
        "at": row.at,
        "uri": row.uri,
        "action": row.action,
        "outcome": row.outcome,
        "reason": row.reason,
        "run": {"dag_id": dag_id if run_id else None, "run_id": run_id or None},
        "version_before": row.version_before,
        "version_after": row.version_after,
        "fragments_before": row.fragments_before,
        "fragments_after": row.fragments_after,
        "bytes_before": row.bytes_before,
        "bytes_after": row.bytes_after,
        "predicted_bytes": row.predicted_bytes_read + row.predicted_bytes_written,
        "bytes": row.bytes_read + row.bytes_written,
        "predicted_seconds": row.predicted_seconds,
        "seconds": row.seconds,
        "gb_hours": row.gb_hours,
        "error": row.error,
    }


@router.get("/work")
async def work(
    pages: PagesDep,
    user: UserDep,
    dag_id: str,
    run_id: str | None = None,
    task_id: str | None = None,
    map_index: int | None = None,
) -> Response:
    """What a DAG's tasks staged, and in which versions it was committed."""
    if not await pages.run("airflow", lambda: may_read_runs(user, dag_id)):
        raise PageError("forbidden", "You may not read this DAG.")
    from airflow_lance.ui.task_work import find_work

    found = await find_work(pages, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    return await respond(pages, user, {"made_at": time.time(), "pending": 0, "retry_after": None, **found})
