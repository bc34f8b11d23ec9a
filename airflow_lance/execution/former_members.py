"""Members that a mapped list has lost: staged before a clear, and no longer part of what the commit task receives.

::

    append[0..2] staged; the list is cleared and has two items now; Airflow has removed [2], and keeps what it returned
    -> the commit publishes [0] and [1]; WARNING: append[2] staged 10 rows (77ab…) before its list shrank, and was aborted

The rule. Work is aborted only where all of this holds; what fails one of the last two is named and left:

1. it was requested by the same DAG, run and task as what this commit received, at a map index of its own;
2. it is finished, and no version has it: the one deleter decides against it before it removes a file;
3. the commit received its whole group: no reference was None, and every instance that Airflow has of the task succeeded;
4. Airflow has removed the instance of that map index, and the attempt began before this try of the commit did;
5. no other commit task takes the task's output.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_lance.compat import Context, states_of_instances
from airflow_lance.execution.dataflow import operator_class


@dataclass(frozen=True)
class Received:
    """What a commit was given: the identities of one table's staged work; `is_whole`: no reference was None."""

    uri: str
    options: Mapping[str, Any] = field(repr=False)
    identities: frozenset[str]
    is_whole: bool


def abort_former_members(operator: Any, context: Context, *, tasks: Sequence[str], received: Received) -> None:
    """Abort, or name, what the mapped ones among the staging tasks have staged and this commit no longer receives."""
    for task_id in tasks:
        task = operator.dag.get_task(task_id)
        states = states_of_instances(context["ti"], task_id) if _is_mapped(task) else {}
        if states:
            _abort_of_task(operator, context, task, states=states, received=received)


def lost_members(operator: Any, context: Context, *, tasks: Sequence[str], received: Received) -> frozenset[str]:
    """Those of the received identities whose instances Airflow has removed: it keeps what they returned before the clear."""
    ti, began, found = context["ti"], _began(context), set[str]()
    for task_id in tasks:
        states = states_of_instances(ti, task_id) if _is_mapped(operator.dag.get_task(task_id)) else {}
        if "removed" in states.values():
            from lance_core.jobs import api

            run = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": task_id}
            for item in api.find_siblings(received.uri, options=received.options, besides=(), **run):
                if states.get(item.map_index) == "removed" and item.started < began:
                    found.add(item.identity)
    return frozenset(found & received.identities)


def _abort_of_task(
    operator: Any, context: Context, task: Any, *, states: Mapping[int, str | None], received: Received
) -> None:
    from lance_core.jobs import api

    ti, uri, options, began = context["ti"], received.uri, received.options, _began(context)
    others = sorted(item for item in _commits_of(task) if item != operator.task_id)
    is_whole = received.is_whole and all(state in ("success", "removed") for state in states.values())
    run = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": task.task_id}
    for item in api.find_siblings(uri, options=options, besides=received.identities, **run):
        is_over = states.get(item.map_index, "removed") == "removed" and item.started < began
        name = f"{task.task_id}[{item.map_index}]"
        if not (is_over and is_whole):
            operator.log.warning(
                "%s has staged %d rows (%s), which this commit did not receive; they wait for their own commit",
                name, item.num_rows, item.identity,
            )  # fmt: skip
        elif others:
            operator.log.warning(
                "%s is no longer part of its list, and its %d staged rows (%s) were left, because %s takes them as well",
                name, item.num_rows, item.identity, ", ".join(others),
            )  # fmt: skip
        elif api.abort_staged(uri, item.identity, item.attempt, options=options, by="a list that shrank"):
            operator.log.warning(
                "%s is no longer part of its list: the %d rows that it had staged (%s) were not published, and were aborted",
                name, item.num_rows, item.identity,
            )  # fmt: skip


def _is_mapped(task: Any) -> bool:
    return bool(task.is_mapped or task.get_closest_mapped_task_group() is not None)


def _commits_of(task: Any) -> list[str]:
    """The commit tasks that are given a task's output, at once or by a task in between."""
    found = [item for item in task.dag.tasks if getattr(operator_class(item), "commits_others", False)]
    return [
        item.task_id
        for item in found
        if item.task_id in task.downstream_task_ids or task.task_id in getattr(item, "source_task_ids", ())
    ]


def _began(context: Context) -> float:
    start = getattr(context["ti"], "start_date", None)
    return time.time() if start is None else float(start.timestamp())
