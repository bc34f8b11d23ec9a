"""A scenario: a table, its work and its actors; and how its schedules are run.

::

    setup      the table and what is staged on it; once, then every run goes on from a copy
    actors     by the schedule, with its faults
    recovery   what a person or an orchestrator does next, without faults: every commit again, and what a refusal says
    gc         with every lease over
    verdict    see `judge`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from lance_core.commit.naming import is_of_attempt
from lance_core.commit.references import is_referenced
from lance_core.errors import CommitStateUnknownError, CorruptFileError, LanceError, NotFoundError
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import GarbageSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.decisions import look
from lance_core.publish.intent import list_intents
from lance_core.publish.model import CommitResult
from tests.simulation.actors import Told
from tests.simulation.determinism import installed
from tests.simulation.engine import Engine, ScheduleChoice, ScheduledRun
from tests.simulation.histories import Histories
from tests.simulation.judge import Judge, broken, landings, leftovers, of_strays, orphans, overlooked, theirs, untrue
from tests.simulation.model import IdentityWork, Rows, serial_outcomes
from tests.simulation.schedule import CRASH, LATE, LOST, STALE, Deviation, Schedule
from tests.simulation.stores import URI, world_of
from tests.simulation.world import Killed

T = TypeVar("T")
_TRIES = 6
CONTROL_EVERY = 200
"""Of so many runs one carries out the real work of all actors, whatever is known of them."""
_MOST_KEPT = 50_000
"""Histories of actors that are kept: a few kilobytes each."""
_MINUTE = 60.0
_LATER_SECONDS = 40 * 24 * 3600.0


@dataclass(frozen=True)
class Stage:
    """What a scenario's setup has made. What `outsiders` leave behind when they die is not ours to collect."""

    works: tuple[IdentityWork, ...]
    actors: Mapping[str, Callable[[], object]]
    outsiders: frozenset[str] = frozenset()
    again: Callable[[], object] = lambda: None
    """What is done again some time later, as part of the recovery."""


@dataclass(frozen=True)
class Scenario:
    """`faults` are those that the systematic search tries; the random one tries all."""

    name: str
    about: str
    setup: Callable[[], Stage]
    faults: tuple[str, ...] = (CRASH, LOST, LATE)
    prunes: bool = False
    """Whether history goes: only then may it be unknown what landed."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Second faults that the systematic search tries behind a first one, beyond its bound of faults."""


BROKEN, ROWS, TWICE, UNTRUE, BLOCKED = "broken", "rows", "twice", "untrue", "blocked"
ERRED, LITTER, MISLED = "erred", "litter", "misled"
KINDS: Mapping[str, str] = {
    BROKEN: "a version refers to a file that is gone",
    ROWS: "the rows are those of no serial order",
    TWICE: "an identity landed in two versions",
    UNTRUE: "an attempt landed of which a decision says that it is aborted",
    BLOCKED: "nobody can go on, although the history is whole",
    ERRED: "an error that is none of this library's, or no end",
    LITTER: "a file of no version, or a record that is no memory of anything, which gc left",
    MISLED: "an actor ended as if the table were damaged, and it was whole",
}


LATE_FILE, OUTSIDE_FILE, OVERLOOKED_FILE, UNSETTLED_FILE, STRAY_FILE = "late", "outside", "overlooked", "unsettled", "stray"
ORPHANS: Mapping[str, str] = {
    LATE_FILE: "its put took effect after its writer had abandoned and removed it",
    OUTSIDE_FILE: "an outside writer has left it behind",
    OVERLOOKED_FILE: "an outside cleanup removed its version, and a stale listing did not show it the file",
    UNSETTLED_FILE: "it belongs to work of which only a user can say whether it has landed",
    STRAY_FILE: "a stray manifest refers to it; the next cleanup of versions removes both",
}
"""Files that may stay after garbage collection, with the reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One of `KINDS`, and what it is in this case."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass
class RunVerdict:
    """What a run came to. No problems: it ended exact."""

    schedule: Schedule
    run: ScheduledRun
    problems: list[Problem] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    orphans: Counter[str] = field(default_factory=Counter)
    """Files that nobody can collect by their names, and that stayed: how many of each of `ORPHANS`."""

    def has(self, kinds: Collection[str]) -> bool:
        """Whether a problem is of one of these kinds."""
        return any(problem.kind in kinds for problem in self.problems)


class Theatre:
    """A scenario on a kind of store, set up once."""

    def __init__(self, scenario: Scenario, *, store: str = "memory", control_every: int = CONTROL_EVERY) -> None:
        self.scenario = scenario
        self.world = world_of(store)
        self._judge = Judge()
        self._histories = Histories()
        self._control_every, self._num_runs = control_every, 0
        self._outcomes: dict[tuple[str, ...], frozenset[Rows]] = {}
        self._ends: dict[int, RunVerdict] = {}
        """What came of each state in which the actors left the world: most schedules end in one of a few."""
        with installed(self.world):
            self.stage = self._alone("setup", scenario.setup)
            self._start = self._judge.rows(self.world)
        self._state = self.world.snapshot()

    def play(self, schedule: Schedule) -> RunVerdict:
        """One run, and the verdict on it."""
        return self._played(schedule.deviations, schedule)

    def play_by(self, choice: ScheduleChoice) -> RunVerdict:
        """A run whose schedule is decided while it goes on; the verdict has the schedule."""
        return self._played(choice, Schedule(self.scenario.name, store=self.world.kind))

    def _played(self, choice: ScheduleChoice | Sequence[Deviation], schedule: Schedule) -> RunVerdict:
        self.world.reset(self._state)
        self._num_runs += 1
        if self._histories.num_real > _MOST_KEPT:
            self._histories.forget()
        # Names repeat from run to run, so what a process remembers of a segment would be that of another run.
        shared_cache().discard(("folded ledger", self.world.store.uri))
        with installed(self.world):
            run = self._run(self.stage.actors, choice)
            if not isinstance(choice, Sequence):
                schedule = replace(schedule, deviations=tuple(run.fired))
            verdict = RunVerdict(schedule, run)
            # Recovery begins on the minute, so that a pause of a second more or less ends in the same state.
            self.world.now = -(-self.world.now // _MINUTE) * _MINUTE
            alien = self._alien(run)
            end = self._end_of(run, alien)
            later = self._ends.get(end)
            if later is None:
                later = self._ends[end] = RunVerdict(schedule, run)
                self._look("after the actors", later)
                if not later.problems:
                    self._recover(later, alien)
                later.run = ScheduledRun()  # what led there is not needed any more
            self._judge_actors(verdict)
            verdict.refusals += later.refusals
            verdict.orphans = later.orphans
            if not verdict.problems:
                verdict.problems += later.problems
        return verdict

    def _end_of(self, run: ScheduledRun, alien: Mapping[str, str]) -> int:
        """All that recovery and the judge look at."""
        world = self.world
        objects = frozenset((path, data, at // _MINUTE) for path, (data, at) in world.objects.items())
        state = (objects, frozenset(world.register.items()), frozenset(world.strays), world.now)
        ended = frozenset((work.actor, work.actor in run.errors) for work in self.stage.works)
        return hash((state, ended, frozenset(_reported(run)), frozenset(alien.items()), theirs(world, self.stage.outsiders)))

    def _alien(self, run: ScheduledRun) -> Mapping[str, str]:
        """Files that are not ours to collect, with the reason."""
        undo, outsiders = self.world.undo, self.stage.outsiders
        found: dict[str, str] = {}
        if any(item.do == STALE and item.actor.partition("/")[0] in outsiders for item in run.fired):
            found |= dict.fromkeys(overlooked(self.world, outsiders), OVERLOOKED_FILE)
        found |= {path: OUTSIDE_FILE for actor, path, _ in undo if actor in outsiders}
        return found | {path: LATE_FILE for actor, path, _ in undo if _is_late_file(actor, path)}

    def _run(self, works: Mapping[str, Callable[[], object]], choice: ScheduleChoice | Sequence[Deviation]) -> ScheduledRun:
        real = self._num_runs % self._control_every == 0
        # What a process did after its answers cannot be kept where it makes several calls at once.
        histories = None if self.world.is_wide else self._histories
        return Engine(self.world, works, choice, histories=histories, real=real).run()

    def _alone(self, name: str, work: Callable[[], T]) -> T:
        """A process for itself."""
        run = self._run({name: work}, ())
        for error in run.errors.values():
            raise error
        return cast("T", run.results[name])

    def _judge_actors(self, verdict: RunVerdict) -> None:
        for name, error in verdict.run.errors.items():
            if isinstance(error, (NotFoundError, CorruptFileError)) and error.version is None:
                verdict.problems.append(Problem(MISLED, f"{name}: {type(error).__name__}: {error}"))
            elif isinstance(error, LanceError):
                verdict.refusals.append(f"{name}: {type(error).__name__}: {error}")
            elif not isinstance(error, Killed):
                verdict.problems.append(Problem(ERRED, f"{name}: {type(error).__name__}: {error}"))

    def _look(self, when: str, verdict: RunVerdict) -> None:
        try:
            verdict.problems += [
                Problem(BROKEN, f"{when}, {text}") for text in broken(self.world, outsiders=self.stage.outsiders)
            ]
        except LanceError as error:
            verdict.problems.append(Problem(BROKEN, f"{when}, the table cannot be read: {error}"))

    def _recover(self, verdict: RunVerdict, alien: Mapping[str, str]) -> None:
        landed: dict[str, bool | None] = {}
        try:
            self._finish_all(landed, verdict)
            self.world.now += _LATER_SECONDS
            self._alone("again", self.stage.again)
            self._alone("gc", _collect_twice)
        except LanceError as error:
            verdict.problems.append(Problem(BLOCKED, f"recovery does not end: {type(error).__name__}: {error}"))
            return
        except Exception as error:  # whatever it is: it is the finding
            verdict.problems.append(Problem(ERRED, f"in recovery: {type(error).__name__}: {error}"))
            return
        self._look("in the end", verdict)
        if verdict.problems:
            return
        self._compare(landed, verdict)
        waiting = self._attempts_of(work.identity for work in self.stage.works if landed[work.name] is None)
        left = orphans(self.world)
        waiting |= {item.commit for item in list_intents(self.world.store) if waiting & set(item.attempts.values())}
        reasons = {path: STRAY_FILE for path in left if is_referenced(path, of_strays(self.world))} if left else {}
        reasons |= {path: UNSETTLED_FILE for path in left if any(is_of_attempt(path, item) for item in waiting)}
        for path in left:
            why = alien.get(path) or reasons.get(path)
            if why:
                verdict.orphans[why] += 1
            else:
                verdict.problems.append(Problem(LITTER, path))
        unsettled = [work.identity for work in self.stage.works if landed[work.name] is None and work.identity]
        verdict.problems += [Problem(LITTER, path) for path in leftovers(self.world, unsettled=unsettled)]
        twice = [identity for identity, count in landings(self.world).items() if count > 1]
        verdict.problems += [Problem(TWICE, identity) for identity in twice]
        verdict.problems += [Problem(UNTRUE, text) for text in untrue(self.world)]

    def _attempts_of(self, identities: Iterable[str]) -> set[str]:
        return {entry.attempt for identity in identities for entry in list_staged(self.world.store, identity=identity)}

    def _finish_all(self, landed: dict[str, bool | None], verdict: RunVerdict) -> None:
        reported = _reported(verdict.run)
        for work in self.stage.works:
            if work.actor:
                landed[work.name] = None if work.actor in verdict.run.errors else True
            else:
                landed[work.name] = self._finish(work, verdict)
            if landed[work.name] is not True and work.identity in reported:
                verdict.problems.append(Problem(ROWS, f"{work.name} was reported as landed, and has not"))

    def _told(self, run: ScheduledRun) -> set[str]:
        """Identities of which an abort said that the work is removed."""
        keys = [key for result in run.results.values() if isinstance(result, Told) for key in result.attempts]
        return {identity for identity, attempt in keys if look(self.world.store, identity).is_aborted(attempt)}

    def _finish(self, work: IdentityWork, verdict: RunVerdict) -> bool | None:
        """Commit until it is settled, as the refusals say. None: it is unknown, and the error says so."""
        told = self._told(verdict.run)
        for number, cure in enumerate((_nothing, work.stage, _give_up_and(work))):
            if number and work.identity in _reported(verdict.run):
                return False
            try:
                if number:
                    self._alone(f"{number}. cure of {work.name}", cure)
                is_there = self._alone(f"{number + 1}. commit of {work.name}", lambda: self._committed(work))
                if is_there and not number and work.identity in told:
                    verdict.problems.append(Problem(UNTRUE, f"{work.name} was reported as removed, and has landed"))
                return is_there
            except CommitStateUnknownError as unknown:
                verdict.refusals.append(f"{work.name}: {unknown}")
                if not self.scenario.prunes:
                    verdict.problems.append(Problem(BLOCKED, f"{work.name}: {unknown}"))
                return None
            except LanceError as refusal:
                verdict.refusals.append(f"{work.name}: {type(refusal).__name__}: {refusal}")
        self._alone(f"{work.name} given up", lambda: _give_up(work))
        return False

    def _committed(self, work: IdentityWork) -> bool:
        for attempt in range(_TRIES):
            try:
                found = run_job(CommitSpec(uri=URI, identities=(work.identity,)))
                assert isinstance(found, CommitResult)
                return work.identity in found.identities
            except LanceError as error:
                if not error.retryable or attempt == _TRIES - 1:
                    raise
        return False

    def _compare(self, landed: Mapping[str, bool | None], verdict: RunVerdict) -> None:
        rows = self._judge.rows(self.world)
        certain = [work for work in self.stage.works if landed[work.name]]
        open_ends = [work for work in self.stage.works if landed[work.name] is None]
        for choice in range(1 << len(open_ends)):
            taken = [work for bit, work in enumerate(open_ends) if choice >> bit & 1]
            if rows in self._serial([*certain, *taken]):
                return
        names = ", ".join(work.name for work in certain) or "nothing"
        expected = " or ".join(str(list(item)) for item in sorted(self._serial(certain))[:4])
        verdict.problems.append(Problem(ROWS, f"{names} landed, so expected {expected}, found {list(rows)}"))

    def _serial(self, works: Sequence[IdentityWork]) -> frozenset[Rows]:
        key = tuple(sorted(work.name for work in works))
        if key not in self._outcomes:
            self._outcomes[key] = serial_outcomes(self._start, works)
        return self._outcomes[key]


def _reported(run: ScheduledRun) -> set[str]:
    """Identities of which a commit said that they landed."""
    results = [result for result in run.results.values() if isinstance(result, CommitResult)]
    return {identity for result in results for identity in result.identities}


def _is_late_file(actor: str, path: str) -> bool:
    """A file that landed after its writer had given it up: nobody can know of it, but by listing the whole table."""
    return actor.startswith("late ") and not path.startswith(("_lance_core/", "_versions/"))


def _nothing() -> None:
    """The first try needs no cure."""


def _give_up(work: IdentityWork) -> None:
    """What a person does with staged work that cannot land: `lance staged abort`."""
    store = resolve_store(URI)
    for entry in list_staged(store, identity=work.identity):
        abort_attempt(store, entry.identity, entry.attempt)


def _give_up_and(work: IdentityWork) -> Callable[[], object]:
    def cure() -> object:
        _give_up(work)
        return work.stage()

    return cure


def _collect_twice() -> None:
    for _ in range(2):
        run_job(GarbageSpec(uri=URI))
