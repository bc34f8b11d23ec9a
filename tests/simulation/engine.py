"""Runs actors by a schedule: one runs, the others wait; each store call may switch to another actor.

By default the first actor in line that has not ended goes on until it ends. Deviations say where that is different. A run is
the same whenever it is repeated: only one thread is ever awake, and clocks and names are the world's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from lance_core.errors import LanceError
from tests.simulation.histories import Histories, bare
from tests.simulation.schedule import CRASH, END, JUMP, START, SWITCH, Deviation, StoreCall
from tests.simulation.steps import followed
from tests.simulation.world import Actor, Killed, World

MAX_STEPS = 20_000
"""More than this in one run is an actor that never ends."""


class CallStep(NamedTuple):
    """A call as it happened. `waiting`: actors that might have had the turn. `note`: its result."""

    call: StoreCall
    waiting: tuple[str, ...]
    note: str = ""


@dataclass
class ScheduledRun:
    """What happened. `fired` are the deviations that came to pass; `ends` says how each actor ended."""

    steps: list[CallStep] = field(default_factory=list)
    fired: list[Deviation] = field(default_factory=list)
    results: dict[str, object] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    ends: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    """(number of steps by then, actor, who was left) of every end."""
    switched: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """The number of steps by then of every preemption, by the call before which it came."""


class ScheduleChoice(Protocol):
    """Who says where a run leaves the default order: a schedule that is given, or chance while the run goes on."""

    def at(self, call: StoreCall, *, index: int, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """What happens before and at a call, the run's call of this index. `waiting`: who might have the turn instead."""

    def at_end(self, actor: str, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """Who is next when an actor has ended; the name is empty at the beginning."""


class GivenDeviations:
    """A schedule that is given."""

    def __init__(self, deviations: Sequence[Deviation]) -> None:
        self._at: dict[tuple[str, str, int], list[Deviation]] = {}
        for item in deviations:
            self._at.setdefault((item.actor, item.call, item.nth), []).append(item)

    def at(self, call: StoreCall, *, index: int, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """Those of this call."""
        return self._at.get((call.actor, call.label, call.nth), ())

    def at_end(self, actor: str, waiting: Callable[[], Sequence[str]]) -> Sequence[Deviation]:
        """Those of this end."""
        return self._at.get((actor, END if actor else START, 1), ())


class Engine:
    """One run."""

    def __init__(
        self,
        world: World,
        works: Mapping[str, Callable[[], object]],
        deviations: Sequence[Deviation] | ScheduleChoice,
        *,
        histories: Histories | None = None,
        real: bool = False,
    ) -> None:
        """`histories`: what actors did after the same answers before. `real`: their work runs all the same, to compare."""
        self._world = world
        self._actors = {name: Actor(world, name, work) for name, work in works.items()}
        if histories is not None:
            for actor in self._actors.values():
                actor.remember(partial(followed, actor, histories, real=real))
        self._choice = GivenDeviations(deviations) if isinstance(deviations, Sequence) else deviations
        self._over = threading.Lock()
        self._waiting: dict[str, tuple[str, ...]] = {}
        self.run_of: ScheduledRun = ScheduledRun()

    def run(self) -> ScheduledRun:
        """Every actor to its end."""
        self._over.acquire()
        for actor in self._actors.values():
            self._enter(actor)
        first = self._next(self._choice.at_end("", lambda: (*self._actors,)))
        if first is not None:
            first.go_on()
            self._over.acquire()
        for actor in self._actors.values():
            if actor.is_strand:
                pass  # its process has its result, or its error
            elif actor.error is not None:
                self.run_of.errors[actor.label] = bare(actor.error)
            else:
                self.run_of.results[actor.label] = actor.result
            actor.leave()
        self._actors.clear()
        return self.run_of

    def before(self, actor: Actor, call: StoreCall) -> str | None:
        """Pass the turn on where the schedule says so, and come back with the fault that befalls the call."""
        fault = None
        index = len(self.run_of.steps)
        for item in self._choice.at(call, index=index, waiting=lambda: self._others(actor)):
            if item.do == SWITCH:
                self._pass_on(actor, item)
            elif item.do == JUMP:
                self.run_of.fired.append(item)
                self._world.now += item.seconds
            else:
                self.run_of.fired.append(item)
                fault = item.do
        if actor.is_dead:
            raise Killed
        if fault == CRASH:
            actor.die()
            self.run_of.steps.append(CallStep(call, self._others(actor), "dies"))
            raise Killed
        if len(self.run_of.steps) > MAX_STEPS:
            actor.die()
            raise EndlessError(f"{actor.label} never ends: {MAX_STEPS} calls")
        return fault

    def after(self, actor: Actor, call: StoreCall, note: str) -> None:
        """Write the call down."""
        self.run_of.steps.append(CallStep(call, self._others(actor), note))

    def launch(self, actor: Actor, call: StoreCall, action: Callable[[], object]) -> None:
        """The call becomes an actor of its own."""
        name = f"late {call.label} of {call.actor}"
        if name in self._actors:
            name = f"late {call.nth}. {call.label} of {call.actor}"
        late = Actor(self._world, name, lambda: _quietly(lambda: self._land(name, call, action)))
        self._actors[name] = late
        self._enter(late)

    def begin(self, actor: Actor, work: Callable[[], object]) -> Actor:
        """A strand of the actor's process. It has the turn when the process waits for it, or when the schedule says so."""
        actor.process.num_strands += 1
        name = f"{actor.process.label}/{actor.process.num_strands}"
        strand = self._actors[name] = Actor(self._world, name, work, process=actor.process)
        self._enter(strand)
        return strand

    def join(self, actor: Actor, strand: Actor) -> None:
        """The turn goes to the strand, and comes back when it has ended; others may have it in between."""
        actor.joins = strand
        self._waiting.clear()
        while not strand.is_done:
            self._first_to_go_on(strand).go_on()
            actor.turn.acquire()
        actor.joins = None
        self._waiting.clear()

    def _first_to_go_on(self, actor: Actor) -> Actor:
        """The one that an actor waits for in the end."""
        while actor.joins is not None and not actor.joins.is_done:
            actor = actor.joins
        return actor

    def _land(self, name: str, call: StoreCall, action: Callable[[], object]) -> None:
        actor = self._actors[name]
        mine = StoreCall(name, call.name, call.path, call.label, 1)
        self.before(actor, mine)
        before = self._world.objects.get(call.path)
        try:
            action()
            self._world.note_write(name, call.name, call.path, before)
        finally:
            self.after(actor, mine, "lands late")

    def _enter(self, actor: Actor) -> None:
        self._waiting.clear()
        actor.turns = self
        actor.when_done = lambda: self._ended(actor)

    def _others(self, actor: Actor) -> tuple[str, ...]:
        found = self._waiting.get(actor.label)
        if found is None:
            found = tuple(name for name, other in self._actors.items() if other is not actor and other.may_go_on)
            self._waiting[actor.label] = found
        return found

    def _pass_on(self, actor: Actor, item: Deviation) -> None:
        other = self._actors.get(item.to)
        if other is None or other is actor or not other.may_go_on:
            return
        self.run_of.fired.append(item)
        self.run_of.switched[item.actor, item.call, item.nth] = len(self.run_of.steps)
        other.go_on()
        actor.turn.acquire()

    def _ended(self, actor: Actor) -> None:
        self._waiting.clear()
        if actor.is_strand and actor.process.may_go_on:
            actor.process.go_on()  # no end of anybody: its process goes on
            return
        left = self._others(actor)
        self.run_of.ends.append((len(self.run_of.steps), actor.label, left))
        following = self._next(self._choice.at_end(actor.label, lambda: left))
        if following is None:
            self._over.release()
        else:
            following.go_on()

    def _next(self, wanted: Sequence[Deviation]) -> Actor | None:
        for item in wanted:
            actor = self._actors.get(item.to)
            if actor is not None and actor.may_go_on:
                self.run_of.fired.append(item)
                return actor
        return next((actor for actor in self._actors.values() if actor.may_go_on), None)


class EndlessError(RuntimeError):
    """An actor that goes on for ever."""


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except LanceError:
        return  # nobody waits for the answer any more
