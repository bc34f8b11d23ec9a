"""Which DAGs write a table, read it or wait for it: what Airflow's database and the table's own history say.

::

    table_dags(ref, writers)  ->  {"dags": [{"dag_id": "shop", "task_id": "load", "does": "writes", "at": 1700000000.0,
                                             "run_id": "scheduled__2024-01-01", "operator": "LanceAppendOperator"}, ...],
                                   "complete": True}

Three things are asked: the rendered arguments of tasks of our operators, newest first, at most `MOST_TASKS` (Airflow keeps
those of a task's 30 newest runs); assets of the table's uri, and who is scheduled by them; and the writers that the newest
versions name. A task whose table is chosen in Python code of its own is in none of them unless it declares the asset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow_lance.assets import asset_uri
from airflow_lance.ui.catalog import TableRef

Json = dict[str, object]
MOST_TASKS = 3000
MAX_DEPTH = 6
_READERS = frozenset(f"Lance{name}Operator" for name in ("Query", "Sql", "Check", "Validate", "MissingPartitions"))


def table_dags(ref: TableRef, writers: Iterable[Mapping[str, Any]]) -> Json:
    """Return an entry for each task and what it does, that of the newest run; `writers` are those of versions."""
    found: dict[tuple[object, ...], Json] = {}
    tasks, complete = _rendered(ref)
    for entry in (*tasks, *_of_versions(writers), *_declared(ref)):
        found.setdefault((entry["dag_id"], entry["task_id"], entry["does"]), entry)
    order = {"writes": 0, "reads": 1, "waits": 2, "scheduled by": 3}
    entries = sorted(found.values(), key=lambda item: (order[str(item["does"])], str(item["dag_id"]), str(item["task_id"])))
    return {"dags": entries, "complete": complete}


def _rendered(ref: TableRef) -> tuple[list[Json], bool]:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import and_, select

    names = ("dag_id", "task_id", "run_id", "map_index")
    same = and_(*(getattr(RenderedTaskInstanceFields, name) == getattr(TaskInstance, name) for name in names))
    columns = (TaskInstance.operator, TaskInstance.start_date, RenderedTaskInstanceFields)
    query = select(*columns).join(RenderedTaskInstanceFields, same).where(TaskInstance.operator.like("%Lance%"))
    with create_session() as session:
        rows = list(session.execute(query.order_by(TaskInstance.start_date.desc()).limit(MOST_TASKS)))
        entries = [
            _entry(row, operator=operator, does=does, at=None if started is None else started.timestamp())
            for operator, started, row in rows
            for does in sorted(what_a_task_does(str(operator), row.rendered_fields, ref))
        ]
    return entries, len(rows) < MOST_TASKS


def _entry(row: Any, *, operator: str | None, does: str, at: float | None) -> Json:
    run_id = getattr(row, "run_id", None)
    index = getattr(row, "map_index", -1)
    place = {"dag_id": row.dag_id, "task_id": row.task_id, "run_id": run_id, "map_index": index}
    return {**place, "operator": operator, "does": does, "at": at}


def what_a_task_does(operator: str, fields: object, ref: TableRef) -> set[str]:
    """What a task does with a table: "writes", "reads" or "waits", by its operator's name and its rendered arguments."""
    if not isinstance(fields, Mapping):
        return set()
    conn_id = str(fields.get("lance_conn_id") or "")
    wanted = {ref.uri.rstrip("/"), *([ref.name.rstrip("/")] if conn_id in ("", ref.conn_id) else [])}
    found = set()
    if any(text in wanted for text in _texts(fields.get("uri"), MAX_DEPTH)):
        found.add("waits" if operator.endswith("Sensor") else "reads" if operator in _READERS else "writes")
    rest = [value for name, value in fields.items() if name not in ("uri", "target")]
    if any(text in wanted for value in rest for text in _texts(value, MAX_DEPTH)):
        found.add("reads")
    if any(text in wanted for text in _texts(fields.get("target"), MAX_DEPTH)):
        found.add("writes")
    return found


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value.rstrip("/")
    elif depth and isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, depth - 1)


def _of_versions(writers: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    for writer in writers:
        if writer.get("dag_id") and writer.get("task_id"):
            names = ("dag_id", "task_id", "run_id", "map_index")
            at = writer.get("timestamp")
            yield {**{name: writer.get(name) for name in names}, "operator": None, "does": "writes", "at": at}


def _declared(ref: TableRef) -> list[Json]:
    """Assets are written down by DAG authors: who produces, consumes, or is scheduled by the table's."""
    from airflow.models import asset as models
    from airflow.utils.session import create_session
    from sqlalchemy import select

    kinds = (("TaskOutletAssetReference", "writes"), ("TaskInletAssetReference", "reads"),
             ("DagScheduleAssetReference", "scheduled by"))  # fmt: skip
    try:
        uris = {asset_uri(ref.uri), ref.uri, f"{ref.uri.rstrip('/')}/"}
    except ValueError:
        uris = {ref.uri}
    found: list[Json] = []
    with create_session() as session:
        ids = list(session.scalars(select(models.AssetModel.id).where(models.AssetModel.uri.in_(uris))))
        for name, does in kinds:
            kind = getattr(models, name, None)  # 3.0 and 3.1 have no inlets of tasks
            if kind is not None and ids:
                for row in session.scalars(select(kind).where(kind.asset_id.in_(ids))):
                    place = {"dag_id": row.dag_id, "task_id": getattr(row, "task_id", None), "run_id": None, "map_index": -1}
                    found.append({**place, "operator": None, "does": does, "at": None})
    return found
