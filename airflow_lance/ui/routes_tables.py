"""`GET me` and `GET tables`: the user, and every table with its health."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from airflow_lance import __version__
from airflow_lance.ui.routes_actions import dag_problem
from airflow_lance.ui.routing import PageRoute, PagesDep, UserDep, respond
from airflow_lance.ui.security import may_see_rows, may_trigger
from airflow_lance.ui.service import Looked, Managed, Pages
from airflow_lance.ui.table_rows import tables_answer

router = APIRouter(route_class=PageRoute)

_NO_ROWS = {
    "nobody": "Rows are off: set [lance] pages_rows.",
    "connection": "Rows are for those who may read the table's connection.",
    "view": 'Rows are for those who have the view "Lance rows".',
}


@router.get("/me")
async def me(pages: PagesDep, user: UserDep) -> Response:
    """The user, and the permitted actions."""
    policy = await pages.run("airflow", pages.policy)
    names = [found.conn_id for found in await pages.sources()]
    rights = await pages.run("airflow", lambda: _rights(pages, user, names))
    shown = None if policy is None else {"name": pages.policy_name, "base_uri": policy.base_uri}
    answer = {
        "made_at": time.time(),
        "user": str(user.get_name()),
        "version": __version__,
        "rights": rights,
        "actions_dag": pages.settings.actions_dag,
        "plan_dag": pages.settings.plan_dag,
        "policy": shown,
        "theme": None,
        "cache_seconds": pages.settings.cache_seconds,
    }
    return await respond(pages, user, answer)


def _rights(pages: Pages, user: Any, conn_ids: list[str]) -> dict[str, object]:
    settings = pages.settings
    rows = [name for name in conn_ids if may_see_rows(user, settings.rows, name)]
    actions, plan = _refusal(user, settings.actions_dag), _refusal(user, settings.plan_dag)
    return {
        "rows": bool(rows),
        "rows_connections": rows,
        "rows_reason": None if rows else _NO_ROWS[settings.rows],
        "actions": actions is None,
        "actions_reason": actions,
        "run_plan": plan is None,
        "plan_reason": plan,
    }


def _refusal(user: Any, dag_id: str) -> str | None:
    """Why a user cannot run a DAG: that there is none, or that it is paused, is for those who may trigger it."""
    if not may_trigger(user, dag_id):
        return f"You may not trigger the DAG {dag_id}."
    problem = dag_problem(dag_id)
    return None if problem is None else f"{problem.message} {problem.cure}"


@router.get("/tables")
async def tables(pages: PagesDep, user: UserDep, refresh: bool = False) -> Response:
    """Every table of the connections and the policy."""
    began = time.monotonic()
    sources = await pages.sources(refresh=refresh)
    looked = await pages.look(sources, refresh=refresh)
    managed = await _managed(pages)
    now = pages.clock()
    plan = None if managed is None else await pages.run("policy", lambda: plan_of(managed, looked, now))
    answer = tables_answer(sources, looked, managed, plan, now)
    return await respond(pages, user, {**answer, "seconds": time.monotonic() - began})


async def _managed(pages: Pages) -> Managed | None:
    try:
        return await pages.managed()
    except Exception:
        return None  # the plan page says what is wrong


def plan_of(managed: Managed, looked: list[Looked], now: float) -> Any:
    """What the policy would do now with tables that were just observed."""
    from lance_core.maintenance.evidence import maintained_at, measured, spent_today
    from lance_core.maintenance.plan import plan_maintenance
    from lance_core.maintenance.policy import ManagedTable
    from lance_core.maintenance.price import learn

    covered = [
        item.seen
        for item in looked
        if item.seen is not None
        and managed.policy.for_table(ManagedTable(uri=item.ref.uri, conn_id=item.ref.conn_id)) is not None
    ]
    return plan_maintenance(
        covered,
        managed.policy,
        now=now,
        spent=spent_today(managed.rows, now),
        rates=learn(measured(managed.rows)),
        maintained_at=maintained_at(managed.rows),
    )
