"""The simulated world itself: a run is the same whenever it is repeated, a schedule means what it says, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import pytest

from lance_core.errors import AlreadyExistsError, InputError, StoreError
from lance_core.io.many import delete_all
from lance_core.io.parallel import begin, each
from tests.simulation.determinism import installed
from tests.simulation.engine import Engine, ScheduledRun
from tests.simulation.explore import Bounds, explore
from tests.simulation.scenario import RunVerdict, Scenario, Stage, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import CRASH, END, JUMP, LATE, LOST, STALE, START, SWITCH, Deviation, Schedule, label_of
from tests.simulation.stores import world_of
from tests.simulation.world import BEGINNING, Killed, World


def _run(works: dict[str, Callable[[World], object]], *deviations: Deviation) -> tuple[World, ScheduledRun]:
    world = world_of()
    with installed(world):
        run = Engine(world, {name: lambda work=work: work(world) for name, work in works.items()}, deviations).run()  # type: ignore[misc]
    return world, run


def _put(path: str, data: bytes) -> Callable[[World], object]:
    return lambda world: world.store.put(path, data)


def _order(run: ScheduledRun) -> list[str]:
    return [step.call.actor for step in run.steps]


def test_actors_run_to_their_end_one_after_the_other() -> None:
    world, run = _run({"a": _put("x", b"1"), "b": _put("x", b"2")})
    assert _order(run) == ["a", "b"]
    assert bytes(world.store.get("x")) == b"2"


def test_a_switch_lets_another_actor_go_first() -> None:
    switch = Deviation("a", "put x", 1, SWITCH, "b")
    world, run = _run({"a": _put("x", b"1"), "b": _put("x", b"2")}, switch)
    assert _order(run) == ["b", "a"]
    assert bytes(world.store.get("x")) == b"1"
    assert run.fired == [switch]


def test_who_begins_and_who_follows_can_be_said() -> None:
    works = {name: _put(name, b"") for name in "abc"}
    _, run = _run(works, Deviation("", START, 1, SWITCH, "b"), Deviation("b", END, 1, SWITCH, "c"))
    assert _order(run) == ["b", "c", "a"]


def test_a_dead_actor_does_nothing_more_whatever_it_tries_to_clean_up() -> None:
    def work(world: World) -> None:
        try:
            world.store.put("x", b"1")
        finally:
            world.store.put("y", b"2")

    world, run = _run({"a": work}, Deviation("a", "put x", 1, CRASH))
    assert isinstance(run.errors["a"], Killed)
    assert not world.objects


def test_a_lost_reply_has_happened_and_a_late_put_happens_at_the_end() -> None:
    world, run = _run({"a": _put("x", b"1")}, Deviation("a", "put x", 1, LOST))
    assert isinstance(run.errors["a"], StoreError)
    assert bytes(world.store.get("x")) == b"1"
    world, run = _run({"a": _put("x", b"1"), "b": _put("x", b"2")}, Deviation("a", "put x", 1, LATE))
    assert _order(run) == ["a", "b", "late put x of a"]
    assert bytes(world.store.get("x")) == b"1"


def test_a_late_put_if_absent_loses_against_what_is_there() -> None:
    def put(world: World) -> None:
        world.store.put_if_absent("x", b"1")

    world, _ = _run({"a": put, "b": _put("x", b"2")}, Deviation("a", "put_if_absent x", 1, LATE))
    assert bytes(world.store.get("x")) == b"2"


def test_a_stale_listing_lacks_the_last_change_of_others() -> None:
    def look(world: World) -> object:
        return sorted(world.store.list_names("d/"))

    def write(world: World) -> None:
        world.store.put("d/1", b"")
        world.store.put("d/2", b"")

    works = {"writer": write, "reader": look}
    assert _run(works)[1].results["reader"] == ["1", "2"]
    assert _run(works, Deviation("reader", "list_names d/", 1, STALE))[1].results["reader"] == ["1"]


def test_actors_live_in_the_worlds_time_and_others_do_not() -> None:
    def look(world: World) -> tuple[float, float]:
        before = time.time()
        time.sleep(3600)
        return before, time.time()

    began = time.time()
    _, run = _run({"a": look})
    assert run.results["a"] == (BEGINNING, BEGINNING + 3600)
    assert time.time() - began < 60


@pytest.mark.parametrize("store", ["memory", "external"])
def test_a_run_of_the_real_code_is_the_same_whenever_it_is_repeated(store: str) -> None:
    theatre = Theatre(SCENARIOS["overlapping-commits"], store=store)
    stop = Deviation("commit", "get _versions/*.manifest", 1, SWITCH, "second commit")
    schedule = Schedule("overlapping-commits", (stop,), store)
    runs = [theatre.play(schedule) for _ in range(3)]
    told = [[(step.call, step.note) for step in verdict.run.steps] for verdict in runs]
    assert told[0] == told[1] == told[2]
    assert runs[0].run.fired == [stop]
    assert all(not verdict.problems for verdict in runs), runs[0].problems


def test_a_schedule_survives_its_seed_file() -> None:
    schedule = Schedule("zombie", (Deviation("a", "put x", 2, SWITCH, "b"), Deviation("b", "put y", 1, CRASH)), "external")
    assert Schedule.from_json(schedule.to_json(finds=["rows: gone"])) == schedule
    begins = Schedule("zombie", (Deviation("", START, 1, SWITCH, "b"), Deviation("b", "get x", 3, JUMP, seconds=-60.0)))
    assert Schedule.from_json(begins.to_json()) == begins
    with pytest.raises(InputError):
        Schedule.from_json("[]")


def test_labels_leave_out_what_differs_from_run_to_run() -> None:
    path = "_lance_core/staged/5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e11.00ff00ff00ff00ff.started.json"
    assert label_of("put", path) == "put _lance_core/staged/*.*.started.json"
    assert label_of("get", "_versions/18446744073709551613.manifest") == "get _versions/*.manifest"


class _ToyTheatre(Theatre):
    """A theatre without a table: what is left is the outcome."""

    def __init__(self) -> None:
        self.scenario = Scenario("toy", "", lambda: Stage((), {}))
        self.world = world_of()
        self.stage = Stage((), {"a": self._actor("a"), "b": self._actor("b")})
        self.outcomes: set[tuple[tuple[str, bytes], ...]] = set()

    def _actor(self, name: str) -> Callable[[], object]:
        def work() -> None:
            store = self.world.store
            store.put(f"own/{name}", b"")
            there = len(store.list_names("d/"))
            store.put(f"own/{name}", b"2")
            store.put(f"d/{name}", b"%d" % there)
            try:
                store.put_if_absent("once", name.encode())
            except AlreadyExistsError:
                store.put(f"lost/{name}", bytes(store.get("once")))

        return work

    def play(self, schedule: Schedule) -> RunVerdict:
        self.world.reset({"objects": {}, "register": {}, "now": BEGINNING, "newest": 0})
        with installed(self.world):
            run = Engine(self.world, self.stage.actors, schedule.deviations).run()
        self.outcomes.add(tuple(sorted((path, data) for path, (data, _) in self.world.objects.items())))
        return RunVerdict(schedule, run)


def test_the_reduced_search_finds_every_outcome_of_the_whole_one() -> None:
    reduced = _ToyTheatre()
    found = explore(reduced, bounds=Bounds(preemptions=2, faults=0, schedules=10_000))
    assert found.complete
    whole = _ToyTheatre()
    calls = ["put own/%s", "list_names d/", "put own/%s", "put d/%s", "put_if_absent once", "put lost/%s", "get once"]
    points = [(actor, call % actor if "%" in call else call, nth) for actor in "ab" for call in calls for nth in (1, 2)]
    starts = [(), (Deviation("", START, 1, SWITCH, "b"),)]
    stops = [(), *(((Deviation(*point, SWITCH, "b" if point[0] == "a" else "a"),)) for point in points)]
    for start, first, second in product(starts, stops, stops):
        whole.play(Schedule("toy", (*start, *first, *second)))
    assert reduced.outcomes == whole.outcomes
    assert len(whole.outcomes) > 4
    assert found.num_schedules < len(starts) * len(stops) ** 2 / 4


def _reads_in_parallel(world: World) -> list[str]:
    return each(world.store, ["d/1", "d/2", "d/3"], lambda store, path: bytes(store.get(path)).decode())


def test_what_is_done_in_parallel_on_a_wide_store_has_strands() -> None:
    world = world_of("wide")
    for name in "123":
        world.store.put(f"d/{name}", name.encode())
    with installed(world):
        run = Engine(world, {"a": lambda: _reads_in_parallel(world)}, ()).run()
        assert run.results == {"a": ["1", "2", "3"]}
        assert _order(run) == ["a/1", "a/2", "a/3"]
        switches = (Deviation("a/1", "get d/1", 1, SWITCH, "a/3"),)
        run = Engine(world, {"a": lambda: _reads_in_parallel(world)}, switches).run()
    assert run.results == {"a": ["1", "2", "3"]}
    assert _order(run) == ["a/3", "a/1", "a/2"]
    assert run.fired == [*switches]


def test_what_was_begun_and_is_not_waited_for_goes_on() -> None:
    world = world_of("wide")

    def work() -> None:
        begin(world.store, lambda: world.store.put("x", b"1"))
        world.store.put("y", b"2")

    with installed(world):
        run = Engine(world, {"a": work, "b": lambda: world.store.put("z", b"3")}, ()).run()
    assert _order(run) == ["a", "b", "a/1"]
    assert sorted(world.objects) == ["x", "y", "z"]


@pytest.mark.parametrize(("killed", "left"), [("a/1", {"1", "2", "3"}), ("a/2", {"1", "2"}), ("a/3", {"1"})])
def test_a_removal_of_many_has_no_order_and_is_not_done_as_a_whole(killed: str, left: set[str]) -> None:
    world = world_of("wide")
    for name in "123":
        world.store.put(f"d/{name}", b"")

    def work() -> None:
        try:
            delete_all(world.store, ["d/1", "d/2", "d/3"])
        finally:
            world.store.put("never", b"")

    path = f"d/{4 - int(killed[-1])}"
    with installed(world):
        run = Engine(world, {"a": work}, [Deviation(killed, f"delete {path}", 1, CRASH)]).run()
    assert isinstance(run.errors["a"], Killed)
    assert {item.removeprefix("d/") for item in world.objects} == left


def test_a_wide_run_of_the_real_code_is_the_same_whenever_it_is_repeated() -> None:
    theatre = Theatre(SCENARIOS["rebased-delete"], store="wide")
    runs = [theatre.play(Schedule("rebased-delete", (), "wide")) for _ in range(3)]
    told = [[(step.call, step.note) for step in verdict.run.steps] for verdict in runs]
    assert told[0] == told[1] == told[2]
    assert any("/" in step.call.actor for step in runs[0].run.steps)
    assert all(not verdict.problems for verdict in runs), runs[0].problems
