"""Every schedule up to so many preemptions and faults, without those that only look different.

::

    roots       each actor first
    children    of a run: one more deviation, behind its last one

Two calls commute unless they touch the same path or one lists above the other (and one of them writes). To stop an actor
before a call that commutes with everything the others do is the same as to stop it one call later, so that schedule is left
out. What the others do is known from the runs so far: where that grows, what was left out is checked again, until nothing
is left out that matters. Processes die only where that makes a difference: before a write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tests.simulation.engine import CallStep, ScheduledRun
from tests.simulation.scenario import RunVerdict, Theatre
from tests.simulation.schedule import (
    CRASH,
    END,
    ERROR,
    JUMP,
    LATE,
    LISTINGS,
    LOST,
    STALE,
    START,
    SWITCH,
    Deviation,
    Schedule,
    StoreCall,
    covers,
)

JUMP_SECONDS = 2 * 3600.0

_PUTS = frozenset({"put", "put_if_absent", "close", "add", "change"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the search goes."""

    preemptions: int = 2
    faults: int = 1
    schedules: int = 10_000
    pairs: tuple[tuple[str, str], ...] = ()
    """Second faults behind a first one, in every scenario; see `schedule.PAIRS`."""


@dataclass
class Found:
    """What a search saw. `complete`: every schedule within the bounds was tried."""

    num_schedules: int = 0
    num_steps: int = 0
    complete: bool = False


class Footprint:
    """What an actor was ever seen to touch."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, bool]] = set()
        self._written: set[str] = set()
        self._read: set[str] = set()
        self._listed: set[str] = set()

    def add(self, call: StoreCall) -> bool:
        """Whether it is new."""
        key = (call.name, call.path, call.is_write)
        if key in self._seen:
            return False
        self._seen.add(key)
        if call.is_write:
            self._written.add(call.path)
        elif call.name in LISTINGS:
            self._listed.add(call.path)
        else:
            self._read.add(call.path)
        return True

    def meets(self, call: StoreCall) -> bool:
        """Whether the order of this call and one of the actor's may matter."""
        if call.is_write:
            path = call.path
            return path in self._written or path in self._read or any(path.startswith(above) for above in self._listed)
        if call.name in LISTINGS:
            return any(covers(call, path) for path in self._written)
        return call.path in self._written


def _at_the_first(number: int, verdict: RunVerdict) -> bool:
    return True


def schedules_of(theatre: Theatre, *, bounds: Bounds) -> Iterator[RunVerdict]:
    """The first schedules of the search, carried out one after the other."""
    return islice(_Search(theatre, bounds).runs(), bounds.schedules)


def explore(theatre: Theatre, *, bounds: Bounds, stop: Callable[[int, RunVerdict], bool] = _at_the_first) -> Found:
    """Breadth first: the shortest counterexample comes first. `stop` is called at each problem to decide whether that is
    enough."""
    search = _Search(theatre, bounds)
    found = Found()
    for verdict in search.runs():
        found.num_schedules += 1
        found.num_steps += len(verdict.run.steps)
        if verdict.problems and stop(found.num_schedules, verdict):
            return found
        if found.num_schedules >= bounds.schedules:
            return found
    found.complete = True
    return found


class _Search:
    def __init__(self, theatre: Theatre, bounds: Bounds) -> None:
        self._theatre = theatre
        self._bounds = bounds
        self._footprints: dict[str, Footprint] = {name: Footprint() for name in theatre.stage.actors}
        self._left_out: list[tuple[Schedule, StoreCall]] = []

    def runs(self) -> Iterator[RunVerdict]:
        queue = deque(self._roots())
        while queue:
            while queue:
                schedule = queue.popleft()
                verdict = self._theatre.play(schedule)
                self._learn(verdict.run)
                yield verdict
                queue.extend(self._children(schedule, verdict.run))
            # What was left out because it commuted with everything known then.
            again = [item for item in self._left_out if self._matters(item[0].deviations[-1].to, item[1])]
            self._left_out = [item for item in self._left_out if item not in again]
            queue.extend(schedule for schedule, _ in again)

    def _roots(self) -> list[Schedule]:
        begin = Schedule(self._theatre.scenario.name, store=self._theatre.world.kind)
        names = list(self._theatre.stage.actors)
        return [begin, *(begin.plus(Deviation("", START, 1, SWITCH, name)) for name in names[1:])]

    def _learn(self, run: ScheduledRun) -> None:
        for step in run.steps:
            self._footprints.setdefault(step.call.actor, Footprint()).add(step.call)

    def _matters(self, name: str, call: StoreCall) -> bool:
        footprint = self._footprints.get(name)
        return footprint is None or footprint.meets(call)

    def _children(self, schedule: Schedule, run: ScheduledRun) -> Iterator[Schedule]:
        first = _position(run, schedule.deviations)
        may_preempt = schedule.num_preemptions < self._bounds.preemptions
        may_fail = schedule.num_faults < self._bounds.faults
        seconds = self._second_faults(schedule)
        for index in range(first, len(run.steps)):
            step = run.steps[index]
            if step.note == "dies":
                continue
            if may_preempt:
                yield from self._preemptions(schedule, step)
            for fault in self._faults(step, self._theatre.scenario.faults if may_fail else seconds):
                yield schedule.plus(fault)
        for position, actor, left in run.ends:
            if position >= first:
                for name in left[1:]:
                    yield schedule.plus(Deviation(actor, END, 1, SWITCH, name))

    def _preemptions(self, schedule: Schedule, step: CallStep) -> Iterator[Schedule]:
        call = step.call
        for name in step.waiting:
            child = schedule.plus(Deviation(call.actor, call.label, call.nth, SWITCH, name))
            if any(self._matters(other, call) for other in step.waiting):
                yield child
            else:
                self._left_out.append((child, call))

    def _second_faults(self, schedule: Schedule) -> Sequence[str]:
        """What may come beyond the bound, behind the one fault that it allows."""
        faults = [item.do for item in schedule.deviations if item.is_fault]
        pairs = {*self._theatre.scenario.pairs, *self._bounds.pairs}
        return [second for first, second in sorted(pairs) if faults == [first]]

    def _faults(self, step: CallStep, kinds: Sequence[str]) -> Iterator[Deviation]:
        call = step.call
        for kind in kinds:
            if befalls(kind, call):
                seconds = JUMP_SECONDS if kind == JUMP else 0.0
                yield Deviation(call.actor, call.label, call.nth, kind, seconds=seconds)


def befalls(kind: str, call: StoreCall) -> bool:
    """Whether a fault at this call is one of its own: not the same as another at a neighbouring call."""
    if call.actor.startswith("late "):
        return False
    if kind in (CRASH, JUMP):
        return call.is_write
    if kind == LOST:
        return call.is_write
    if kind == ERROR:
        return True
    if kind == LATE:
        return call.name in _PUTS
    return kind == STALE and call.name in LISTINGS


def _position(run: ScheduledRun, deviations: Sequence[Deviation]) -> int:
    """Behind which step the last deviation came to pass."""
    if not deviations or deviations[-1].call == START:
        return 0
    last = deviations[-1]
    if last.call == END:
        return next((position for position, actor, _ in run.ends if actor == last.actor), 0)
    for index, step in enumerate(run.steps):
        call = step.call
        if (call.actor, call.label, call.nth) == (last.actor, last.call, last.nth):
            # A preempted call comes to pass when its actor goes on; the steps of others in between belong to the child.
            return _preempted_at(run, last) if last.do == SWITCH else index + 1
    return len(run.steps)


def _preempted_at(run: ScheduledRun, last: Deviation) -> int:
    """The first step of the actor that got the turn by this deviation."""
    return run.switched.get((last.actor, last.call, last.nth), len(run.steps))
