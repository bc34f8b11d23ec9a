"""Interleaved timing: every repetition runs each contender once, in rotating order, so that drift hits all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One piece of work and who does it.

    `contenders` maps a name ("lance_core", "pylance", "parquet", ...) to a function that does the work and returns what
    it produced (its `nbytes` or length is not checked here; `check` compares the results once before timing).
    `num_bytes` is the size of the work in memory (Arrow bytes), for rates; 0 where a rate makes no sense.
    `clock` is what is counted: elapsed time, or `time.process_time` for processor time of all threads, which other programs
    of the machine hardly change.
    `before` is run, untimed, before each call (for instance to remove a file that a write will make).
    """

    name: str
    contenders: Mapping[str, Callable[[], object]]
    num_bytes: int = 0
    rows: int = 0
    check: Callable[[Mapping[str, object]], None] | None = None
    before: Callable[[str], None] | None = None
    repeats: int | None = None
    clock: Callable[[], float] = time.perf_counter
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender's repetitions."""

    contender: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Distance between the quartiles, as a share of the median."""
        if len(self.seconds) < 4:
            return (max(self.seconds) - min(self.seconds)) / self.median
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / self.median


def run_case(case: Case, *, repeats: int) -> list[Timing]:
    """Warm every contender up once, check that they agree, then time them in turns."""
    names = list(case.contenders)
    results: dict[str, object] = {}
    for name in names:
        _prepare(case, name)
        results[name] = case.contenders[name]()
    if case.check is not None:
        case.check(results)
    results.clear()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(case.repeats or repeats):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            _prepare(case, name)
            gc.collect()
            started = case.clock()
            produced = case.contenders[name]()
            seconds[name].append(case.clock() - started)
            del produced
    return [Timing(name, tuple(seconds[name])) for name in names]


def _prepare(case: Case, name: str) -> None:
    if case.before is not None:
        case.before(name)
