"""Tasks that stage on YARN, one try at a time, and what is compared afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa

from airflow_lance.operators.append import LanceAppendOperator

SOURCES = Path(__file__).parent / "sources" / "yarn_sources.py"


def slow(paths: Sequence[str], seconds: float = 1.0) -> dict[str, Any]:
    """The source of rows that take their time (`yarn_sources`), which is sent along."""
    return {"callable": "yarn_sources:slow_rows", "kwargs": {"paths": [*paths], "seconds": seconds}}


def append(
    uri: str, source: Mapping[str, Any], *, mode: str, run_id: str = "r", states: Any = None, **arguments: Any
) -> dict[str, Any]:
    """One try of a task that appends and publishes; the same again is its retry. What it returns."""
    return operator_of(uri, source, mode=mode, **arguments).execute(context(run_id, states))


def operator_of(uri: str, source: Mapping[str, Any], *, mode: str, **arguments: Any) -> LanceAppendOperator:
    """The task."""
    submit = arguments.pop("spark_submit", {})
    if "callable" in source:
        submit = {"py_files": str(SOURCES), **submit}
    return LanceAppendOperator(
        task_id="append", uri=uri, source=source, spark_conn_id=f"yarn_{mode}", spark_submit=submit, **arguments
    )


def context(run_id: str, states: Any = None) -> Any:
    """What Airflow hands a task."""
    ti = SimpleNamespace(dag_id="d", run_id=run_id, task_id="append", map_index=-1, try_number=1, max_tries=2, stats_tags={})
    found = {"ti": ti, "dag_run": SimpleNamespace(start_date=None, clear_number=0), "outlet_events": {}}
    return found if states is None else {**found, "task_state_store": states}


def same_rows(table: Any, expected: pa.Table) -> bool:
    """Whether the official library reads just these rows, in whatever order."""
    table.validate()
    return sorted_rows(table.to_table()).equals(sorted_rows(expected))


def sorted_rows(table: pa.Table) -> pa.Table:
    """In an order that the rows have by themselves."""
    names = sorted(table.column_names)
    return table.select(names).sort_by([(name, "ascending") for name in names]).combine_chunks()


def judge(uri: str, options: Mapping[str, str] | None = None) -> Any:
    """The table as the official library opens it."""
    return lance.dataset(uri, storage_options=dict(options) if options else None)
