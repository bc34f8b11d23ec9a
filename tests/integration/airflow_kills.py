"""Kills under a real scheduler: many runs at once, each with its own table, its own way to die and to go on.

::

    Kill("append", 17, "their cleanup")    run of `lance_kills_cleared` with a plan; its task dies, the run fails;
                                           others append, the official library cleans up; the task is cleared; judged

What the scheduler does is watched through its API, as a person would, and cleared through it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_stack import AirflowStack, StackError
from kill_cases import CASES, prepare, start_over
from kill_harness import append_outside, check, clean_theirs, settle_by_looking

from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import CleanupSpec

CASE = CASES["append"]
WAYS = ("retry", "twice", "clear", "our cleanup", "their cleanup")
_RETRIED = ("retry", "twice")
_FOLDER = "kills"
_RAISED = "Task failed with exception"
_MOST_GIVEN_UP = 3
_PATIENCE = 10
"""How often something is asked for again when no answer comes within half a minute."""


@dataclass(frozen=True)
class Kill:
    """A point and what follows; `step` is a name, `at` a number of the task's own steps."""

    task: str
    way: str
    at: int = 0
    step: str = ""

    @property
    def name(self) -> str:
        """Fit for a run id and a file name."""
        point = str(self.at) if self.at else "".join(sign if sign.isalnum() else "-" for sign in self.step)
        return f"{self.task}-{point}-{self.way.replace(' ', '-')}"


@dataclass
class Figures:
    """What a test of this kind may print."""

    kills: int = 0
    settled: list[str] = field(default_factory=list)
    staged_again: list[str] = field(default_factory=list)
    tried_again: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills so far, {len(self.settled)} settled by looking, {len(self.staged_again)} staged again, "
            f"{len(self.tried_again)} tried again and {len(self.given_up)} given up by the scheduler itself"
        )


class KilledRuns:
    """Runs of two DAGs, `{dag}` and `{dag}_cleared`, whose tasks are killed."""

    def __init__(self, stack: AirflowStack, place: Path, dag: str) -> None:
        self._stack, self._place, self._dag = stack, place / _FOLDER, dag
        self.figures = Figures()
        if not self._place.exists():
            self._place.mkdir()
            prepare(self._place)
        for name in (dag, f"{dag}_cleared"):
            stack.wait_for_dag(name)
            stack.unpause(name)

    def steps_of(self, task: str) -> list[str]:
        """The steps of a task in a run that nobody kills."""
        names = self._place / f"{self._dag}.{task}.steps"
        uri = start_over(self._place, CASE, f"{self._dag}-steps.lance")
        plan = {"names": str(names), "once": str(names.with_suffix(".never")), "under": uri}
        self._trigger(self._dag, f"steps-{task}", {"table": uri, task: plan})
        self._wait(self._dag, [f"steps-{task}"], timeout=600)
        return names.read_text(encoding="utf-8").splitlines()

    def carry_out(self, kills: Sequence[Kill], *, second: Callable[[Kill], Mapping[str, Any]], timeout: float) -> None:
        """All of them side by side. Each must end with exact rows and versions, and nothing left after gc."""
        uris = {}
        for kill in kills:
            uris[kill] = start_over(self._place, CASE, f"{self._dag}-{kill.name}.lance")
            plan = {**self._plan(kill, uris[kill]), "second": self._second(kill, uris[kill], second)}
            self._trigger(self._dag_of(kill), kill.name, {"table": uris[kill], kill.task: plan})
        retried = [kill for kill in kills if kill.way in _RETRIED]
        self._wait(self._dag, [kill.name for kill in retried], timeout=timeout)
        for kill, state in self._ended([kill for kill in kills if kill.way not in _RETRIED], timeout=timeout):
            self._go_on(kill, uris[kill], state)
        self._finish([kill for kill in kills if kill.way not in _RETRIED], uris, timeout=timeout)
        for kill in kills:
            assert self._once(kill).exists(), f"{kill.name}: nobody died"
            check(CASE, uris[kill], outside=kill.way.endswith("cleanup"), what=f"{self._dag} {kill}")
            self.figures.kills += 1

    def _dag_of(self, kill: Kill) -> str:
        return self._dag if kill.way in _RETRIED else f"{self._dag}_cleared"

    def _once(self, kill: Kill, number: int = 1) -> Path:
        return self._place / f"{self._dag}-{kill.name}.died{number}"

    def _plan(self, kill: Kill, uri: str) -> dict[str, Any]:
        return {"at": kill.at, "step": kill.step, "once": str(self._once(kill)), "under": uri}

    def _second(self, kill: Kill, uri: str, make: Callable[[Kill], Mapping[str, Any]]) -> dict[str, Any] | None:
        return {**make(kill), "once": str(self._once(kill, 2)), "under": uri} if kill.way == "twice" else None

    def _ended(self, kills: Sequence[Kill], *, timeout: float) -> Iterator[tuple[Kill, str]]:
        """The runs as they fail. A scheduler that never heard of the death may have tried again of its own accord."""
        left, deadline = {kill.name: kill for kill in kills}, time.monotonic() + timeout
        while left:
            assert time.monotonic() < deadline, f"still running: {sorted(left)}"
            for run in self._runs(f"{self._dag}_cleared"):
                if run["dag_run_id"] in left and run["state"] in ("failed", "success"):
                    kill = left[run["dag_run_id"]]
                    if run["state"] == "failed" and not self._once(kill).exists():
                        self._clear_a_failure_of_airflow(kill)
                        continue
                    del left[kill.name]
                    assert self._once(kill).exists(), f"{kill.name}: nobody died: {run}"
                    if run["state"] == "success":
                        self.figures.tried_again.append(kill.name)
                    yield kill, run["state"]
            time.sleep(1)

    def _go_on(self, kill: Kill, uri: str, state: str) -> None:
        if kill.way.endswith("cleanup"):
            append_outside(uri)
            if kill.way == "our cleanup":
                run_job(CleanupSpec(uri=uri, older_than_seconds=0, retain_versions=1))
            else:
                clean_theirs(uri)
        self._clear(kill, only_failed=state == "failed")

    def _finish(self, kills: Sequence[Kill], uris: Mapping[Kill, str], *, timeout: float) -> None:
        """Until all have succeeded. Where the error says that a person is needed, the handbook is followed, once."""
        left, deadline = {kill.name: kill for kill in kills}, time.monotonic() + timeout
        mended: set[Kill] = set()
        while left:
            assert time.monotonic() < deadline, f"still running: {sorted(left)}"
            for run in self._runs(f"{self._dag}_cleared"):
                kill = left.get(run["dag_run_id"])
                if kill is not None and run["state"] == "success":
                    del left[kill.name]
                elif kill is not None and run["state"] == "failed" and _RAISED not in self._last_log(kill):
                    self._clear_a_failure_of_airflow(kill)
                elif kill is not None and run["state"] == "failed":
                    assert kill not in mended, kill
                    mended.add(kill)
                    self._follow_the_handbook(kill, uris[kill])
                    self._clear(kill, only_failed=False)
            time.sleep(1)

    def _follow_the_handbook(self, kill: Kill, uri: str) -> None:
        logs = self._logs(kill)
        if "CommitStateUnknownError" in logs:
            self.figures.settled.append(kill.name)
            settle_by_looking(CASE, uri)
        else:
            # Another library removed the history between staging and commit: the staging task is to be cleared as well.
            assert "can no longer be read" in logs, kill
            self.figures.staged_again.append(kill.name)

    def _clear_a_failure_of_airflow(self, kill: Kill) -> None:
        """The scheduler or its database gave a task up that raised nothing and that nobody killed."""
        self.figures.given_up.append(kill.name)
        assert self.figures.given_up.count(kill.name) <= _MOST_GIVEN_UP, kill
        self._clear(kill, only_failed=True)

    def _last_log(self, kill: Kill) -> str:
        dag = self._dag_of(kill)
        failed = [task for task in self._stack.tasks(dag, kill.name) if task["state"] == "failed"]
        return "".join(self._stack.task_log(dag, kill.name, t["task_id"], try_number=t["try_number"]) for t in failed)

    def _clear(self, kill: Kill, *, only_failed: bool) -> None:
        body = {"dag_run_id": kill.name, "dry_run": False, "only_failed": only_failed, "reset_dag_runs": True}
        self._ask(f"dags/{self._dag_of(kill)}/clearTaskInstances", body)

    def _trigger(self, dag: str, run_id: str, conf: Mapping[str, Any]) -> None:
        self._ask(f"dags/{dag}/dagRuns", {"logical_date": None, "dag_run_id": run_id, "conf": dict(conf)})

    def _ask(self, path: str, body: Mapping[str, Any]) -> None:
        """POST, again where a busy server does not answer in time: what is there or cleared already does no harm."""
        for patience in range(_PATIENCE, -1, -1):
            try:
                self._stack.call("POST", path, body)
                return
            except StackError as error:
                if patience < _PATIENCE and " 409 " in str(error):
                    return
                if not any(sign in str(error) for sign in ("timed out", " 500 ")) or not patience:
                    raise

    def _logs(self, kill: Kill) -> str:
        dag = self._dag_of(kill)
        tasks = self._stack.tasks(dag, kill.name)
        tries = [(task["task_id"], number) for task in tasks for number in range(1, task["try_number"] + 1)]
        return "".join(self._stack.task_log(dag, kill.name, task, try_number=number) for task, number in tries)

    def _runs(self, dag: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = f"dags/{dag}/dagRuns?limit=100&offset={len(found)}&order_by=run_after"
            runs = self._stack.call("GET", page)["dag_runs"]
            found.extend(runs)
            if len(runs) < 100:
                return found

    def _wait(self, dag: str, names: Sequence[str], *, timeout: float) -> None:
        left, deadline = {*names}, time.monotonic() + timeout
        while left:
            assert time.monotonic() < deadline, f"still running: {sorted(left)}"
            for run in self._runs(dag):
                assert run["dag_run_id"] not in left or run["state"] != "failed", run
                if run["state"] == "success":
                    left.discard(run["dag_run_id"])
            time.sleep(1)
