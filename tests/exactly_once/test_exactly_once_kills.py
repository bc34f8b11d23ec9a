"""kill -9 at every step of staging and committing, then what Airflow does: rows exact, versions exact, no orphan.

Five ways to go on after a kill, each of which must end in the same rows::

    retry           the tasks run again
    clear           the tasks run again, and are cleared when all is done
    our cleanup     meanwhile others append, and LanceCleanupOperator leaves only the newest version
    their cleanup   the same with the official library's cleanup, which knows nothing of staged work
    twice           the retry is killed as well, at another step
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_cases import CASES, prepare, run
from kill_harness import CLEANUPS, Figures, append_outside, check, kill_again, kill_at, retry, steps_of

WAYS = ("retry", "clear", "our cleanup", "their cleanup", "twice")
QUICK = {"append": 30, "fold": 12, "replace": 6, "compact": 4}
"""Steps of a case that the quick test kills at; the slow one takes every step of every case, five times."""


@pytest.fixture
def place(tmp_path: Path, forks: None) -> Path:
    prepare(tmp_path)
    return tmp_path


def _kill_and_go_on(place: Path, name: str, number: int, step: str, way: str, figures: Figures) -> None:
    case, raw = CASES[name], str(place / "raw")
    what = f"{name}, step {number} ({step}), {way}"
    uri = kill_at(place, name, number)
    figures.kills += 1
    outside = way in CLEANUPS and Path(uri, "_versions").exists()
    if outside:
        append_outside(uri)
        CLEANUPS[way](uri)
    if way == "twice":
        kill_again(place, name, uri, 1 + (number * 7) % 23)
    retry(case, uri, raw, what, figures)
    if way != "retry":
        again = run(case, uri, raw)
        assert set(again["identities"].values()) == {"already_committed"}, what
        assert (again["num_versions"], again["rows_added"]) == (0, 0), what
    check(case, uri, outside=outside, what=what)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_killed_at_every_step_once(place: Path, name: str) -> None:
    steps, figures = steps_of(place, name), Figures()
    wanted = min(QUICK[name], len(steps))
    for index in range(wanted):
        number = 1 + index * (len(steps) - 1) // max(1, wanted - 1)
        _kill_and_go_on(place, name, number, steps[number - 1], WAYS[index % len(WAYS)], figures)
    assert figures.kills == wanted


def test_the_steps_are_forty_and_more() -> None:
    assert sum(QUICK.values()) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_killed_at_every_step_five_times(place: Path, name: str) -> None:
    steps, figures = steps_of(place, name), Figures()
    for way in WAYS:
        for number, step in enumerate(steps, start=1):
            _kill_and_go_on(place, name, number, step, way, figures)
    assert figures.kills == 5 * len(steps)
    print(f"{name}: {len(steps)} steps, {figures.kills} kills, {len(figures.settled)} settled by looking: {figures.settled}")
