"""Random schedules with every kind of fault; and shrinking a failing schedule."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tests.simulation.explore import JUMP_SECONDS, Footprint, befalls
from tests.simulation.scenario import Problem, RunVerdict, Theatre
from tests.simulation.schedule import END, FAULTS, JUMP, START, SWITCH, Deviation, Schedule, StoreCall


def walk(theatre: Theatre, *, seed: int, preemptions: int = 6, faults: int = 2) -> Iterator[RunVerdict]:
    """Endless: runs that decide by chance, while they go on, where to leave the default order."""
    chance = random.Random(f"{theatre.scenario.name}/{seed}")
    footprints: dict[str, Footprint] = {}
    length = FIRST_GUESS
    while True:
        verdict = theatre.play_by(ChanceChoice(chance, footprints, preemptions=preemptions, faults=faults, length=length))
        steps = verdict.run.steps
        for step in steps:
            footprint = footprints.get(step.call.actor)
            if footprint is None:
                footprint = footprints[step.call.actor] = Footprint()
            footprint.add(step.call)
        length = (7 * length + len(steps)) // 8
        yield verdict


FIRST_GUESS = 80
"""How many calls a run is thought to have before the first one has shown it."""
_IDLE = 1 << 30


class ChanceChoice:
    """Deviations by chance. A switch comes before a call whose order matters to somebody who waits: elsewhere it would be
    the same as at the next such call."""

    def __init__(
        self, chance: random.Random, footprints: Mapping[str, Footprint], *, preemptions: int, faults: int, length: int
    ) -> None:
        self._chance = chance
        self._footprints = footprints
        self._preemptions = preemptions
        self._faults = faults
        self._length = length
        self._left = chance.randint(min(3, preemptions + faults), preemptions + faults)
        self._next = _IDLE
        self._aim(0)

    def at(self, call: StoreCall, *, index: int, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """A fault or a switch, where it is time for one."""
        if index < self._next:
            return ()
        found = self._fault(call) if self._faults and self._chance.random() < FAULT_SHARE else None
        if found is None:
            found = self._switch(call, waiting()) if self._preemptions else None
            if found is None:
                return ()
        self._left -= 1
        self._aim(index)
        return (found,)

    def at_end(self, actor: str, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """Anybody of those who are left."""
        left = waiting()
        if len(left) < 2:
            return ()
        name = self._chance.choice(left)
        return () if name == left[0] else (Deviation(actor, END if actor else START, 1, SWITCH, name),)

    def _aim(self, index: int) -> None:
        # Near what came before: a race takes several turns in a few steps.
        span = max(4, int((self._length - index) * self._chance.choice((0.2, 0.5, 1.0))))
        self._next = index + self._chance.randrange(span) if self._left else _IDLE

    def _fault(self, call: StoreCall) -> Deviation | None:
        kinds = [kind for kind in FAULTS if befalls(kind, call)]
        if not kinds:
            return None
        self._faults -= 1
        kind = self._chance.choice(kinds)
        seconds = self._chance.choice((JUMP_SECONDS, -JUMP_SECONDS)) if kind == JUMP else 0.0
        return Deviation(call.actor, call.label, call.nth, kind, seconds=seconds)

    def _switch(self, call: StoreCall, waiting: Sequence[str]) -> Deviation | None:
        if not any(self._matters(name, call) for name in waiting):
            return None
        self._preemptions -= 1
        return Deviation(call.actor, call.label, call.nth, SWITCH, self._chance.choice(waiting))

    def _matters(self, name: str, call: StoreCall) -> bool:
        footprint = self._footprints.get(name)
        return footprint is None or footprint.meets(call)


FAULT_SHARE = 0.25
"""Of the deviations, where both are possible."""


def shrink(theatre: Theatre, verdict: RunVerdict) -> RunVerdict:
    """The same kind of problem with as few deviations as can be."""
    best = verdict
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(best.schedule):
            found = theatre.play(candidate)
            if _same_kind(found.problems, verdict.problems):
                best, changed = replace(found, schedule=_that_fired(found)), True
                break
    return best


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for index in range(len(schedule.deviations)):
        yield schedule.without(index)
    for index, item in enumerate(schedule.deviations):
        if item.is_preemption and item.nth > 1:
            nearer = (*schedule.deviations[:index], replace(item, nth=1), *schedule.deviations[index + 1 :])
            yield replace(schedule, deviations=nearer)


def _that_fired(verdict: RunVerdict) -> Schedule:
    fired = tuple(item for item in verdict.schedule.deviations if item in verdict.run.fired)
    return replace(verdict.schedule, deviations=fired)


def _same_kind(problems: Sequence[Problem], others: Sequence[Problem]) -> bool:
    return bool({item.kind for item in problems} & {item.kind for item in others[:1]})
