"""Buttons: each triggers a DAG run in the name of the user. Nothing is done to a table in the API server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from airflow_lance.compat import AirflowException
from airflow_lance.maintenance.action_arguments import ACTIONS, check_arguments
from airflow_lance.ui.answers import task_link
from airflow_lance.ui.errors import PageError
from airflow_lance.ui.routing import PageRoute, PagesDep, UserDep, respond
from airflow_lance.ui.security import may_read_runs, may_trigger, require_same_site

router = APIRouter(route_class=PageRoute)

RUN_PLAN = "run_plan"


class Action(BaseModel):
    """The body of a button's request."""

    model_config = ConfigDict(extra="forbid")

    action: str = Field(max_length=100)
    table: str | None = Field(None, max_length=100)
    arguments: dict[str, Any] = Field(default_factory=dict)


@router.post("/actions", dependencies=[Depends(require_same_site)])
async def act(body: Action, pages: PagesDep, user: UserDep) -> Response:
    """Trigger the run that does it. The user needs the right to trigger that DAG."""
    dag_id = pages.settings.plan_dag if body.action == RUN_PLAN else pages.settings.actions_dag
    if not await pages.run("airflow", lambda: may_trigger(user, dag_id)):
        raise PageError("forbidden", f"You may not trigger the DAG {dag_id}.")
    conf: dict[str, object] = {}
    if body.action != RUN_PLAN:
        if body.action not in ACTIONS:
            raise PageError("invalid", f"Unknown action {body.action!r}.", cure=f"Known: {', '.join(sorted(ACTIONS))}.")
        if body.table is None:
            raise PageError("invalid", "Pass the table.")
        arguments = check_arguments(body.action, body.arguments)
        ref, _ = await pages.table(body.table)
        conf = {"action": body.action, "uri": ref.uri, "lance_conn_id": ref.conn_id, "arguments": arguments}
    run_id = await pages.run("airflow", lambda: _trigger(dag_id, conf, str(user.get_name())))
    answer = {"dag_id": dag_id, "run_id": run_id, "task_id": None, "link": task_link(dag_id, run_id)}
    return await respond(pages, user, answer, status=201)


def dag_problem(dag_id: str) -> PageError | None:
    """Why a DAG can do nothing now: there is none, it cannot be imported, or it is paused."""
    from airflow.models.dag import DagModel

    model = DagModel.get_current(dag_id)
    if model is None or getattr(model, "is_stale", False) or getattr(model, "has_import_errors", False):
        cure = "Put lance_actions_dags() and maintenance_dags() into a DAG file."
        return PageError("no_actions_dag", f"There is no working DAG {dag_id!r}.", cure=cure)
    if model.is_paused:
        return PageError("no_actions_dag", f"The DAG {dag_id!r} is paused.", cure="Unpause it in Airflow.")
    return None


def _trigger(dag_id: str, conf: Mapping[str, object], user: str) -> str:
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.utils.types import DagRunTriggeredByType

    problem = dag_problem(dag_id)
    if problem is not None:
        raise problem
    try:
        run = trigger_dag(
            dag_id,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user,
            conf=dict(conf),
            replace_microseconds=False,
        )
    except (AirflowException, ValueError) as error:
        raise PageError("invalid", f"Airflow refused the run: {error}") from error
    if run is None:
        raise PageError("failed", "Airflow created no run.")
    return str(run.run_id)


@router.get("/actions/{run_id}")
async def state(run_id: str, pages: PagesDep, user: UserDep, dag_id: str | None = None) -> Response:
    """What became of a run that a button triggered."""
    known = (pages.settings.actions_dag, pages.settings.plan_dag)
    wanted = dag_id or known[0]
    if wanted not in known or not await pages.run("airflow", lambda: may_read_runs(user, wanted)):
        raise PageError("forbidden", "You may not read this run.")
    found = await pages.run("airflow", lambda: _state(wanted, run_id))
    if found is None:
        raise PageError("not_found", "There is no such run.")
    answer = {"made_at": time.time(), "dag_id": wanted, "run_id": run_id, "task_id": None, "state": found}
    return await respond(pages, user, answer)


def _state(dag_id: str, run_id: str) -> str | None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalar(select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    return None if found is None else str(getattr(found, "value", found))
