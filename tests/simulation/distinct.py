"""Which runs differ: two runs are one when they differ in the order of commuting calls only (a Mazurkiewicz trace).

::

    commit puts A, gc lists B/, commit puts B/1        the same trace as      gc lists B/, commit puts A, commit puts B/1
    commit puts B/1, gc lists B/                       another one            gc lists B/, commit puts B/1

Each call gets a number made of what it is and of the numbers of those that it depends on: the one before of its actor, and
those before that touch what it touches, where one of the two writes. The sum over all calls does not depend on the order of
commuting ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.engine import CallStep, ScheduledRun
from tests.simulation.schedule import JUMP, LISTINGS, START

_MASK = (1 << 64) - 1


@dataclass(slots=True)
class _Path:
    """What was done to a path so far: the last write, and the reads since."""

    write: int = 0
    reads: list[int] = field(default_factory=list)


def trace_of(run: ScheduledRun) -> int:
    """The same number for runs that differ in the order of commuting calls only, in processes of one PYTHONHASHSEED."""
    jumps: dict[tuple[str, str, int], float] = {}
    for item in run.fired:
        if item.do == JUMP and item.call != START:
            key = (item.actor, item.call, item.nth)
            jumps[key] = jumps.get(key, 0.0) + item.seconds
    return _Numbering(jumps).of(run.steps)


class _Numbering:
    def __init__(self, jumps: dict[tuple[str, str, int], float]) -> None:
        self._jumps = jumps
        self._actors: dict[str, int] = {}
        self._paths: dict[str, _Path] = {}
        self._listings: dict[str, list[int]] = {}

    def of(self, steps: list[CallStep]) -> int:
        """The number of a whole run."""
        return sum(map(self._number, steps)) & _MASK

    def _number(self, step: CallStep) -> int:
        call = step.call
        jump = self._jumps.get((call.actor, call.label, call.nth), 0.0)
        itself = (call.actor, call.name, call.path, step.note, jump, self._actors.get(call.actor, 0))
        if call.is_write:
            place = self._paths.setdefault(call.path, _Path())
            listed = [item for prefix, found in self._listings.items() if call.path.startswith(prefix) for item in found]
            number = hash((itself, place.write, frozenset(place.reads), frozenset(listed)))
            place.write, place.reads = number, []
        elif call.name in LISTINGS:
            written = (item.write for path, item in self._paths.items() if item.write and path.startswith(call.path))
            number = hash((itself, frozenset(written)))
            self._listings.setdefault(call.path, []).append(number)
        else:
            place = self._paths.setdefault(call.path, _Path())
            number = hash((itself, place.write))
            place.reads.append(number)
        self._actors[call.actor] = number
        return number
