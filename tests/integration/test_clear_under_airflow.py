"""What people do to runs, under a real scheduler: clear, clear with another spec, run again, map anew, two commit tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow_stack import AirflowStack

DAG = "lance_clears"
FAILURE = "its task was cleared"


def _make_parts(folder: Path) -> Path:
    """Ten rows each, ids from 10 n on; the day is 7 in each."""
    folder.mkdir()
    for part in (1, 2, 3):
        pq.write_table(pa.table({"id": range(part * 10, part * 10 + 10), "day": [7] * 10}), folder / f"part-{part}.parquet")
    return folder


def _ids(uri: Path) -> list[int]:
    table = lance.dataset(uri)
    table.validate()
    found: list[int] = sorted(table.to_table(columns=["id"])["id"].to_pylist())
    return found


def _rows(*parts: int) -> list[int]:
    return [number for part in parts for number in range(part * 10, part * 10 + 10)]


def _outcomes(result: dict[str, Any]) -> list[str]:
    return sorted(result["identities"].values())


def _trigger(stack: AirflowStack, dag: str, run_id: str, **conf: Any) -> None:
    stack.trigger(dag, run_id=run_id, conf=conf)


def _wait(stack: AirflowStack, dag: str, *run_ids: str) -> dict[str, str]:
    """The runs' states at their ends; a failed one is no error here."""
    return {run_id: stack.wait_for_run(dag, run_id) for run_id in run_ids}


def test_runs_that_people_repeat_and_clear(stack: AirflowStack, place: Path) -> None:
    folder = _make_parts(place / "clears")
    stack.wait_for_dag(DAG)
    stack.unpause(DAG)
    conf = {"place": str(folder), "day": "2013-01-01"}
    _trigger(stack, DAG, "first", **conf)
    assert _wait(stack, DAG, "first") == {"first": "success"}
    _trigger(stack, DAG, "second", **conf)
    assert _wait(stack, DAG, "second") == {"second": "success"}

    # By hand once more: the key stands for the work, where other tasks ask for it anew in each run.
    assert _outcomes(stack.xcom(DAG, "first", "once_a_day")) == ["committed"]
    assert _outcomes(stack.xcom(DAG, "second", "once_a_day")) == ["already_committed"]
    assert _ids(folder / "daily.lance") == _rows(1)
    assert _ids(folder / "appended.lance") == sorted(_rows(1, 1))
    assert _ids(folder / "mapped.lance") == sorted(_rows(1, 2, 1, 2))

    body = {"dag_run_id": "first", "dry_run": False, "only_failed": False}
    tasks = ["replace", "append", "days", "each"]
    stack.call("POST", f"dags/{DAG}/clearTaskInstances", {**body, "task_ids": tasks})
    assert _wait(stack, DAG, "first") == {"first": "failed"}
    states = {(task["task_id"], task["map_index"]): task["state"] for task in stack.tasks(DAG, "first")}
    # The replacement has another source in its second try, and is done again; nothing else is doubled or lost in silence.
    assert states == {
        ("replace", -1): "success",
        ("append", -1): "failed",
        ("once_a_day", -1): "success",
        ("days", -1): "success",
        ("each", 0): "failed",
        ("each", 1): "failed",
    }
    assert _outcomes(stack.xcom(DAG, "first", "replace")) == ["committed"]
    assert _ids(folder / "replaced.lance") == _rows(2)
    log = stack.task_log(DAG, "first", "append", try_number=2)
    assert FAILURE in log
    assert 'on_clear="again"' in log.replace("\\", "")
    assert FAILURE in stack.task_log(DAG, "first", "each", try_number=2)
    assert _ids(folder / "appended.lance") == sorted(_rows(1, 1))
    assert _ids(folder / "mapped.lance") == sorted(_rows(1, 2, 1, 2))


def test_a_green_run_says_what_it_left_staged(stack: AirflowStack, place: Path) -> None:
    dag = "lance_left_staged"
    folder = _make_parts(place / "left")
    stack.wait_for_dag(dag)
    stack.unpause(dag)
    _trigger(stack, dag, "left", place=str(folder))
    assert _wait(stack, dag, "left") == {"left": "success"}
    (run,) = stack.runs(dag)
    assert run["note"].startswith("Staged and not published: append (commit: skipped). Clear what kept")

    body = {"dag_run_id": "left", "dry_run": False, "only_failed": False, "task_ids": ["is_wanted", "commit"]}
    stack.call("POST", f"dags/{dag}/clearTaskInstances", body)
    assert _wait(stack, dag, "left") == {"left": "success"}
    (run,) = stack.runs(dag)
    assert _ids(folder / "left.lance") == _rows(1)
    assert not run["note"], "what has been published since is no longer said"


@pytest.mark.slow
def test_two_commit_tasks_in_the_default_pool(stack: AirflowStack, place: Path) -> None:
    stack.wait_for_dag("lance_two_commits")
    stack.unpause("lance_two_commits")
    runs = [f"run-{number}" for number in range(4)]
    for run_id in runs:
        folder = _make_parts(place / f"two-commits-{run_id}")
        _trigger(stack, "lance_two_commits", run_id, place=str(folder))
    assert set(_wait(stack, "lance_two_commits", *runs).values()) == {"success"}
    for run_id in runs:
        folder = place / f"two-commits-{run_id}"
        assert _ids(folder / "merged.lance") == _rows(1), "each key once"
        assert _ids(folder / "same_day.lance") in (_rows(1), _rows(2)), "the day of one of them"
        commits = {task["task_id"]: task for task in stack.tasks("lance_two_commits", run_id) if "commit" in task["task_id"]}
        assert {task["pool"] for task in commits.values()} == {"default_pool"}


OUTCOMES: dict[str, tuple[list[str], str, str, list[int] | None]] = {
    "one-skipped": (["part-1", "missing", "part-2"], "success", "success", _rows(1, 2)),
    "one-failed": (["part-1", "broken"], "failed", "upstream_failed", None),
    "skipped-and-failed": (["part-1", "missing", "broken"], "failed", "upstream_failed", None),
    "all-skipped": (["missing", "missing too"], "success", "skipped", None),
    "none": ([], "success", "skipped", None),
}
"""What the mapped tasks read, how run and commit end, and the table's rows."""


@pytest.mark.slow
def test_a_commit_behind_mapped_tasks_that_skip_and_fail(stack: AirflowStack, place: Path) -> None:
    dag = "lance_mapped_outcomes"
    stack.wait_for_dag(dag)
    stack.unpause(dag)
    for run_id, (names, *_) in OUTCOMES.items():
        folder = _make_parts(place / f"outcomes-{run_id}")
        (folder / "broken.parquet").write_bytes(b"no Parquet")
        _trigger(stack, dag, run_id, place=str(folder), names=names)
    ended = _wait(stack, dag, *OUTCOMES)
    for run_id, (_, run_state, commit_state, rows) in OUTCOMES.items():
        (commit,) = (task for task in stack.tasks(dag, run_id) if task["task_id"] == "day.commit")
        assert (ended[run_id], commit["state"]) == (run_state, commit_state), run_id
        table = place / f"outcomes-{run_id}" / "outcomes.lance"
        if rows is None:
            assert not (table / "_versions").exists(), f"{run_id}: something was published"
        else:
            assert _ids(table) == rows
            assert "ERROR" not in stack.task_log(dag, run_id, "day.commit"), "a log of a good commit has no red line"
