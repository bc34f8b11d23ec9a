"""kill -9 of task processes and of Spark drivers, under the scheduler, which retries them: rows and versions exact."""

from __future__ import annotations

import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from airflow_stack import AirflowStack

from lance_core.commit.garbage import collect_garbage
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.io.local import LocalStore

TASK_STEPS = [
    ("append", "publish _lance_core/staged/"),
    ("append", "write data/"),
    ("append", "publish data/"),
    ("append", "publish _transactions/"),
    ("append", "publish _lance_core/staged/…/finished.json"),
    ("commit", "publish _lance_core/commits/"),
    ("commit", "publish _transactions/"),
    ("commit", "write _versions/…"),
    ("commit", "publish _versions/…"),
    ("commit", "publish _lance_core/ledger/"),
    ("commit", "delete _transactions/"),
    ("commit", "delete _lance_core/commits/"),
]
DRIVER_STEPS = ["publish _lance_core/staged/", "publish _transactions/", "publish _lance_core/staged/…/finished.json"]
BASE = [*range(10)]
LATER = 10 * 24 * 3600.0


def _make(place: Path, name: str) -> Path:
    uri = place / f"{name}.lance"
    lance.write_dataset(pa.table({"id": pa.array(BASE, pa.int64())}), uri)
    return uri


def _check(uri: Path) -> None:
    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table()["id"].to_pylist()) == [*BASE, *range(100, 110)], uri.name
    assert table.version == 2, uri.name
    store = LocalStore(str(uri))
    collect_garbage(store, now=time.time() + LATER)
    wanted = {path for entry in list_versions(store) for path in referenced_files(load_manifest(store, entry.version))}
    found = {entry.path for entry in [*store.list(""), *store.list_unfinished("")]} - wanted
    assert {path for path in found if not path.startswith(("_versions/", "_lance_core/ledger/"))} == set(), uri.name


@pytest.mark.slow
def test_task_processes_are_killed_and_retried(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_kills")
    stack.unpause("lance_kills")
    tables = []
    for number, (where, step) in enumerate(TASK_STEPS):
        uri, once = _make(place, f"task-kill-{number}"), place / f"task-kill-{number}.died"
        stack.trigger(
            "lance_kills",
            run_id=f"kill-{number}",
            conf={"table": str(uri), "where": where, "plan": {"step": step, "once": str(once), "under": str(uri)}},
        )
        tables.append((uri, once))
    stack.wait_for_runs("lance_kills", num_runs=len(TASK_STEPS), timeout=1800)
    for number, (uri, once) in enumerate(tables):
        assert once.exists(), TASK_STEPS[number]
        tries = {task["task_id"]: task["try_number"] for task in stack.tasks("lance_kills", f"kill-{number}")}
        assert tries[TASK_STEPS[number][0]] == 2, TASK_STEPS[number]
        _check(uri)


@pytest.mark.slow
def test_drivers_are_killed_and_retried(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_driver_kills")
    stack.unpause("lance_driver_kills")
    tables = []
    for number, step in enumerate(DRIVER_STEPS):
        uri, once = _make(place, f"driver-kill-{number}"), place / f"driver-kill-{number}.died"
        conf = {"table": str(uri), "step": step, "once": str(once)}
        stack.trigger("lance_driver_kills", run_id=f"kill-{number}", conf=conf)
        tables.append((uri, once))
    stack.wait_for_runs("lance_driver_kills", num_runs=len(DRIVER_STEPS), timeout=1800)
    for number, (uri, once) in enumerate(tables):
        assert once.exists(), DRIVER_STEPS[number]
        _check(uri)
