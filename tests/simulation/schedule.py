"""A schedule as data: where it leaves the default order, which is to let each actor run to its end, one after the other.

::

    {"actor": "commit", "call": "put_if_absent _versions/*.manifest", "nth": 1, "do": "switch", "to": "gc"}
        before this call of the actor, the other goes on
    {"actor": "gc", "call": "end", "nth": 1, "do": "switch", "to": "abort"}
        when gc has ended, abort is next

Deviations name a call by what it does and not by its place in the whole, so a schedule still means the same when code around
it changes, and when other deviations are taken out. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from lance_core.errors import InputError
from lance_core.io.manifest_names import SUFFIX, number_of

START, END = "start", "end"
SWITCH = "switch"
CRASH, LOST, LATE, ERROR, STALE, JUMP = "crash", "lost reply", "late", "error", "stale", "jump"
FAULTS = (CRASH, LOST, LATE, ERROR, STALE, JUMP)
PAIRS = ((LATE, ERROR), (LOST, CRASH))
"""Two faults of which the second shows what the first has left behind: a put that lands behind the next refusal, a process
that dies with an answer which it never got."""

_OF_A_DISK = ("create", "rename", "link")
_OF_A_REGISTER = ("add", "change", "replace", "remove")
WRITES = frozenset({"put", "put_if_absent", "copy_if_absent", "close", "delete", *_OF_A_DISK, *_OF_A_REGISTER})
"""Calls that change what others see."""
LISTINGS = frozenset({"list", "list_names", "list_unfinished", "list_folders", "latest"})

_NAMES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[01]{24}[0-9a-f]{26}|[0-9a-f]{12,}|\d{2,}")


class StoreCall(NamedTuple):
    """A store call of an actor. `label` says what it does, without the names that differ from run to run; `nth` counts the
    calls of this actor with that label."""

    actor: str
    name: str
    path: str
    label: str
    nth: int

    @property
    def is_write(self) -> bool:
        """Whether others may see its effect."""
        return self.name in WRITES

    def conflicts(self, other: StoreCall) -> bool:
        """Whether the order of the two matters: the same path, or one lists above the other, and one of them writes."""
        if not (self.is_write or other.is_write):
            return False
        return covers(self, other.path) or covers(other, self.path)


def covers(call: StoreCall, path: str) -> bool:
    """Whether a call touches a path, by naming or by listing it."""
    return path == call.path or (call.name in LISTINGS and path.startswith(call.path))


def label_of(name: str, path: str) -> str:
    """ "put_if_absent _versions/*.manifest" """
    return f"{name} {_NAMES.sub('*', path)}".strip()


@dataclass(frozen=True, slots=True)
class Deviation:
    """At one call of one actor: switch to another actor, or a fault. `seconds` is how far a clock jumps."""

    actor: str
    call: str
    nth: int
    do: str
    to: str = ""
    seconds: float = 0.0

    @property
    def is_preemption(self) -> bool:
        """Whether it takes the turn from an actor that could go on."""
        return self.do == SWITCH and self.call not in (START, END)

    @property
    def is_fault(self) -> bool:
        """Whether it is a fault."""
        return self.do in FAULTS

    def __str__(self) -> str:
        if self.call == START:
            return f"{self.to} begins"
        if self.call == END:
            return f"when {self.actor} has ended: {self.to} goes on"
        where = f"{self.actor}'s {ordinal(self.nth)} {self.call}"
        if self.do == SWITCH:
            return f"before {where}: {self.to} goes on"
        return f"{where}: {_SHOWN.get(self.do, self.do)}" + (f" of {self.seconds:+g} s" if self.seconds else "")


_SHOWN: Mapping[str, str] = {
    CRASH: "the process dies before it",
    LOST: "done, but the answer is lost",
    LATE: "times out and is done later",
    ERROR: "refused by the store",
    STALE: "answered without the last change",
    JUMP: "a clock jump",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scenario by name, and where to leave the default order, in the order in which it happens."""

    scenario: str
    deviations: tuple[Deviation, ...] = ()
    store: str = "memory"

    @property
    def num_preemptions(self) -> int:
        """How often an actor that could go on is stopped."""
        return sum(item.is_preemption for item in self.deviations)

    @property
    def num_faults(self) -> int:
        """How many faults it has."""
        return sum(item.is_fault for item in self.deviations)

    def plus(self, deviation: Deviation) -> Schedule:
        """The schedule with one more deviation at its end."""
        return replace(self, deviations=(*self.deviations, deviation))

    def without(self, index: int) -> Schedule:
        """The schedule with one deviation taken out."""
        return replace(self, deviations=self.deviations[:index] + self.deviations[index + 1 :])

    def __str__(self) -> str:
        lines = [f"{self.scenario} on {self.store}"] + [f"  {item}" for item in self.deviations]
        return "\n".join(lines)

    def to_json(self, *, finds: Sequence[str] = ()) -> str:
        """A seed file."""
        deviations = [{key: value for key, value in asdict(item).items() if value != ""} for item in self.deviations]
        plain = {"scenario": self.scenario, "store": self.store, "finds": [*finds], "deviations": deviations}
        return json.dumps(plain, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """The inverse of `to_json`. InputError for anything else."""
        try:
            plain: Mapping[str, Any] = json.loads(text)
            deviations = tuple(Deviation(**{"actor": "", **item}) for item in plain["deviations"])
            return cls(plain["scenario"], deviations, plain.get("store", "memory"))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"not a schedule: {error}", cure="Pass a seed file that the simulator has written.") from error


def readable(path: str) -> str:
    """A path as people say it: versions by number, long names by their first six digits."""
    folder, _, name = path.rpartition("/")
    found = number_of(name) if name.endswith(SUFFIX) else None
    if found is not None:
        return f"{folder}/version {found[0]}"
    return _NAMES.sub(lambda match: match[0] if len(match[0]) < 12 else f"{match[0][-6:]}~", path)


def ordinal(number: int) -> str:
    """ "1st", "2nd", …"""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
