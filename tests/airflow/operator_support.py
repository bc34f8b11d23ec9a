"""Runs an operator as a task instance would, without a scheduler."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa


class FakeTi:
    """What an operator asks of its task instance. `cleared_after`: how many tries a person's clear found used up."""

    def __init__(self, task_id: str, run_id: str, *, map_index: int = -1, cleared_after: int = 0, retries: int = 0) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index = "d", run_id, task_id, map_index
        self.try_number, self.max_tries = cleared_after + 1, cleared_after + retries


def execute(
    operator: Any,
    *,
    run_id: str = "r",
    publishes: bool = False,
    map_index: int = -1,
    cleared_after: int = 0,
    max_tries: int | None = None,
    began: datetime | None = None,
    clear_number: int = 0,
) -> Any:
    """One try of a task; the same operator and run id again are a retry, and with `cleared_after` the run after a clear.

    It only stages unless it `publishes`. `began`: when its DAG run began; `clear_number`: its clears.
    """
    if not publishes and getattr(operator, "commit", "") is None:
        operator.commit = "elsewhere"
    ti = FakeTi(
        operator.task_id, run_id, map_index=map_index, cleared_after=cleared_after, retries=getattr(operator, "retries", 0)
    )
    if max_tries is not None:
        ti.max_tries = max_tries
    run = SimpleNamespace(start_date=began, clear_number=clear_number)
    return operator.execute({"ti": ti, "dag_run": run, "outlet_events": {}})


def make_table(uri: Path, *starts: int) -> str:
    """A table made by the official library: ten rows from each start, a fragment each, `day` = start // 10."""
    for number, start in enumerate(starts):
        table = pa.table({"id": list(range(start, start + 10)), "day": [start // 10] * 10})
        lance.write_dataset(table, str(uri), mode="append" if number else "create")
    return str(uri)


def ids(uri: str) -> list[int]:
    """The judge's view of the table."""
    table = lance.dataset(uri)
    table.validate()
    found: list[int] = sorted(table.to_table(columns=["id"])["id"].to_pylist())
    return found
