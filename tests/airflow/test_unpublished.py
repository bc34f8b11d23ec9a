"""A run that ends with staged work of its own says so, in its note and in the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.listeners.listener import get_listener_manager
from airflow.sdk import DAG, task

from airflow_lance import unpublished as listener_module
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.ui.plugin import LancePlugin
from airflow_lance.unpublished import note_of, unpublished
from lance_core.io.resolve import resolve_store
from lance_core.publish.attempts import list_staged

RunDag = Callable[..., Any]
STAGES, COMMITS = ("uri", *LanceAppendOperator.template_fields), (*LanceCommitOperator.template_fields,)


def test_the_plugin_registers_the_listener() -> None:
    LancePlugin.on_load()
    assert LancePlugin.listeners == [listener_module]


@dataclass(frozen=True)
class StoredTask:
    """What a stored DAG knows of a task."""

    template_fields: tuple[str, ...]
    downstream_task_ids: frozenset[str] = frozenset()


TASKS = {
    "append": StoredTask(STAGES, frozenset({"commit", "report"})),
    "alone": StoredTask(STAGES, frozenset({"report"})),
    "commit": StoredTask(COMMITS),
    "report": StoredTask(("bash_command",)),
}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([("append", "success"), ("alone", "success"), ("commit", "success")], {}),
        ([("append", "success"), ("commit", "skipped")], {"append": "commit: skipped"}),
        (
            [("append", "success"), ("commit", "upstream_failed"), ("report", "success")],
            {"append": "commit: upstream_failed"},
        ),
        ([("append", "success")], {"append": "commit: not run"}),
        ([("append", "success"), ("append", "failed"), ("commit", None)], {"append": "commit: not run"}),
        ([("append", "failed"), ("commit", "upstream_failed")], {}),
        ([("append", "success"), ("commit", "skipped"), ("commit", "success")], {}),
    ],
    ids=["published", "skipped", "upstream-failed", "removed", "mapped", "nothing-staged", "mapped-commit"],
)
def test_what_no_commit_published_is_named(states: list[tuple[str, str | None]], expected: dict[str, str]) -> None:
    assert unpublished(TASKS, states) == expected


def test_a_note_of_many_tasks_fits() -> None:
    note = note_of({f"a_rather_long_name_of_a_task_{number}": "commit: skipped" for number in range(100)})
    assert len(note) < 1000
    assert "lance staged list" in note


@pytest.fixture(autouse=True)
def listener() -> Iterator[None]:
    """The listener, as the plugin registers it where the package is installed."""
    manager = get_listener_manager()
    is_there = manager.pm.is_registered(listener_module)
    if not is_there:
        manager.add_listener(listener_module)
    yield
    if not is_there:
        manager.pm.unregister(listener_module)


@pytest.fixture
def lake(tmp_path: Path, connection: Callable[[str, str], None]) -> Path:
    """A connection to a folder with ten rows in a Parquet file."""
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    pq.write_table(pa.table({"id": list(range(10))}), tmp_path / "rows.parquet")
    return tmp_path


def _append(lake: Path) -> LanceAppendOperator:
    source = {"format": "parquet", "paths": [f"{lake}/rows.parquet"]}
    return LanceAppendOperator(task_id="append", uri="t.lance", lance_conn_id="lake", execution="local", source=source)


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == listener_module.__name__]


def test_a_green_run_whose_commit_was_skipped_says_so(
    lake: Path, run_dag: RunDag, listener: None, caplog: pytest.LogCaptureFixture
) -> None:
    with DAG("unpublished_skipped", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:

        @task.short_circuit
        def is_needed() -> bool:
            return False

        append = _append(lake)
        commit = LanceCommitOperator(task_id="commit", staged=[append.output], lance_conn_id="lake")
        append >> is_needed() >> commit
    run = run_dag(dag)
    assert run.state == "success"
    assert len(list_staged(resolve_store(f"{lake}/t.lance"))) == 1
    (warning,) = _warnings(caplog)
    assert "Staged and not published: append (commit: skipped)" in warning


def test_a_failed_run_says_what_it_has_staged(
    lake: Path, run_dag: RunDag, listener: None, caplog: pytest.LogCaptureFixture
) -> None:
    with DAG("unpublished_failed", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:

        @task
        def fails() -> None:
            raise ValueError("the other task of the group fails")

        with LanceTransaction("load", lance_conn_id="lake"):
            _append(lake)
            fails()
    run = run_dag(dag)
    assert run.state == "failed"
    (warning,) = _warnings(caplog)
    assert "load.append (load.commit: upstream_failed)" in warning


def test_a_run_that_published_all_says_nothing(
    lake: Path, run_dag: RunDag, listener: None, caplog: pytest.LogCaptureFixture
) -> None:
    start = datetime(2013, 1, 1, tzinfo=timezone.utc)
    with DAG("unpublished_none", schedule=None, start_date=start) as dag, LanceTransaction("load", lance_conn_id="lake"):
        _append(lake)
    run = run_dag(dag)
    assert (run.state, _warnings(caplog)) == ("success", [])
