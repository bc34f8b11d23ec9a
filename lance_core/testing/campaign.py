"""A long run that adds up: turn after turn through all scenarios, counting the schedules that differ.

::

    seen/zombie-memory.npy       the traces (see `distinct`) that runs of this scenario on this store have had so far
    seen/campaign.jsonl          one line a turn: schedules tried, distinct ones so far, problems, seconds

Begun again in the same folder it goes on from there with other seeds. Traces of another commit of the code are other traces
only where its calls differ, so a folder belongs to one commit.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from lance_core.testing.distinct import trace_of
from lance_core.testing.explore import Bounds, schedules_of
from lance_core.testing.scenario import RunVerdict, Theatre
from lance_core.testing.scenarios import SCENARIOS
from lance_core.testing.walk import walk


@dataclass(frozen=True, slots=True)
class Turn:
    """One scenario on one kind of store: the systematic search in its first turn, then schedules by chance."""

    scenario: str
    store: str
    number: int
    schedules: int
    folder: str
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def path(self) -> Path:
        """Where its traces are kept."""
        return Path(self.folder) / f"{self.scenario}-{self.store}.npy"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a turn."""

    turn: Turn
    tried: int
    distinct: int
    problems: tuple[str, ...]
    seconds: float


def carry_out(turn: Turn) -> Outcome:
    """Try its schedules, add their traces to those known, keep a seed file of each that went wrong."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    known = np.load(turn.path) if turn.path.exists() else np.empty(0, np.uint64)
    traces: list[int] = []
    problems: list[str] = []

    def note(verdict: RunVerdict) -> None:
        traces.append(trace_of(verdict.run))
        for problem in verdict.problems:
            problems.append(str(problem))
            name = f"{turn.scenario}-{turn.store}-{problem.kind}-{turn.number}.json"
            (Path(turn.folder) / name).write_text(verdict.schedule.to_json(finds=[str(problem)]))

    for verdict in _verdicts(turn):
        note(verdict)
    both = np.union1d(known, np.asarray(traces, np.uint64))
    np.save(turn.path, both)
    return Outcome(turn, len(traces), len(both), tuple(problems), time.process_time() - began)


def _verdicts(turn: Turn) -> Iterator[RunVerdict]:
    theatre = Theatre(SCENARIOS[turn.scenario], store=turn.store)
    if turn.number:
        yield from islice(walk(theatre, seed=turn.number), turn.schedules)
        return
    yield from schedules_of(theatre, bounds=turn.bounds)


def run(folder: Path, *, seconds: float, schedules: int, stores: Sequence[str], processes: int, bounds: Bounds) -> int:
    """Turns until the time is over; the number of problems."""
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "campaign.jsonl"
    first = (
        1 + max((json.loads(line)["turn"] for line in record.read_text().splitlines()), default=-1) if record.exists() else 0
    )
    distinct = {path.stem: len(np.load(path)) for path in folder.glob("*.npy")}
    ends_at, tried, wrong = time.monotonic() + seconds, 0, 0

    def turns() -> Iterator[Turn]:
        number = first
        while True:
            for name in SCENARIOS:
                for store in stores:
                    if time.monotonic() > ends_at:
                        return
                    yield Turn(name, store, number, schedules, str(folder), bounds)
            number += 1

    with get_context("spawn").Pool(processes) as pool:
        outcomes: Iterator[Outcome] = map(carry_out, turns()) if processes <= 1 else _in_step(pool, turns(), processes)
        for outcome in outcomes:
            tried, wrong = tried + outcome.tried, wrong + len(outcome.problems)
            distinct[outcome.turn.path.stem] = outcome.distinct
            line = {
                "scenario": outcome.turn.scenario, "store": outcome.turn.store, "turn": outcome.turn.number,
                "tried": outcome.tried, "distinct": outcome.distinct, "problems": [*outcome.problems],
                "seconds": round(outcome.seconds, 1), "all_tried": tried, "all_distinct": sum(distinct.values()),
            }  # fmt: skip
            with record.open("a") as file:
                file.write(json.dumps(line) + "\n")
    print(f"{tried:,} schedules, {sum(distinct.values()):,} distinct ones so far, {wrong:,} problems")
    return wrong


def _in_step(pool: object, turns: Iterator[Turn], processes: int) -> Iterator[Outcome]:
    """As many turns at once as there are processes, none of them taken from the iterator early: the time decides."""
    while batch := list(islice(turns, processes)):
        yield from pool.map(carry_out, batch, chunksize=1)  # type: ignore[attr-defined]
