"""A run that ends with staged work of its own says so: in its note, which the UI shows, and in the scheduler's log.

::

    append (success) >> commit (skipped)      the run is green, and its rows are invisible
    -> note of the run: "Staged and not published: append, because commit was skipped. ..."

The plugin registers this module as a listener. It reads the states of the run's tasks, which the scheduler has, and
never the table: a slow store must not hold up the scheduler.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.listeners import hookimpl
from sqlalchemy.orm import object_session

_STAGES = frozenset({"idempotency_key", "spark_conn_id"})
_COMMITS = frozenset({"staged", "gates"})
"""Templated fields that distinguish stored tasks: a stored DAG has no classes, and users have subclasses."""
_BEGIN = "Staged and not published: "
_MAX_NOTE = 1000
"""Characters that Airflow lets a note have."""

log = logging.getLogger(__name__)


def unpublished(tasks: Mapping[str, Any], states: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return the staging tasks that succeeded while no commit task after them did, and what became of that commit.

    Args:
        tasks: the DAG's tasks by id, with `template_fields` and `downstream_task_ids`.
        states: (task id, state) of every task instance of the run, the mapped ones singly.
    """
    found: dict[str, set[str]] = {}
    for task_id, state in states:
        found.setdefault(task_id, set()).add(str(state or "not run"))
    left = {}
    for task_id, task in tasks.items():
        if not set(task.template_fields) >= _STAGES or "success" not in found.get(task_id, ()):
            continue
        commits = [name for name in sorted(task.downstream_task_ids) if set(tasks[name].template_fields) >= _COMMITS]
        outcomes = [(name, found.get(name, {"not run"})) for name in commits]
        if commits and not any("success" in outcome for _, outcome in outcomes):
            left[task_id] = ", ".join(f"{name}: {' and '.join(sorted(outcome))}" for name, outcome in outcomes)
    return left


def note_of(left: Mapping[str, str]) -> str:
    """Return what the run's note says about work that no commit task published."""
    works = "; ".join(f"{task_id} ({commits})" for task_id, commits in left.items())
    cure = "Clear what kept the commit back, or publish it with `lance commit URI`; `lance staged list URI` shows it."
    most = _MAX_NOTE - len(cure) - 80
    return f"{_BEGIN}{works if len(works) <= most else works[: most - 3] + '...'}. {cure}"


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:
    """Note what a run that is green did not publish."""
    _say(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:
    """Note what a failed run has staged, for the person who looks at it."""
    _say(dag_run)


def _say(dag_run: Any) -> None:
    dag = dag_run.dag
    if dag is None or not any(set(task.template_fields) >= _COMMITS for task in dag.task_dict.values()):
        return
    session = object_session(dag_run)
    # `dag.test()` holds a run that no session knows: its note cannot be written, the log says it.
    instances = dag_run.get_task_instances() if session is None else dag_run.get_task_instances(session=session)
    left = unpublished(dag.task_dict, ((item.task_id, item.state) for item in instances))
    said = [note_of(left)] if left else []
    for note in said:
        log.warning("Run %s of %s: %s", dag_run.run_id, dag_run.dag_id, note)
    if session is not None:
        written = str(dag_run.note or "")
        # What an earlier end of this run left there may be published by now.
        kept = [line for line in written.splitlines() if not line.startswith(_BEGIN)]
        together = "\n".join([*kept, *said])
        if together != written and len(together) <= _MAX_NOTE:
            dag_run.note = together
