"""A share of the simulated world in every test run: the real protocol on the first schedules of each scenario, and some by
chance. `make simulate` goes on from there."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.simulation.explore import Bounds, explore
from tests.simulation.report import described
from tests.simulation.scenario import RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import Schedule
from tests.simulation.stores import STORES
from tests.simulation.walk import shrink, walk
from tests.simulation.world import WIDE

SEEDS = Path(__file__).with_name("seeds")
_DEFAULT, _LONG = 12, 3000
_BY_CHANCE, _LONG_BY_CHANCE = 4, 1000
_WIDE_SAMPLE = ("rebased-delete", "same-commit-twice", "zombie", "our-cleanup-and-gc", "add-columns-cleared")
_LONG_WIDE = 150
"""On a wide store the work of all actors is done each time: some twenty schedules a second."""


def _refuse(theatre: Theatre, verdict: RunVerdict) -> None:
    if verdict.problems:
        pytest.fail(described(shrink(theatre, verdict), about=theatre.scenario.about), pytrace=False)


def _search(name: str, store: str, *, schedules: int, by_chance: int) -> None:
    theatre = Theatre(SCENARIOS[name], store=store)

    def stop(number: int, verdict: RunVerdict) -> bool:
        _refuse(theatre, verdict)
        return False

    found = explore(theatre, bounds=Bounds(preemptions=2, faults=1, schedules=schedules), stop=stop)
    assert found.complete or found.num_schedules == schedules
    for verdict in islice(walk(theatre, seed=1), by_chance):
        _refuse(theatre, verdict)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_schedules_of_a_scenario_end_exact(name: str) -> None:
    _search(name, "memory", schedules=_DEFAULT, by_chance=_BY_CHANCE)


@pytest.mark.parametrize("name", _WIDE_SAMPLE)
def test_the_first_schedules_on_a_wide_store_end_exact(name: str) -> None:
    _search(name, WIDE, schedules=_DEFAULT, by_chance=_BY_CHANCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_more_schedules_on_a_wide_store_end_exact(name: str) -> None:
    _search(name, WIDE, schedules=_LONG_WIDE, by_chance=_LONG_WIDE // 3)


@pytest.mark.slow
@pytest.mark.parametrize("store", [kind for kind in STORES if kind != WIDE])
@pytest.mark.parametrize("name", SCENARIOS)
def test_thousands_of_schedules_of_a_scenario_end_exact(name: str, store: str) -> None:
    _search(name, store, schedules=_LONG, by_chance=_LONG_BY_CHANCE)


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schedule_that_once_went_wrong_ends_exact(path: Path) -> None:
    schedule = Schedule.from_json(path.read_text())
    theatre = Theatre(SCENARIOS[schedule.scenario], store=schedule.store)
    verdict = theatre.play(schedule)
    assert not verdict.problems, described(verdict, about=theatre.scenario.about)
