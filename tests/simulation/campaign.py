"""A long run that adds up: turn after turn through all scenarios and stores, counting the schedules that differ.

::

    seen/campaign.json           which commit and which sources this is a campaign on; other sources are refused
    seen/turns.jsonl             one line a turn: schedules tried, new ones among them, problems, ends, seconds
    seen/zombie-memory.npy       the traces (see `distinct`) that runs of this scenario on this store have had so far
    seen/zombie-memory-1.json    a schedule that went wrong

Killed, it loses the turns in progress, and goes on from there when it is started again in the same folder. First each
scenario has a turn of the systematic search on each store, and a short one of schedules by chance at each depth. Then every
third turn belongs to whatever has had the least time, and every other one to whatever has shown the most new schedules a
second. A turn ends early where almost all schedules are known.
"""

from __future__ import annotations

import gc
import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lance_core.errors import InputError
from tests.simulation.distinct import trace_of
from tests.simulation.explore import Bounds, schedules_of
from tests.simulation.scenario import RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.sources import digest_of_sources, revision
from tests.simulation.walk import walk

TURN_SECONDS = 20.0
"""Processor time of a turn: short enough to lose, long enough for most of what actors do to be known (see `histories`)."""
_SHORT = 0.3
"""The part of a turn's time that the first turns by chance have, so that none waits for the others' long ones."""
_WINDOW, _FEW_NEW = 1000, 30
"""A turn ends where so many schedules in a row have shown fewer new ones."""
_DEPTHS = ((6, 2), (9, 4))
"""Preemptions and faults of the schedules by chance, from turn to turn."""
_ABOUT, _TURNS = "campaign.json", "turns.jsonl"


@dataclass(frozen=True, slots=True)
class Turn:
    """One scenario on one kind of store: the systematic search in its first turn, then schedules by chance."""

    scenario: str
    store: str
    number: int
    folder: str
    seconds: float = TURN_SECONDS
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def pair(self) -> str:
        """What it is a turn of."""
        return f"{self.scenario}-{self.store}"

    @property
    def path(self) -> Path:
        """Where its traces are kept."""
        return Path(self.folder) / f"{self.pair}.npy"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a turn. `orphans`: files that no record names and that stayed, by kind; `ends`: what actors and recovery
    were told, by kind."""

    scenario: str
    store: str
    number: int
    tried: int
    new: int
    problems: tuple[str, ...]
    orphans: Mapping[str, int]
    refusals: Mapping[str, int]
    seconds: float

    @property
    def pair(self) -> str:
        """What it was a turn of."""
        return f"{self.scenario}-{self.store}"


def carry_out(turn: Turn) -> Outcome:
    """Try its schedules, add their traces to those known, keep a seed file of each that went wrong."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    known = np.load(turn.path) if turn.path.exists() else np.empty(0, np.uint64)
    with _without_collector():
        return _carried_out(turn, known, began)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A run leaves next to no circles, and to look for them among all that is kept takes half of the time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _carried_out(turn: Turn, known: npt.NDArray[np.uint64], began: float) -> Outcome:
    traces: list[int] = []
    seen: set[int] = set(known.tolist())
    before = len(seen)
    problems: list[str] = []
    orphans: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    for verdict in _verdicts(turn):
        traces.append(trace := trace_of(verdict.run))
        seen.add(trace)
        orphans.update(verdict.orphans)
        refusals.update({_kind_of(text) for text in verdict.refusals})
        problems += [f"{_keep(turn, verdict, len(problems))}: {problem}" for problem in verdict.problems[:1]]
        if time.process_time() - began > turn.seconds:
            break
        if len(traces) % _WINDOW == 0:
            if len(seen) - before < _FEW_NEW:
                break
            before = len(seen)
    both = np.union1d(known, np.asarray(traces, np.uint64))
    np.save(saved := turn.path.with_suffix(".new.npy"), both)
    saved.replace(turn.path)
    new, spent = len(both) - len(known), time.process_time() - began
    return Outcome(turn.scenario, turn.store, turn.number, len(traces), new, tuple(problems), orphans, refusals, spent)


def _keep(turn: Turn, verdict: RunVerdict, number: int) -> str:
    path = Path(turn.folder) / f"{turn.pair}-{turn.number}-{number}.json"
    path.write_text(verdict.schedule.to_json(finds=[str(problem) for problem in verdict.problems]))
    return path.name


def _kind_of(refusal: str) -> str:
    """ "commit: InDoubtError: …" -> "InDoubtError" """
    parts = refusal.split(": ")
    return next((part for part in parts[1:2] if part.isidentifier()), "CommitStateUnknownError")


def _verdicts(turn: Turn) -> Iterator[RunVerdict]:
    theatre = Theatre(SCENARIOS[turn.scenario], store=turn.store)
    if turn.number:
        preemptions, faults = _DEPTHS[turn.number % len(_DEPTHS)]
        return walk(theatre, seed=turn.number, preemptions=preemptions, faults=faults)
    return schedules_of(theatre, bounds=turn.bounds)


@dataclass
class _Share:
    """What a scenario on a store has had so far."""

    turns: int = 0
    seconds: float = 0.0
    tried: int = 0
    new: int = 0
    rate: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """A turn is over."""
        self.turns = max(self.turns, outcome.number + 1)
        self.seconds += outcome.seconds
        self.tried += outcome.tried
        self.new += outcome.new
        self.rate = outcome.new / max(outcome.seconds, 1e-3)


class Campaign:
    """The state of a folder."""

    def __init__(self, folder: Path, *, stores: Sequence[str], scenarios: Sequence[str] = ()) -> None:
        self._folder = folder
        self._pairs = {f"{name}-{store}": (name, store) for name, store in product(scenarios or SCENARIOS, stores)}
        self.shares: dict[str, _Share] = {pair: _Share() for pair in self._pairs}
        self._number = 0
        for outcome in outcomes_of(folder):
            self.shares.setdefault(outcome.pair, _Share()).add(outcome)

    def next_turn(self, *, busy: Iterable[str], seconds: float, bounds: Bounds) -> Turn:
        """What comes next: not what another process is at."""
        free = [pair for pair in self._pairs if pair not in busy] or [*self._pairs]
        self._number += 1
        fresh = min(free, key=lambda item: self.shares[item].turns)
        if self.shares[fresh].turns <= len(_DEPTHS):
            pair, seconds = fresh, seconds * _SHORT
        elif self._number % 3 == 0:
            pair = min(free, key=lambda item: self.shares[item].seconds)
        else:
            pair = max(free, key=lambda item: self.shares[item].rate)
        name, store = self._pairs[pair]
        return Turn(name, store, self.shares[pair].turns, str(self._folder), seconds, bounds)

    def note(self, outcome: Outcome) -> None:
        """A turn is over: it is written down."""
        self.shares[outcome.pair].add(outcome)
        line = {name: getattr(outcome, name) for name in Outcome.__dataclass_fields__}
        with (self._folder / _TURNS).open("a") as file:
            file.write(json.dumps({**line, "seconds": round(outcome.seconds, 2)}) + "\n")


def outcomes_of(folder: Path) -> list[Outcome]:
    """The turns of a campaign so far; a last line that a kill has cut off does not count."""
    path = folder / _TURNS
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            plain = json.loads(line)
        except ValueError:
            continue
        found.append(Outcome(**{**plain, "problems": tuple(plain["problems"])}))
    return found


def run(
    folder: Path,
    *,
    seconds: float,
    stores: Sequence[str],
    processes: int,
    bounds: Bounds,
    scenarios: Sequence[str] = (),
    turn_seconds: float = TURN_SECONDS,
) -> int:
    """Turns until the time is over; the number of problems of all turns so far."""
    folder.mkdir(parents=True, exist_ok=True)
    _begin(folder)
    campaign = Campaign(folder, stores=stores, scenarios=scenarios)
    ends_at = time.monotonic() + seconds
    with ProcessPoolExecutor(max(1, processes), mp_context=get_context("spawn")) as pool:
        running: dict[Future[Outcome], str] = {}
        while True:
            while len(running) < max(1, processes) and time.monotonic() < ends_at:
                turn = campaign.next_turn(busy=running.values(), seconds=turn_seconds, bounds=bounds)
                running[pool.submit(carry_out, turn)] = turn.pair
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
                campaign.note(future.result())
    return sum(len(outcome.problems) for outcome in outcomes_of(folder))


def _begin(folder: Path) -> None:
    """A folder belongs to the sources with which it was begun."""
    path, now = folder / _ABOUT, digest_of_sources()
    if not path.exists():
        path.write_text(json.dumps({"sources": now, "commit": revision()}) + "\n")
        return
    before = json.loads(path.read_text())
    if before["sources"] != now:
        raise InputError(
            f"{folder}: this campaign was begun on other sources ({before['sources'][:16]}, commit {before['commit']}); "
            f"these are {now[:16]}, commit {revision()}",
            cure="Begin a campaign in another folder: schedules of two states of the code do not add up.",
        )
