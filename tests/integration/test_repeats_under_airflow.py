"""Runs deleted and made again, a list that shrinks between a run and its clear, and a forgotten write, under a real
scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from airflow_stack import AirflowStack

from lance_core.io.resolve import resolve_store
from lance_core.publish.attempts import list_staged


def _write_part(folder: Path, part: int, start: int) -> None:
    pq.write_table(pa.table({"id": range(start, start + 10), "day": [7] * 10}), folder / f"part-{part}.parquet")


def _ids(uri: Path) -> list[int]:
    table = lance.dataset(uri)
    table.validate()
    found: list[int] = sorted(table.to_table(columns=["id"])["id"].to_pylist())
    return found


def _wait(stack: AirflowStack, dag: str, run_id: str) -> dict[tuple[str, int], str]:
    """The states of the run's tasks at its end."""
    stack.wait_for_run(dag, run_id)
    return {(item["task_id"], item["map_index"]): item["state"] for item in stack.tasks(dag, run_id)}


def _run(stack: AirflowStack, dag: str, run_id: str, **conf: Any) -> dict[tuple[str, int], str]:
    stack.trigger(dag, run_id=run_id, conf=conf)
    return _wait(stack, dag, run_id)


def test_a_run_that_was_deleted_and_made_again_is_no_silent_success(stack: AirflowStack, place: Path) -> None:
    dag, folder = "lance_created_again", place / "created-again"
    folder.mkdir()
    _write_part(folder, 1, 10)
    stack.wait_for_dag(dag)
    stack.unpause(dag)
    assert set(_run(stack, dag, "one", place=str(folder)).values()) == {"success"}
    assert stack.xcom(dag, "one", "abandon")["abandoned"] == [stack.xcom(dag, "one", "forgotten")["identity"]]
    assert list_staged(resolve_store(str(folder / "forgotten.lance"))) == []
    assert "had waited for its commit for 0.0 hours and was aborted" in stack.task_log(dag, "one", "abandon", try_number=1)

    # The executor's word of a task that has ended reaches the scheduler later, by name alone: in a run that is made again at
    # once it would be taken for the new task's, which the scheduler then fails while it runs.
    stack.wait_for_executor(dag, "one")
    stack.call("DELETE", f"dags/{dag}/dagRuns/one")
    _write_part(folder, 1, 20)
    states = _run(stack, dag, "one", place=str(folder))
    assert (states["again", -1], states["once", -1]) == ("success", "failed")
    assert "deleted and created again" in stack.task_log(dag, "one", "once", try_number=1)
    assert _ids(folder / "again.lance") == [*range(10, 30)]
    assert _ids(folder / "once.lance") == [*range(10, 20)]


def test_what_a_shrunk_list_has_lost_is_aborted_by_the_commit(stack: AirflowStack, place: Path) -> None:
    dag, folder = "lance_shrunk", place / "shrunk"
    folder.mkdir()
    for part in (1, 2, 3):
        _write_part(folder, part, 10 * part)
    stack.wait_for_dag(dag)
    stack.unpause(dag)
    states = _run(stack, dag, "one", place=str(folder))
    assert [states["each", number] for number in range(3)] == ["success"] * 3
    assert states["commit", -1] == "skipped"
    store = resolve_store(str(folder / "shrunk.lance"))
    assert len(list_staged(store)) == 3

    body = {
        "dag_run_id": "one",
        "dry_run": False,
        "only_failed": False,
        "task_ids": ["files", "each", "is_wanted", "commit"],
    }
    stack.call("POST", f"dags/{dag}/clearTaskInstances", body)
    states = _wait(stack, dag, "one")
    assert states["commit", -1] == "success"
    assert _ids(folder / "shrunk.lance") == [*range(10, 30)]
    # A task that was skipped has used no try up.
    log = "".join(stack.task_log(dag, "one", "commit", try_number=number) for number in (1, 2))
    assert "each[2] is no longer part of its list: the 10 rows that it had staged" in log
    assert list_staged(store) == []
