"""The command: run the commit protocol on every schedule, print failures, keep them as seeds.

::

    python -m tests.simulation.simulate                               a few seconds of everything
    python -m tests.simulation.simulate zombie --preemptions 3 --schedules 100000
    python -m tests.simulation.simulate --random 10000 --seed 7       by chance, with every kind of fault
    python -m tests.simulation.simulate --replay seed.json            one schedule, told step by step
    python -m tests.simulation.simulate --save seeds/                 what is found is kept there
    python -m tests.simulation.simulate --campaign seen/ --seconds 3600 --processes 2
    python -m tests.simulation.simulate --campaign seen/ --report     what that has shown so far

Exit code 0: every schedule ended exact. 1: some did not. See docs/protocol.md.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from tests.simulation import campaign
from tests.simulation.campaign_report import reported
from tests.simulation.explore import Bounds, explore
from tests.simulation.report import described
from tests.simulation.scenario import KINDS, RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import PAIRS, Schedule
from tests.simulation.stores import STORES
from tests.simulation.walk import shrink, walk


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario on one kind of store, with what is to be tried."""

    scenario: str
    store: str
    bounds: Bounds
    random: int = 0
    seed: int = 0
    kinds: tuple[str, ...] = tuple(KINDS)
    at_most: int = 1
    """Stop at so many schedules with a problem; 0: never."""


@dataclass
class TrialTally:
    """The result of a job: `first` has, for each kind of problem, the number of the schedule that showed it first."""

    job: Trial
    num_schedules: int = 0
    complete: bool = False
    seconds: float = 0.0
    problems: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, Schedule, str]] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    options = _parser().parse_args(arguments)
    if options.list:
        for scenario in SCENARIOS.values():
            print(f"{scenario.name:<28} {scenario.about}")
        return 0
    if options.replay:
        return replay(Path(options.replay))
    if options.campaign:
        return _campaign(options)
    jobs = [
        _job(options, name, store) for name in options.scenarios or SCENARIOS for store in _stores(options.store or "memory")
    ]
    tallies = []
    for tally in _all(jobs, processes=options.processes):
        tallies.append(tally)
        _print(tally)
        if options.save:
            _save(tally, Path(options.save))
    total = sum(tally.num_schedules for tally in tallies)
    wrong = sum(tally.problems.total() for tally in tallies)
    print(f"{total:,} schedules, {wrong:,} problems")
    return 1 if wrong else 0


def _campaign(options: argparse.Namespace) -> int:
    """Go on with a campaign, or only tell what it has shown."""
    folder, wrong = Path(options.campaign), 0
    if not options.report:
        bounds = Bounds(options.preemptions, options.faults, options.schedules)
        stores = _stores(options.store or "all")
        wrong = campaign.run(
            folder,
            seconds=options.seconds,
            stores=stores,
            processes=options.processes,
            bounds=bounds,
            scenarios=options.scenarios,
        )
    print(reported(folder))
    return min(1, wrong)


def carry_out(job: Trial) -> TrialTally:
    """Try the schedules of a job."""
    logging.disable(logging.CRITICAL)
    began = time.perf_counter()
    tally = TrialTally(job)
    theatre = Theatre(SCENARIOS[job.scenario], store=job.store)

    def note(number: int, verdict: RunVerdict) -> None:
        for problem in verdict.problems:
            if problem.kind in job.kinds:
                tally.problems[problem.kind] += 1
                if problem.kind not in tally.first:
                    tally.first[problem.kind] = number, verdict.schedule, problem.text

    bad = 0
    if job.random:
        for verdict in islice(walk(theatre, seed=job.seed), job.random):
            tally.num_schedules += 1
            if verdict.has(job.kinds):
                note(tally.num_schedules, shrink(theatre, verdict))
                bad += 1
                if bad == job.at_most:
                    break
    else:

        def stop(number: int, verdict: RunVerdict) -> bool:
            nonlocal bad
            if verdict.has(job.kinds):
                note(number, verdict)
                bad += 1
            return bad == job.at_most > 0

        found = explore(theatre, bounds=job.bounds, stop=stop)
        tally.num_schedules, tally.complete = found.num_schedules, found.complete
    tally.seconds = time.perf_counter() - began
    return tally


def replay(path: Path) -> int:
    """One schedule, told step by step."""
    schedule = Schedule.from_json(path.read_text())
    scenario = SCENARIOS[schedule.scenario]
    logging.disable(logging.CRITICAL)
    verdict = Theatre(scenario, store=schedule.store).play(schedule)
    print(described(verdict, about=scenario.about))
    missed = [item for item in schedule.deviations if item not in verdict.run.fired]
    for item in missed:
        print(f"  this did not come to pass: {item}")
    return 1 if verdict.problems else 0


def _all(jobs: Sequence[Trial], *, processes: int) -> Iterator[TrialTally]:
    if processes <= 1 or len(jobs) <= 1:
        yield from map(carry_out, jobs)
        return
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(carry_out, jobs)


def _job(options: argparse.Namespace, scenario: str, store: str) -> Trial:
    pairs = PAIRS if options.pairs else ()
    bounds = Bounds(preemptions=options.preemptions, faults=options.faults, schedules=options.schedules, pairs=pairs)
    kinds = tuple(options.kinds) if options.kinds else tuple(KINDS)
    return Trial(scenario, store, bounds, random=options.random, seed=options.seed, kinds=kinds, at_most=options.stop_after)


def _stores(text: str) -> Sequence[str]:
    return tuple(STORES) if text == "all" else (text,)


def _print(tally: TrialTally) -> None:
    job = tally.job
    if job.random:
        extent = f"random, seed {job.seed}"
    else:
        extent = "all" if tally.complete else "the first"
        extent += f" within {job.bounds.preemptions} preemptions and {job.bounds.faults} faults"
    rate = tally.num_schedules / tally.seconds if tally.seconds else 0.0
    verdict = ", ".join(f"{count} {kind}" for kind, count in tally.problems.items()) or "exact"
    print(
        f"{job.scenario:<26} {job.store:<9} {tally.num_schedules:>8,} schedules ({extent}; {rate:,.0f}/s): {verdict}",
        flush=True,
    )
    for number, schedule, _ in {item[0]: item for item in tally.first.values()}.values():
        theatre = Theatre(SCENARIOS[job.scenario], store=job.store)
        print(f"\nschedule {number:,}: {described(theatre.play(schedule), about=theatre.scenario.about)}\n", flush=True)


def _save(tally: TrialTally, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, (_, schedule, text) in tally.first.items():
        path = folder / f"{schedule.scenario}-{schedule.store}-{kind}.json"
        path.write_text(schedule.to_json(finds=[f"{kind}: {text}"]))
        print(f"kept as {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.simulate",
        description="Run the commit protocol on every schedule of small scenarios, and judge what it leaves.",
    )
    add = parser.add_argument
    add("scenarios", nargs="*", metavar="SCENARIO", help="which (default: all); see --list")
    add("--list", action="store_true", help="name the scenarios")
    add(
        "--store",
        choices=(*STORES, "all"),
        help="what the table is on: an object store with a conditional put, one without beside a register, or a disk "
        "(default memory; of a campaign, all)",
    )
    add("--preemptions", type=int, default=2, help="how often an actor that could go on is stopped (default 2)")
    add("--faults", type=int, default=1, help="how many faults a schedule has (default 1)")
    add("--pairs", action="store_true", help="a second fault behind a first: late and refused, a lost response and a kill")
    add("--schedules", type=int, default=300, help="at most so many of each scenario (default 300)")
    add("--random", type=int, default=0, metavar="N", help="instead of the systematic search: so many by chance, all faults")
    add("--seed", type=int, default=0, help="of the random ones")
    add("--kinds", nargs="*", choices=tuple(KINDS), help="what counts as a problem (default: all)")
    add("--stop-after", type=int, default=1, metavar="N", help="so many schedules with a problem in a scenario; 0: never")
    add("--processes", type=int, default=1, help="scenarios at once")
    add("--replay", metavar="FILE", help="run one seed file and tell it step by step")
    add("--campaign", metavar="FOLDER", help="a long run that adds up there, counting the schedules that differ")
    add("--report", action="store_true", help="with --campaign: only tell what it has shown so far")
    add("--seconds", type=float, default=3600.0, help="how long a campaign goes on (default an hour)")
    add("--save", metavar="FOLDER", help="keep a seed file of each kind of problem")
    return parser


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of names are walked through in the same order in every run.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation.simulate", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
