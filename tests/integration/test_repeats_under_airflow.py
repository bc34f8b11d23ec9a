"""Runs deleted and made again, retries raised behind a clear, a list that shrinks between a run and its clear, and a
forgotten write, under a real scheduler: with tables on the disk and on an emulated S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow_stack import AirflowStack, StackError
from lakes import Lake, lake_of


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.slow)])
def lake(request: pytest.FixtureRequest, stack: AirflowStack, tmp_path: Path) -> Iterator[Lake]:
    """On the disk or on S3."""
    with lake_of(request, stack, tmp_path) as found:
        yield found


def _write_part(folder: Path, part: int, start: int) -> None:
    pq.write_table(pa.table({"id": range(start, start + 10), "day": [7] * 10}), folder / f"part-{part}.parquet")


def _begin(stack: AirflowStack, dag: str) -> None:
    stack.wait_for_dag(dag)
    stack.unpause(dag)


def _wait(stack: AirflowStack, dag: str, run_id: str) -> dict[tuple[str, int], str]:
    """The states of the run's tasks at its end."""
    stack.wait_for_run(dag, run_id)
    return {(item["task_id"], item["map_index"]): item["state"] for item in stack.tasks(dag, run_id)}


def _run(stack: AirflowStack, dag: str, run_id: str, folder: Path, lake: Lake) -> dict[tuple[str, int], str]:
    stack.trigger(dag, run_id=run_id, conf={"place": str(folder), "lake": lake.base})
    return _wait(stack, dag, run_id)


def _clear(stack: AirflowStack, dag: str, run_id: str, *tasks: str) -> None:
    body = {"dag_run_id": run_id, "dry_run": False, "only_failed": False, "task_ids": list(tasks)}
    stack.call("POST", f"dags/{dag}/clearTaskInstances", body)


def test_a_run_that_was_deleted_and_made_again_is_no_silent_success(stack: AirflowStack, lake: Lake, tmp_path: Path) -> None:
    dag = f"lance_created_again{lake.suffix}"
    _write_part(tmp_path, 1, 10)
    _begin(stack, dag)
    assert set(_run(stack, dag, "one", tmp_path, lake).values()) == {"success"}
    assert stack.xcom(dag, "one", "abandon")["abandoned"] == [stack.xcom(dag, "one", "forgotten")["identity"]]
    assert lake.staged("forgotten") == []
    assert "had waited for its commit for 0.0 hours and was aborted" in stack.task_log(dag, "one", "abandon", try_number=1)

    # The executor's word of a task that has ended reaches the scheduler later, by name alone: in a run that is made again at
    # once it would be taken for the new task's, which the scheduler then fails while it runs.
    stack.wait_for_executor(dag, "one")
    stack.call("DELETE", f"dags/{dag}/dagRuns/one")
    _write_part(tmp_path, 1, 20)
    states = _run(stack, dag, "one", tmp_path, lake)
    assert (states["again", -1], states["once", -1]) == ("success", "failed")
    assert "deleted and created again" in stack.task_log(dag, "one", "once", try_number=1)
    assert lake.ids("again") == [*range(10, 30)]
    assert lake.ids("once") == [*range(10, 20)]


def test_a_clear_is_one_when_retries_are_raised_before_it_runs(
    stack: AirflowStack, lake: Lake, tmp_path: Path, place: Path
) -> None:
    """Airflow's own number of tries at most is then what it is for a task that nobody cleared."""
    dag = f"lance_raised{lake.suffix}"
    _write_part(tmp_path, 1, 10)
    _begin(stack, dag)
    assert _run(stack, dag, "one", tmp_path, lake) == {("raised", -1): "success"}
    stack.wait_for_executor(dag, "one")
    stack.call("PATCH", f"dags/{dag}", {"is_paused": True})
    _clear(stack, dag, "one", "raised")
    (task,) = stack.tasks(dag, "one")
    assert task["max_tries"] == 1
    (place / f"retries{lake.suffix}").write_text("1")
    stack.until(lambda: _read_again(stack, dag) == 1, what=f"{dag} with a retry", timeout=300)
    stack.unpause(dag)
    assert _wait(stack, dag, "one") == {("raised", -1): "failed"}
    assert "its task was cleared" in stack.task_log(dag, "one", "raised", try_number=2)
    assert lake.ids("raised") == [*range(10, 20)]


def _read_again(stack: AirflowStack, dag: str) -> int:
    """Ask for the DAG's file to be read anew; returns the task's retries as they are known now. What is read within half a
    minute of the last time is not kept, so it is asked for as long as it takes."""
    token = stack.call("GET", f"dags/{dag}")["file_token"]
    with suppress(StackError):  # somebody has asked already
        stack.call("PUT", f"parseDagFile/{token}")
    return int(stack.call("GET", f"dags/{dag}/tasks/raised")["retries"])


def test_what_a_shrunk_list_has_lost_is_aborted_by_the_commit(stack: AirflowStack, lake: Lake, tmp_path: Path) -> None:
    dag = f"lance_shrunk{lake.suffix}"
    for part in (1, 2, 3):
        _write_part(tmp_path, part, 10 * part)
    _begin(stack, dag)
    states = _run(stack, dag, "one", tmp_path, lake)
    assert [states["each", number] for number in range(3)] == ["success"] * 3
    assert states["commit", -1] == "skipped"
    assert len(lake.staged("shrunk")) == 3

    _clear(stack, dag, "one", "files", "each", "is_wanted", "commit")
    states = _wait(stack, dag, "one")
    assert states["commit", -1] == "success"
    assert lake.ids("shrunk") == [*range(10, 30)]
    # A task that was skipped has used no try up.
    log = "".join(stack.task_log(dag, "one", "commit", try_number=number) for number in (1, 2))
    assert "each[2] is no longer part of its list: the 10 rows that it had staged" in log
    assert lake.staged("shrunk") == []
