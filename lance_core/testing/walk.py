"""Random schedules with every kind of fault; and shrinking a failing schedule."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_core.testing.engine import ScheduledRun
from lance_core.testing.explore import JUMP_SECONDS, befalls
from lance_core.testing.scenario import Problem, RunVerdict, Theatre
from lance_core.testing.schedule import FAULTS, JUMP, START, SWITCH, Deviation, Schedule


def walk(theatre: Theatre, *, seed: int, preemptions: int = 6, faults: int = 2) -> Iterator[RunVerdict]:
    """Endless. Each schedule is grown: a run, a deviation somewhere behind its last one, a run again."""
    chance = random.Random(f"{theatre.scenario.name}/{seed}")
    while True:
        schedule = Schedule(theatre.scenario.name, store=theatre.world.kind)
        names = list(theatre.stage.actors)
        schedule = schedule.plus(Deviation("", START, 1, SWITCH, chance.choice(names)))
        behind = 0
        for _ in range(chance.randint(1, preemptions + faults)):
            verdict = theatre.play(schedule)
            yield verdict
            grown = _grown(chance, schedule, verdict.run, behind, preemptions=preemptions, faults=faults)
            if grown is None or verdict.problems:
                break
            schedule, behind = grown
        else:
            yield theatre.play(schedule)


def _grown(
    chance: random.Random, schedule: Schedule, run: ScheduledRun, behind: int, *, preemptions: int, faults: int
) -> tuple[Schedule, int] | None:
    if behind >= len(run.steps):
        return None
    # Near what came before: a race takes several turns in a few steps.
    span = max(1, int((len(run.steps) - behind) * chance.choice((0.2, 0.5, 1.0))))
    index = behind + chance.randrange(span)
    step = run.steps[index]
    call = step.call
    if schedule.num_faults < faults and chance.random() < 0.25:
        kinds = [kind for kind in FAULTS if befalls(kind, call)]
        if kinds:
            kind = chance.choice(kinds)
            seconds = chance.choice((JUMP_SECONDS, -JUMP_SECONDS)) if kind == JUMP else 0.0
            return schedule.plus(Deviation(call.actor, call.label, call.nth, kind, seconds=seconds)), index + 1
    if not step.waiting or schedule.num_preemptions >= preemptions:
        return schedule, index + 1
    name = chance.choice(step.waiting)
    return schedule.plus(Deviation(call.actor, call.label, call.nth, SWITCH, name)), index


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
