"""Responses of the API server: plain data without secrets, and without the names of DAGs that the user may not read.

A dict with a `dag_id` is a mention of a task or a run: it gets a `link` (relative to Airflow's root) and `hidden`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote

Visible = Callable[[Iterable[str]], frozenset[str]]

_HIDDEN_NAMES = ("dag_id", "run_id", "task_id", "map_index", "host", "link", "try_number", "log_url")


def task_link(dag_id: str, run_id: str | None, task_id: str | None = None, map_index: int = -1, try_number: int = 0) -> str:
    """Return where Airflow's UI shows a DAG, a run or a task instance, relative to its root.

    >>> task_link("etl", "manual__1", "load", 3, 2)
    'dags/etl/runs/manual__1/tasks/load/mapped/3?try_number=2'
    """
    link = f"dags/{quote(dag_id, safe='')}"
    if run_id:
        link += f"/runs/{quote(run_id, safe='')}"
    if task_id:
        link += f"/tasks/{quote(task_id, safe='')}"
        link += f"/mapped/{map_index}" if run_id and map_index >= 0 else ""
    return link + (f"?try_number={try_number}" if run_id and task_id and try_number else "")


def mentioned_dags(value: object) -> Iterator[str]:
    """Yield the DAGs that an answer mentions."""
    if isinstance(value, Mapping):
        dag_id = value.get("dag_id")
        if isinstance(dag_id, str) and dag_id:
            yield dag_id
        for item in value.values():
            yield from mentioned_dags(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from mentioned_dags(item)


def with_links(value: object, visible: frozenset[str]) -> object:
    """Return an answer in which mentions have links, or hide what the user may not read."""
    if isinstance(value, Mapping):
        found = {name: with_links(item, visible) for name, item in value.items()}
        return _linked(found, visible) if "dag_id" in found else found
    if isinstance(value, list | tuple):
        return [with_links(item, visible) for item in value]
    return value


def _linked(found: dict[object, object], visible: frozenset[str]) -> dict[object, object]:
    dag_id = found["dag_id"]
    if not isinstance(dag_id, str) or not dag_id:
        return {**found, "link": None, "hidden": False}
    if dag_id not in visible:
        return {**found, **{name: None for name in _HIDDEN_NAMES if name in found or name == "link"}, "hidden": True}
    run_id, task_id = found.get("run_id"), found.get("task_id")
    map_index, try_number = found.get("map_index"), found.get("try_number")
    link = task_link(
        dag_id,
        run_id if isinstance(run_id, str) else None,
        task_id if isinstance(task_id, str) else None,
        map_index if isinstance(map_index, int) else -1,
        try_number if isinstance(try_number, int) else 0,
    )
    return {**found, "link": link, "hidden": False}
