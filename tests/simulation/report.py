"""A readable counterexample: the calls of each actor in order, and their results."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.scenario import RunVerdict
from tests.simulation.schedule import Deviation, readable


def described(verdict: RunVerdict, *, about: str = "") -> str:
    """The whole story of a run."""
    schedule = verdict.schedule
    lines = [f"{schedule.scenario} ({about}), on a store of kind {schedule.store}" if about else schedule.scenario]
    lines += [f"  * {item}" for item in schedule.deviations] or ["  * each actor to its end, one after the other"]
    lines += ["", *_steps(verdict), ""]
    lines += [f"  {name} ended with {type(error).__name__}: {error}" for name, error in verdict.run.errors.items()]
    lines += [f"  refused: {text}" for text in verdict.refusals if text.split(":")[0] not in verdict.run.errors]
    lines += [f"  => {problem}" for problem in verdict.problems] or ["  => exact"]
    return "\n".join(lines)


def _steps(verdict: RunVerdict) -> Iterator[str]:
    run = verdict.run
    width = max((len(step.call.actor) for step in run.steps), default=0)
    ends = {position: actor for position, actor, _ in run.ends}
    before = ""
    for index, step in enumerate(run.steps):
        call = step.call
        if before and call.actor != before:
            yield f"  {'':>4} {'-' * 8} {call.actor}" + (
                "" if ends.get(index) == before else f" takes the turn from {before}"
            )
        note = f"   ({step.note})" if step.note else ""
        yield f"  {index + 1:4} {call.actor:<{width}}  {call.name:<13} {readable(call.path)}{note}"
        before = call.actor


def in_short(deviations: tuple[Deviation, ...]) -> str:
    """One line."""
    return "; ".join(str(item) for item in deviations) or "each actor to its end, one after the other"
