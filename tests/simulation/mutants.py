"""The command: is every rule of the protocol held by a scenario or a unit test? Mutants by rule, each in a child process.

::

    python -m tests.simulation.mutants --folder mutated --count 150 --seed 1     goes on where it was ended
    python -m tests.simulation.mutants --folder mutated --report                 what that has shown so far
    python -m tests.simulation.mutants --only CommitLoop._accept                 those whose name has this in it

A mutant is tried on the first schedules of every scenario, then by the unit tests of commits and publication, then on more
schedules where its function was called, then by the other unit tests. The first that fails is its killer. A child that does
not end within its bound was killed by that. What survives is code without an effect, to be deleted, a scenario that is
missing, or the same by a proof in `equivalent`. A mutant whose function has changed is tried again. First of all the code as
it is has to survive both.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.simulation.equivalent import EQUIVALENT
from tests.simulation.mutation import REACHED, Mutant, chosen, mutants_of, mutated

ROOT = Path(__file__).parents[2]
SUBJECTS = (
    "lance_core/publish/*.py",
    "lance_core/commit/loop.py",
    "lance_core/commit/put_manifest.py",
    "lance_core/commit/conflicts.py",
    "lance_core/commit/history.py",
    "lance_core/commit/rebase.py",
)
"""What is mutated, where it is: the commit loop, and all that makes commits exactly once."""
NEAR = ("tests/publish", "tests/commit")
FAR = (
    *("tests/protocol", "tests/jobs/runtime", "tests/jobs/publish"),
    *("tests/dataset/versions/test_transaction_log.py", "tests/dataset/refs/test_branches.py"),  # detached versions, clones
)
_OTHER_PROCESSES = "not kill_9 and not processes and not race"
"""Tests whose work is done by processes of their own, which have no mutant in them."""
_FIRST, _MORE = 12, 400
_MOST_SECONDS, _MOST_PROCESSOR_SECONDS = 3600, 600
"""A child that waits for ever, or goes on for ever, ends by these; a busy machine alone ends none."""
_AS_IT_IS = "as it is"
_STAGES = ("first", "near", "more", "far")
"""The quickest that find most come first."""
_KILLED, _SURVIVED = "killed", "survived"


class _MutatedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """The changed code, whatever is cached."""
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _MutatedFinder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self._path = ROOT / mutant.path
        self._source = mutated(self._path.read_text(), mutant)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /) -> ModuleSpec | None:
        """The changed module by its name, nothing else."""
        if fullname != self._name:
            return None
        loader = _MutatedLoader(fullname, str(self._path), self._source)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)

    def is_reached(self) -> bool:
        """Whether the changed function was called since it was last inquired."""
        seen: list[int] = getattr(sys.modules.get(self._name), REACHED, [])
        found = bool(seen)
        seen.clear()
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    options = _parser().parse_args(arguments)
    every = all_mutants()
    if options.child:
        mutant = next((item for item in every if item.name == options.child), None)
        return _child(mutant, stage=options.stage, seconds=options.seconds)
    folder = Path(options.folder)
    wanted = [item for item in every if options.only in item.name] if options.only else every
    wanted = chosen(wanted, count=options.count, seed=options.seed)
    if not options.report:
        folder.mkdir(parents=True, exist_ok=True)
        known = results_of(folder)
        left = [item for item in wanted if (item.name, item.digest) not in known]
        print(f"{len(every):,} mutants, {len(wanted)} chosen by seed {options.seed}, {len(left)} to be tried", flush=True)
        if left and not _is_sound(folder, seconds=options.seconds):
            return 2
        _try_all(left, folder, processes=options.processes, seconds=options.seconds)
    return _report(wanted, results_of(folder))


def all_mutants() -> list[Mutant]:
    """Of every file among the subjects."""
    paths = [path.relative_to(ROOT).as_posix() for pattern in SUBJECTS for path in sorted(ROOT.glob(pattern))]
    return mutants_of(ROOT, paths)


def results_of(folder: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
    """What is known so far, by a mutant's name and the digest of its function."""
    path = folder / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(item["name"], item["digest"]): item for item in found}


def _try_all(mutants: Sequence[Mutant], folder: Path, *, processes: int, seconds: float) -> None:
    with ThreadPoolExecutor(max(1, processes)) as threads, (folder / "results.jsonl").open("a") as file:
        for mutant, outcome in zip(mutants, threads.map(lambda item: tried(item, seconds=seconds), mutants), strict=True):
            file.write(json.dumps({"name": mutant.name, **asdict(mutant), **outcome}) + "\n")
            file.flush()
            print(f"{outcome['status']:<9} {mutant.name}  {outcome['by']}", flush=True)


def _is_sound(folder: Path, *, seconds: float) -> bool:
    """Whether the code as it is survives: else nothing that is said of a mutant means anything. Found out once."""
    from tests.simulation.sources import digest_of_sources

    note = folder / f"sound-{digest_of_sources()[:16]}"
    if note.exists():
        return True
    for stage in _STAGES[1:]:
        by = in_a_child(_AS_IT_IS, stage, seconds=seconds)
        if by:
            print(f"the code as it is does not survive: {by}", flush=True)
            return False
    note.touch()
    return True


def tried(mutant: Mutant, *, seconds: float) -> Mapping[str, Any]:
    """One mutant, in child processes: {"status": "killed" | "survived", "by": its killer, "seconds": ...}."""
    began = time.monotonic()
    by = ""
    for stage in _STAGES:
        by = in_a_child(mutant.name, stage, seconds=seconds)
        if by:
            break
    return {"status": _KILLED if by else _SURVIVED, "by": by, "seconds": round(time.monotonic() - began, 1)}


def in_a_child(name: str, stage: str, *, seconds: float) -> str:
    """The killer that a child found, "" for none."""
    command = [sys.executable, "-m", "tests.simulation.mutants", "--child", name, "--stage", stage]
    child = subprocess.Popen(
        [*command, "--seconds", str(seconds)],
        cwd=ROOT,
        # As in CI: the same examples for each mutant, and none that another one has failed with.
        env={**os.environ, "PYTHONHASHSEED": "0", "CI": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"{stage}: no end within {_MOST_SECONDS} s"
    last = output.strip().rpartition("\n")[2]
    if last.startswith("killer: "):
        return last.removeprefix("killer: ")
    if child.returncode:
        return f"{stage}: the process ended with {child.returncode}: {last[:200]}"
    return ""


def _child(mutant: Mutant | None, *, stage: str, seconds: float) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_PROCESSOR_SECONDS, _MOST_PROCESSOR_SECONDS))
    finder = None if mutant is None else _MutatedFinder(mutant)
    if finder is not None:
        sys.meta_path.insert(0, finder)
    if stage in ("first", "more"):
        by = _killing_scenario(finder, seconds=seconds if stage == "more" else 0.0)
    else:
        by = _killing_unit(NEAR if stage == "near" else FAR)
    print(f"killer: {by}" if by else "survived", flush=True)
    return 0


def _killing_scenario(finder: _MutatedFinder | None, *, seconds: float) -> str:
    """The first scenario that ends otherwise than exact: on its first schedules, then on more of those that get there."""
    from tests.simulation.scenario import RunVerdict, Theatre
    from tests.simulation.scenarios import SCENARIOS

    logging.disable(logging.CRITICAL)
    ends = time.process_time() + seconds
    searches: list[tuple[str, Iterator[RunVerdict]]] = []
    for name, scenario in SCENARIOS.items():
        try:
            search = _schedules(Theatre(scenario))
            found = _first_problem(search, 1)
            if finder is not None and not finder.is_reached():
                continue
            found = found or _first_problem(search, _FIRST)
        except Exception as error:  # a set-up that does not succeed any more has found the mutant
            return f"{name}: {type(error).__name__} in its set-up"
        if found:
            return f"{name}: {found}"
        searches.append((name, search))
    for name, search in searches * 4:
        if time.process_time() > ends:
            break
        found = _first_problem(search, _MORE // 4)
        if found:
            return f"{name}: {found}"
    return ""


def _schedules(theatre: Any) -> Iterator[Any]:
    from tests.simulation.explore import Bounds, schedules_of

    return enumerate(schedules_of(theatre, bounds=Bounds(2, 1, 10 * _MORE)), start=1)


def _first_problem(search: Iterator[Any], most: int) -> str:
    for _, (number, verdict) in zip(range(most), search, strict=False):
        if verdict.problems:
            return f"{verdict.problems[0].kind} in schedule {number}"
    return ""


class _FirstFailure:
    """A plugin of pytest that keeps the name of the first test that fails."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (not collected)"


def _killing_unit(places: Sequence[str]) -> str:
    """The first test that fails, and fails again alone: on a busy machine one that counts what is under way at once may not
    see all of it."""
    there, late = [path for path in places if (ROOT / path).exists()], list[str]()
    while name := _first_failure(there, late):
        if not name.partition("::")[2] or _first_failure([name], []):
            return name
        late.append(name)
    return ""


def _first_failure(places: Sequence[str], late: Sequence[str]) -> str:
    import pytest

    first = _FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "-k", _OTHER_PROCESSES]
    options += [f"--deselect={name}" for name in late]
    code = pytest.main([*options, *places], plugins=[first])
    if first.name or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return first.name or f"pytest ended with {code}"
    return ""


def _report(wanted: Sequence[Mutant], known: Mapping[tuple[str, str], Mapping[str, Any]]) -> int:
    done = [known[item.name, item.digest] for item in wanted if (item.name, item.digest) in known]
    survived = [item for item in done if item["status"] == _SURVIVED]
    survivors = [item for item in survived if (item["name"], item["digest"]) not in EQUIVALENT]
    killers = Counter(_short(item["by"]) for item in done if item["status"] == _KILLED)
    for item in survived:
        place = f"{item['path']}:{item['line']} {item['function']} {item['rule']}: {item['text']}"
        proof = EQUIVALENT.get((item["name"], item["digest"]))
        print(f"survived  {place}" if proof is None else f"the same  {place}\n          {proof}")
    for name, count in killers.most_common():
        print(f"{count:5}  killed by {name}")
    print(
        f"{len(done)} of {len(wanted)} tried: {len(done) - len(survived)} killed, {len(survivors)} survived, "
        f"{len(survived) - len(survivors)} are the same by proof"
    )
    return 1 if survivors else 0


def _short(by: str) -> str:
    return by.partition(":")[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--folder", default="mutated", help="where results add up (default mutated)")
    add("--count", type=int, default=150, help="how many mutants (default 150)")
    add("--seed", type=int, default=1, help="which of them")
    add("--only", default="", metavar="TEXT", help="of those whose name has this in it")
    add("--seconds", type=float, default=60.0, help="processor time of the scenarios of a mutant (default 60)")
    add("--processes", type=int, default=1, help="mutants at once")
    add("--report", action="store_true", help="only say what is known so far")
    add("--child", default="", help=argparse.SUPPRESS)
    add("--stage", default="more", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
