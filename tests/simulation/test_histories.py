"""What is kept of actors is what they do: runs from it are runs of the real work, and a difference is found."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.simulation.distinct import trace_of
from tests.simulation.engine import Engine
from tests.simulation.histories import Histories
from tests.simulation.scenario import RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import CRASH, LATE, LOST, Deviation
from tests.simulation.stores import STORES, world_of
from tests.simulation.walk import walk
from tests.simulation.world import WIDE, World

_SAMPLE = ("zombie", "overlapping-commits", "two-merges", "outside-prune-and-gc", "everything")


def _told(theatre: Theatre, verdict: RunVerdict) -> object:
    steps = [(step.call, step.note) for step in verdict.run.steps]
    ends = sorted((name, f"{type(error).__name__}: {error}") for name, error in verdict.run.errors.items())
    return steps, ends, [str(item) for item in verdict.problems], verdict.refusals, verdict.orphans, theatre.world.objects


def _same(name: str, store: str, runs: int) -> None:
    fast, real = Theatre(SCENARIOS[name], store=store), Theatre(SCENARIOS[name], store=store, control_every=1)
    for verdict in islice(walk(fast, seed=5, preemptions=9, faults=4), runs):
        again = real.play(verdict.schedule)
        assert trace_of(again.run) == trace_of(verdict.run)
        assert _told(real, again) == _told(fast, verdict), str(verdict.schedule)


@pytest.mark.parametrize("name", _SAMPLE)
def test_runs_from_what_is_kept_are_those_of_the_real_work(name: str) -> None:
    _same(name, "external" if name == "two-merges" else "local" if name == "zombie" else "memory", 25)


@pytest.mark.slow
@pytest.mark.parametrize("store", [kind for kind in STORES if kind != WIDE])
@pytest.mark.parametrize("name", SCENARIOS)
def test_they_are_so_in_every_scenario(name: str, store: str) -> None:
    _same(name, store, 300)


def _counting(world: World, calls: list[str], path: str = "a") -> None:
    calls.append(path)
    try:
        world.store.put(path, bytes(world.store.get("begin")))
    except Exception:
        world.store.put("failed", b"")


def _played(histories: Histories, calls: list[str], *deviations: Deviation, path: str = "a", real: bool = False) -> World:
    world = world_of()
    world.store.put("begin", b"1")
    work = {"actor": lambda: _counting(world, calls, path)}
    Engine(world, work, deviations, histories=histories, real=real).run()
    return world


def test_what_is_known_is_not_worked_out_again() -> None:
    histories, calls = Histories(), list[str]()
    lost, late = Deviation("actor", "put a", 1, LOST), Deviation("actor", "put a", 1, LATE)
    for deviation, works in ((lost, 1), (late, 2), (Deviation("actor", "put a", 1, CRASH), 2), (lost, 2), (late, 2)):
        _played(histories, calls, deviation)
        assert len(calls) == works
    _played(histories, calls)
    _played(histories, calls)
    assert len(calls) == 3


@pytest.mark.parametrize("path", ["b", "a"])
def test_an_actor_that_something_else_reaches_is_found(path: str) -> None:
    histories = Histories()
    world = world_of()
    told = [b"1"]

    def work() -> None:
        world.store.put("a" if told == [b"1"] else path, told[0])

    for real in (False, False):
        assert not Engine(world, {"actor": work}, (), histories=histories, real=real).run().errors
    told[0] = b"2"
    error = Engine(world, {"actor": work}, (), histories=histories, real=True).run().errors["actor"]
    assert type(error).__name__ == "OtherHistoryError"
