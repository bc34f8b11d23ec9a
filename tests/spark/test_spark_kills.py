"""kill -9 at every step of Spark's statements and of a stream's batch: rows exact, nothing behind that a collection leaves.

A step is a change of the table's folder by a worker or a planner. Behind the kill of a statement::

    gone        the application died with it: the rows are those before or those behind, and the statement can be run again
    goes on     Spark goes on with another worker: the rows are those behind, once
    gives up    Spark aborts the statement: as `gone`
    cleaned     as `gone`, with others' versions and a cleanup before the statement is run again

A batch of a stream is run again from the checkpoint, by its query and number, whatever became of it and whatever others did
meanwhile. `test_spark_worker_kills` kills the workers of a real Spark.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from kill_harness import LATER, orphans
from kill_plan import KillPlan
from kill_server import WorkerServer
from kill_statements import SCHEMA, SPARK_SCHEMA, STATEMENTS, Conversation, Statement, rows

import lance_core
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage

WAYS = ("gone", "goes on", "gives up", "cleaned")
QUICK = 8
"""Steps of a statement that the quick test kills at; the slow one takes every step in every way."""
QUERY = "0d4c1d5e-9d5c-4d5b-8a6b-0a3b7c3f7e55"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    found = WorkerServer(tmp_path_factory.mktemp("s"))
    yield found
    found.close()


@dataclass
class Place:
    """A table that every kill starts from."""

    folder: Path
    server: WorkerServer

    def start_over(self, *, creates: bool = False) -> str:
        """A fresh copy of it; nothing, for a statement that makes one."""
        base, uri = self.folder / "base.lance", self.folder / "t.lance"
        if not base.exists():
            for start in (0, 10, 20):
                part = rows(range(start, start + 10))
                lance.write_dataset(part, str(base), mode="append" if start else "create", enable_stable_row_ids=True)
        shutil.rmtree(uri, ignore_errors=True)
        if not creates:
            shutil.copytree(base, uri)
        return str(uri)

    def steps(self, run: Callable[[Conversation], None], *, creates: bool = False) -> list[str]:
        """The names of all steps of what nobody kills."""
        names = self.folder / "steps"
        names.unlink(missing_ok=True)
        uri = self.start_over(creates=creates)
        spark = Conversation(self.server, uri, KillPlan(names=str(names), under=uri))
        run(spark)
        spark.close()
        return names.read_text(encoding="utf-8").splitlines()

    def run(self, run: Callable[[Conversation], None], uri: str, *, at: int = 0, lives: bool = False) -> bool:
        """Whether it came to its end; `at`: the step at which its worker dies, 0 for none."""
        spark = Conversation(self.server, uri, KillPlan(at=at, under=uri), lives)
        try:
            run(spark)
        except EOFError:
            return False
        finally:
            spark.close()
        return True


@pytest.fixture
def place(tmp_path: Path, server: WorkerServer) -> Place:
    return Place(tmp_path, server)


def _is_there(uri: str) -> bool:
    return any(Path(uri, "_versions").glob("*.manifest"))


def _ids(uri: str) -> list[int]:
    if not _is_there(uri):
        return []
    table = lance.dataset(uri)
    table.validate()
    found: list[int] = sorted(table.to_table(columns=["id"])["id"].to_pylist())
    return found


def _version(uri: str) -> int:
    """0 where there is no table."""
    return int(lance.dataset(uri).version) if _is_there(uri) else 0


MOST_APPENDS = 50
"""Of many versions the others only change the configuration, which is as much history and takes no time."""


def _others(uri: str, count: int) -> list[int]:
    """Versions of somebody else, by another library; the ids that they add."""
    if not _is_there(uri):
        return []
    added = [*range(10_000, 10_000 + min(count, MOST_APPENDS))]
    for number in added:
        lance.write_dataset(rows([number]), uri, mode="append")
    for number in range(count - len(added)):
        lance.dataset(uri).update_config({"turn": str(number)})
    return added


def _clean_ours(uri: str) -> None:
    lance_core.dataset(uri).cleanup_old_versions(retain_versions=1)


def _clean_theirs(uri: str) -> None:
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0))


CLEANUPS: Mapping[str, Callable[[str], None]] = {"ours": _clean_ours, "theirs": _clean_theirs}


def _nothing_is_left(uri: str, what: str, doubts: list[str] | None = None) -> None:
    """`doubts`: where the cleanup of others took the history away, the identities of which the collection says so."""
    store = LocalStore(uri)
    before = _ids(uri)
    report = collect_garbage(store, now=time.time() + LATER)
    if doubts is None:
        assert report.unknown == (), what
    else:
        doubts += report.unknown
        _settle(store, report.unknown)
        collect_garbage(store, now=time.time() + LATER)
    assert orphans(store) == set(), what
    assert _ids(uri) == before, what


def _settle(store: LocalStore, identities: Sequence[str]) -> None:
    """What a person does who has looked and has not found the rows: `lance staged abort --certain`."""
    for entry in list_staged(store):
        if entry.identity in identities:
            abort_attempt(store, entry.identity, entry.attempt, certain=True)


def _kill(place: Place, name: str, number: int, step: str, way: str) -> None:
    statement = STATEMENTS[name]
    what = f"{name}, step {number} ({step}), {way}"
    uri = place.start_over(creates=statement.creates)
    if way == "goes on":
        assert place.run(statement.run, uri, at=number, lives=True), what
        assert _ids(uri) == sorted(statement.rows), what
        _nothing_is_left(uri, what)
        return
    run = _giving_up(statement) if way == "gives up" else statement.run
    before = _version(uri)
    place.run(run, uri, at=number)
    has_landed = _version(uri) != before  # an update in place leaves the ids as they are
    assert _version(uri) == before + has_landed, what
    assert _ids(uri) == (sorted(statement.rows) if has_landed else statement.before), what
    others = _others(uri, 2) if way == "cleaned" else []
    if way == "cleaned" and others:
        CLEANUPS["ours" if number % 2 else "theirs"](uri)
    now = _ids(uri)
    run_job(CommitSpec(uri=uri))
    assert _ids(uri) == now, (what, "a commit of all that is staged published a statement that died")
    # The official cleanup removes versions that waiting work was planned on: whether the dead commit's put came is lost.
    may_doubt = way == "cleaned" and not has_landed and bool(others) and number % 2 == 0
    if not has_landed:
        assert place.run(statement.run, uri), what
        others = [] if name == "overwrite" else others
    assert _ids(uri) == sorted([*statement.rows, *others]), what
    _nothing_is_left(uri, what, [] if may_doubt else None)


def _giving_up(statement: Statement) -> Callable[[Conversation], None]:
    """Spark, when a task or the commit has failed for good: another worker is told to abort."""

    def run(spark: Conversation) -> None:
        written: list[str] = []
        ask = spark.ask

        def noting(what: str, **request: Any) -> dict[str, Any]:
            found = ask(what, **request)
            written.extend([found["writer"]] if "writer" in found else [])
            return found

        spark.ask = noting  # type: ignore[method-assign]
        try:
            statement.run(spark)
        except EOFError:
            for writer in written:
                other = Conversation(spark.server, spark.uri)
                other.ask("abort", writer=writer)
                other.close()
            raise

    return run


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_killed(place: Place, name: str) -> None:
    statement = STATEMENTS[name]
    steps = place.steps(statement.run, creates=statement.creates)
    assert _ids(str(place.folder / "t.lance")) == sorted(statement.rows)
    wanted = min(QUICK, len(steps))
    for index in range(wanted):
        number = 1 + index * (len(steps) - 1) // max(1, wanted - 1)
        _kill(place, name, number, steps[number - 1], WAYS[index % len(WAYS)])


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_killed_at_every_step(place: Place, name: str) -> None:
    statement = STATEMENTS[name]
    steps = place.steps(statement.run, creates=statement.creates)
    for way in WAYS:
        for number, step in enumerate(steps, start=1):
            _kill(place, name, number, step, way)
    print(f"{name}: {len(steps)} steps, {len(steps) * len(WAYS)} kills")


# A stream

BATCHES = (range(100, 105), range(105, 110))
"""The rows of the two tasks of a batch."""


def _batch(spark: Conversation) -> None:
    options = {"path": spark.uri, "maxRowsPerFile": "4"}
    begun = spark.ask("begin", options=options, schema=SPARK_SCHEMA, overwrite=False, query=QUERY, batch=7)
    results = [spark.write(begun["writer"], number, ids) for number, ids in enumerate(BATCHES)]
    spark.ask("commit", writer=begun["writer"], results=results)


@dataclass(frozen=True)
class Restart:
    """What is between a kill and the restart from the checkpoint."""

    others: int = 0
    cleanup: str = ""
    killed_again: bool = False


RESTARTS: Mapping[str, Restart] = {
    "at once": Restart(),
    "killed again": Restart(killed_again=True),
    "our cleanup": Restart(50, "ours"),
    "their cleanup": Restart(50, "theirs"),
}


def _kill_batch(place: Place, number: int, step: str, restart: Restart) -> None:
    what = f"step {number} ({step}), {restart}"
    uri = place.start_over()
    place.run(_batch, uri, at=number)
    others = _others(uri, restart.others)
    if restart.cleanup:
        CLEANUPS[restart.cleanup](uri)
    if restart.killed_again:
        place.run(_batch, uri, at=1 + number * 7 % 23)
    for _ in range(2):
        assert place.run(_batch, uri), what
        assert _ids(uri) == sorted([*range(30), *range(100, 110), *others]), what
    _nothing_is_left(uri, what)


def test_a_batch_is_killed(place: Place) -> None:
    steps = place.steps(_batch)
    wanted = min(3 * len(RESTARTS), len(steps))
    for index in range(wanted):
        number = 1 + index * (len(steps) - 1) // (wanted - 1)
        _kill_batch(place, number, steps[number - 1], [*RESTARTS.values()][index % len(RESTARTS)])


@pytest.mark.slow
@pytest.mark.parametrize("name", RESTARTS)
def test_a_batch_is_killed_at_every_step(place: Place, name: str) -> None:
    steps = place.steps(_batch)
    for number, step in enumerate(steps, start=1):
        _kill_batch(place, number, step, RESTARTS[name])
    print(f"{name}: {len(steps)} kills")


@pytest.mark.slow
@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_a_batch_is_run_again_behind_a_thousand_versions(place: Place, cleanup: str) -> None:
    steps = place.steps(_batch)
    for number in range(1, len(steps) + 1, 4):
        _kill_batch(place, number, steps[number - 1], Restart(1_000, cleanup))


def test_the_steps_are_a_hundred_and_more(place: Place) -> None:
    counts = {name: len(place.steps(each.run, creates=each.creates)) for name, each in STATEMENTS.items()}
    print(counts)
    assert sum(counts.values()) >= 100
    assert pa.schema(SCHEMA) == SCHEMA
