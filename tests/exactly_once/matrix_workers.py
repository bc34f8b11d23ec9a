"""The workers of the conflict matrix: each kind of task again and again on one table, as Airflow would run it.

A task is staged without a lock and committed in the lane (an Airflow pool of one slot, here a lock). What may be retried is
retried three times, like a task with `retries=3`; anything else is a failed task. The outside writer knows neither lane nor
operators.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DELETED_FROM, UPDATED_FROM, KEPT_FROM, BASE_END = 0, 10_000, 20_000, 30_000
"""Rows of the base: some to be deleted, ten at a time, some to be updated, some that nobody touches."""
BLOCK, ADDED = 10, 20
APPENDED_FROM, OUTSIDE_FROM = 1_000_000, 2_000_000_000
TRIES = 4


class MatrixTi:
    """A task instance of the n-th run."""

    def __init__(self, task_id: str, run: int) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index, self.try_number = "matrix", f"run-{run}", task_id, -1, 1


def rows(first: int, count: int) -> Any:
    """`id` from a number on, `value` zero."""
    import pyarrow as pa

    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "value": pa.array([0] * count, pa.int64())})


def work(kind: str, uri: str, seconds: float, lane: Any, log: str) -> None:
    """Tasks of one kind until the time is over; a JSON line each."""
    until, number, most = time.monotonic() + seconds, 0, _MOST.get(kind, 1 << 30)
    # What can be done only so often is done from the first second to the last.
    pause = max(_PAUSES.get(kind, 0.2), seconds / most)
    while time.monotonic() < until and number < most:
        began = time.monotonic()
        record = _outside(uri, number) if kind == "outside" else _task(kind, uri, number, lane)
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "n": number, "seconds": time.monotonic() - began, **record}) + "\n")
        number += 1
        time.sleep(pause)


def _task(kind: str, uri: str, number: int, lane: Any) -> Mapping[str, Any]:
    from airflow.exceptions import AirflowFailException

    from airflow_lance.operators.commit import LanceCommitOperator

    operator = _OPERATORS[kind](number, {"task_id": kind, "uri": uri, "execution": "local"})
    error = ""
    for tried in range(TRIES):
        try:
            staged = operator.execute({"ti": MatrixTi(kind, number), "outlet_events": {}})
            with lane:
                commit = LanceCommitOperator(task_id=f"{kind}-commit", uri=uri, staged=staged)
                done = commit.execute({"ti": MatrixTi("commit", number), "outlet_events": {}})
            return {"ok": True, "tries": tried + 1, "version": done["version"], "re_executed": done["re_executed"]}
        except AirflowFailException as failure:
            return {"ok": False, "tries": tried + 1, "error": f"{type(failure).__name__}: {failure}"}
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
            time.sleep(0.2)
    return {"ok": False, "tries": TRIES, "error": error}


def _outside(uri: str, number: int) -> Mapping[str, Any]:
    """The official library appends; it may lose against others, which is its own affair."""
    import lance
    import pyarrow as pa

    table = rows(OUTSIDE_FROM + number * ADDED, ADDED)
    try:
        schema = lance.dataset(uri).schema
        nulls = {field.name: pa.nulls(ADDED, field.type) for field in schema if field.name not in table.column_names}
        full = pa.table({**{name: table[name] for name in table.column_names}, **nulls}).select(schema.names)
        lance.write_dataset(full, uri, mode="append")
    except Exception as failure:
        return {"ok": False, "tries": 1, "error": f"{type(failure).__name__}: {failure}"}
    return {"ok": True, "tries": 1}


def _append(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.append import LanceAppendOperator

    source = {"callable": "matrix_workers:rows", "kwargs": {"first": APPENDED_FROM + number * ADDED, "count": ADDED}}
    return LanceAppendOperator(source=source, schema_drift="fill_missing", **own)


def _delete(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.delete import LanceDeleteOperator

    first = DELETED_FROM + number * BLOCK
    return LanceDeleteOperator(predicate=f"id >= {first} and id < {first + BLOCK}", **own)


def _update(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.update import LanceUpdateOperator

    first = UPDATED_FROM + number * BLOCK
    return LanceUpdateOperator(updates={"value": "value + 1"}, where=f"id >= {first} and id < {first + BLOCK}", **own)


def _compact(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.compact import LanceCompactOperator

    return LanceCompactOperator(target_rows_per_fragment=5_000, **own)


def _add_columns(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.add_columns import LanceAddColumnsOperator

    return LanceAddColumnsOperator(columns={f"twice_{number}": "id * 2"}, **own)


def _build_index(number: int, own: Mapping[str, Any]) -> Any:
    from airflow_lance.operators.build_index import LanceBuildIndexOperator

    return LanceBuildIndexOperator(column="id", index_type="BTREE", replace=True, **own)


_OPERATORS: Mapping[str, Callable[[int, Mapping[str, Any]], Any]] = {
    "append": _append,
    "delete": _delete,
    "update": _update,
    "compact": _compact,
    "add_columns": _add_columns,
    "build_index": _build_index,
}
KINDS = (*_OPERATORS, "outside")
_MOST = {"delete": (UPDATED_FROM - DELETED_FROM) // BLOCK, "update": (KEPT_FROM - UPDATED_FROM) // BLOCK, "add_columns": 20}
_PAUSES = {"add_columns": 3.0, "build_index": 2.0, "compact": 0.5}
