"""kill -9 of tasks, of commits and of Spark drivers under a real scheduler, at every step, each followed in five ways.

Airflow retries the task; the retry is killed as well; the task fails and is cleared; and before it is cleared others append
and our own cleanup, or the official library's, leaves only the newest version. Rows and versions exact, no orphan after gc.
The same and more kinds of work, without a scheduler: `tests/exactly_once`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from airflow_kills import WAYS, Kill, KilledRuns
from airflow_stack import AirflowStack
from kill_sources import WORKERS_WRITE

DRIVER_STEPS = (
    "create _lance_core/staged/",
    "publish _lance_core/staged/",
    WORKERS_WRITE,
    "create _transactions/",
    "write _transactions/",
    "publish _transactions/",
    "create _lance_core/decisions/",
    "publish _lance_core/decisions/",
)
MOST = 1100.0
"""Seconds that the runs of one way may take."""


def points(steps: Sequence[str]) -> list[int]:
    """Numbers of the steps; of many like each other in a row, the first and the last."""
    numbers: list[int] = []
    for _, run in itertools.groupby(range(len(steps)), key=lambda index: steps[index]):
        same = [*run]
        numbers.extend(dict.fromkeys((same[0] + 1, same[-1] + 1)))
    return numbers


@pytest.fixture(scope="module")
def tasks(stack: AirflowStack, place: Path) -> tuple[KilledRuns, list[tuple[str, int]]]:
    runs = KilledRuns(stack, place, "lance_kills")
    return runs, [(task, at) for task in ("append", "commit") for at in points(runs.steps_of(task))]


@pytest.fixture(scope="module")
def drivers(stack: AirflowStack, place: Path) -> KilledRuns:
    return KilledRuns(stack, place, "lance_driver_kills")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_tasks_and_commits_are_killed_at_every_step(tasks: tuple[KilledRuns, list[tuple[str, int]]], way: str) -> None:
    runs, found = tasks
    assert len(found) + len(DRIVER_STEPS) >= 40
    kills = [Kill(task, way, at=at) for task, at in found]
    # The first try may have done all of the second's steps but a few: any of the first ones it has.
    runs.carry_out(kills, second=lambda kill: {"at": 1 + kill.at * 7 % 5}, timeout=MOST)
    print(f"tasks, {way}: {runs.figures}")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_spark_drivers_are_killed(drivers: KilledRuns, way: str) -> None:
    kills = [Kill("append", way, step=step) for step in DRIVER_STEPS]
    drivers.carry_out(kills, second=lambda kill: {"step": DRIVER_STEPS[1]}, timeout=MOST)
    print(f"drivers, {way}: {drivers.figures}")
