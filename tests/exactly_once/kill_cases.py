"""What is killed: kinds of work as operators, each with the rows that must be there in the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from kill_plan import KillPlan, install

BASE = [*range(30)]
OUTSIDE = (1001, 1002)
"""Rows that somebody else appends meanwhile, a version each."""


class FakeTi:
    """What an operator asks of its task instance."""

    def __init__(self, task_id: str) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index, self.try_number = "d", "r", task_id, -1, 1


def execute(operator: Any) -> Any:
    """One try of a task; a staging one leaves the publication to the commit task of the run."""
    if getattr(operator, "commit", "") is None:
        operator.commit = "elsewhere"
    return operator.execute({"ti": FakeTi(operator.task_id), "outlet_events": {}})


@dataclass(frozen=True)
class Case:
    """`tasks(uri, raw)` makes the staging operators; `rows` is what is there in the end; `creates`: on no table; `added`: a
    column that holds twice the id in all rows but those that came later."""

    tasks: Callable[[str, str], Sequence[Any]]
    rows: Sequence[int]
    creates: bool = False
    num_versions: int = 1
    added: str = ""


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([i // 10 for i in ids], pa.int32())})


def prepare(place: Path) -> None:
    """The table that every kill starts from, and what is appended to it."""
    for start in (0, 10, 20):
        lance.write_dataset(rows(start, start + 10), str(place / "base.lance"), mode="append" if start else "create")
    (place / "raw").mkdir()
    pq.write_table(rows(100, 110), place / "raw" / "new.parquet")
    pq.write_table(rows(2, 5), place / "raw" / "day0.parquet")


def start_over(place: Path, case: Case, name: str = "t.lance") -> str:
    """A fresh copy of the table; nothing, for a case that creates it."""
    target = place / name
    shutil.rmtree(target, ignore_errors=True)
    if not case.creates:
        shutil.copytree(place / "base.lance", target)
    return str(target)


def run(case: Case, uri: str, raw: str, plan: KillPlan | None = None) -> Mapping[str, Any]:
    """The tasks of a run one after the other, then the commit; what it returned."""
    from airflow_lance.operators.commit import LanceCommitOperator

    reach = (lambda name: None) if plan is None else plan.reach
    staged = []
    for task in case.tasks(uri, raw):
        staged.append(execute(task))
        reach(f"task {task.task_id}")
    done: Mapping[str, Any] = execute(LanceCommitOperator(task_id="commit", uri=uri, staged=staged))
    reach("task commit")
    return done


def run_and_die(name: str, uri: str, raw: str, at: int, names: str = "") -> None:
    """The child process: the run with a plan."""
    run(CASES[name], uri, raw, install(KillPlan(at=at, names=names, under=uri)))


def _append(uri: str, raw: str, task_id: str = "append") -> Any:
    from airflow_lance.operators.append import LanceAppendOperator

    return LanceAppendOperator(
        task_id=task_id,
        uri=uri,
        execution="local",
        source={"format": "parquet", "paths": [f"{raw}/new.parquet"]},
        max_rows_per_file=5,
        progress_seconds=600,
    )


def _delete(uri: str, predicate: str) -> Any:
    from airflow_lance.operators.delete import LanceDeleteOperator

    return LanceDeleteOperator(task_id="delete", uri=uri, execution="local", predicate=predicate)


def _update(uri: str) -> Any:
    from airflow_lance.operators.update import LanceUpdateOperator

    return LanceUpdateOperator(
        task_id="update", uri=uri, execution="local", updates={"id": "id + 100"}, where="id >= 20 and id < 25"
    )


def _compact(uri: str) -> Any:
    from airflow_lance.operators.compact import LanceCompactOperator

    return LanceCompactOperator(task_id="compact", uri=uri, execution="local")


def _overwrite(uri: str, raw: str) -> Any:
    from airflow_lance.operators.overwrite import LanceOverwriteOperator

    return LanceOverwriteOperator(
        task_id="overwrite",
        uri=uri,
        execution="local",
        source={"format": "parquet", "paths": [f"{raw}/new.parquet"]},
        if_moved="overwrite",
    )


def _replace(uri: str, raw: str) -> Any:
    from airflow_lance.operators.replace_where import LanceReplaceWhereOperator

    return LanceReplaceWhereOperator(
        task_id="replace",
        uri=uri,
        execution="local",
        predicate="day = 0",
        source={"format": "parquet", "paths": [f"{raw}/day0.parquet"]},
    )


def _merge(uri: str, raw: str) -> Any:
    from airflow_lance.operators.merge import LanceMergeOperator

    return LanceMergeOperator(
        task_id="merge", uri=uri, execution="local", on="id", source={"format": "parquet", "paths": [f"{raw}/new.parquet"]}
    )


def _add_columns(uri: str) -> Any:
    from airflow_lance.operators.add_columns import LanceAddColumnsOperator

    return LanceAddColumnsOperator(
        task_id="add_columns", uri=uri, execution="local", columns={"twice": "id * 2"}, rows_per_task=10
    )


def _build_index(uri: str) -> Any:
    from airflow_lance.operators.build_index import LanceBuildIndexOperator

    return LanceBuildIndexOperator(task_id="index", uri=uri, execution="local", column="id", index_type="BTREE")


CASES: Mapping[str, Case] = {
    "append": Case(lambda uri, raw: [_append(uri, raw)], [*BASE, *range(100, 110)]),
    "create": Case(lambda uri, raw: [_append(uri, raw)], [*range(100, 110)], creates=True),
    "delete": Case(lambda uri, raw: [_delete(uri, "id < 12")], [*range(12, 30)]),
    "update": Case(lambda uri, raw: [_update(uri)], [*range(20), *range(25, 30), *range(120, 125)]),
    "replace": Case(lambda uri, raw: [_replace(uri, raw)], [2, 3, 4, *range(10, 30)]),
    "compact": Case(lambda uri, raw: [_compact(uri)], BASE),
    "merge": Case(lambda uri, raw: [_merge(uri, raw)], [*BASE, *range(100, 110)]),
    "columns": Case(lambda uri, raw: [_add_columns(uri)], BASE, added="twice"),
    "index": Case(lambda uri, raw: [_build_index(uri)], BASE),
    "overwrite": Case(lambda uri, raw: [_overwrite(uri, raw)], [*range(100, 110)]),
    "fold": Case(
        lambda uri, raw: [_append(uri, raw), _delete(uri, "id < 12"), _update(uri)],
        [*range(12, 20), *range(25, 30), *range(100, 110), *range(120, 125)],
    ),
}
