"""What a task of a job asks of the store beside its data: two requests at most, and all that they are there for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import lance_core
import lance_core.jobs.runtime.lifecycle as lifecycle
from bench.object_client import RunningServer, object_server
from lance_core.commit import naming
from lance_core.dataset.write.stage import _Stage
from lance_core.errors import StoreError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.progress import ProgressReport, list_notes, read_progress, started_tasks
from lance_core.jobs.runtime.protocols import TaskResult, Work
from lance_core.jobs.specs.edits import AddColumnsSpec, DeleteSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, SourceSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage

TASKS, ROWS = 4, 25
BUDGET = 2
ATTEMPT = "0" * 16


def make_rows() -> pa.Table:
    return pa.table({"id": pa.array(range(TASKS * ROWS), pa.int64())})


class Killed(BaseException):
    """A task, or the driver, that is ended from outside."""


class Cluster(LocalRunner):
    """Several tasks, some of which run more than once, as Spark may run them; notes what each asked beside its data.

    `killed` and `beaten` are partitions of which another task attempt runs first: one that dies with files behind it, and
    one that ends, while only the result of the second comes to the driver. `meanwhile` is called behind every task.
    """

    def __init__(
        self,
        server: RunningServer,
        *,
        killed: Sequence[int] = (),
        beaten: Sequence[int] = (),
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._server, self._meanwhile = server, meanwhile
        self._killed, self._beaten = killed, beaten
        self.books: dict[str, list[str]] = {}
        self.files_of_losers = 0

    def run(self, work: Work, source: Any, shape: Any, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        parts = _cut(source.batches()) if source.num_tasks is None else source.batches()
        return [self._run_partition(work, number, batch) for number, batch in enumerate(parts)]

    def _run_partition(self, work: Work, number: int, batch: pa.RecordBatch) -> TaskResult:
        if number in self._killed:
            assert self._watched(work, number, f"killed {number}", _dying(batch)) is None
        if number in self._beaten:
            self._watched(work, number, f"beaten {number}", iter([batch]))
        result = self._watched(work, number, f"counted {number}", iter([batch]))
        self._meanwhile()
        assert result is not None
        return result

    def _watched(self, work: Work, number: int, name: str, batches: Iterator[pa.RecordBatch]) -> TaskResult | None:
        with self._server.watch() as seen:
            try:
                result = work(number, str(len(self.books)), batches)
            except Killed:
                result = None
        requests = [(str(item["operation"]), str(item["key"])) for item in seen.seen]
        self.books[name] = [f"{kind} {key}" for kind, key in requests if _keeps_books(kind, key)]
        if not name.startswith("counted"):
            self.files_of_losers += sum(kind == "PUT" and "/data/" in key for kind, key in requests)
        return result


def _keeps_books(kind: str, key: str) -> bool:
    return kind in ("LIST", "DELETE", "DELETE-MANY", "HEAD") or f"/{naming.PRIVATE}/" in key


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches)
    for number in range(TASKS):
        (batch,) = table.slice(number * ROWS, ROWS).combine_chunks().to_batches()
        yield batch


def _dying(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch
    raise Killed


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


@pytest.fixture
def store(server: RunningServer) -> Store:
    return resolve_store(f"s3://b{uuid.uuid4().hex}/t", server.options)


@pytest.fixture
def no_discard(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is killed takes nothing back."""
    monkeypatch.setattr(_Stage, "discard", lambda stage: stage._close())


def common(server: RunningServer, store: Store) -> dict[str, Any]:
    return {"uri": store.uri, "storage_options": server.options, "identity": random_identity()}


def append(server: RunningServer, store: Store, **fields: Any) -> AppendSpec:
    source = SourceSpec(callable=f"{__name__}:make_rows")
    return AppendSpec(**common(server, store), **{"source": source, "max_rows_per_file": 10, **fields})


def data_files(store: Store) -> set[str]:
    return {entry.path for entry in store.list(f"{naming.DATA}/")}


def land(server: RunningServer, store: Store, spec: JobSpec, runner: LocalRunner) -> Any:
    staged = run_job(spec, runner=runner)
    run_job(CommitSpec.of([staged], uri=store.uri, storage_options=server.options))
    return lance_core.dataset(store.uri, storage_options=server.options)


def named_files(table: Any) -> set[str]:
    return {naming.data_path(file.path) for fragment in table.get_fragments() for file in fragment.data_files()}


def test_every_task_of_a_write_keeps_its_books_in_two_requests(
    server: RunningServer, store: Store, no_discard: None
) -> None:
    cluster = Cluster(server, killed=(1,), beaten=(2,))
    land(server, store, append(server, store), cluster)
    assert len(cluster.books) == TASKS + 2
    for name, requests in cluster.books.items():
        assert len(requests) <= BUDGET, (name, requests)


def test_no_file_of_a_lost_task_is_left(server: RunningServer, store: Store, no_discard: None) -> None:
    cluster = Cluster(server, killed=(0, 3), beaten=(1, 3))
    table = land(server, store, append(server, store), cluster)
    assert cluster.files_of_losers == 2 * 2 + 2 * 3  # of three files each; what is killed has not finished its last
    assert table.to_table().to_pydict() == make_rows().to_pydict()
    assert data_files(store) == named_files(table)
    assert not store.list_names(f"{naming.PROGRESS}/")


def test_garbage_collection_spares_a_running_job_and_ends_a_killed_one(
    server: RunningServer, store: Store, no_discard: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect() -> None:
        before = data_files(store)
        assert collect_garbage(store).files == ()
        assert data_files(store) == before != set()

    class Dying(Cluster):
        def run(self, *given: Any) -> Sequence[TaskResult]:
            super().run(*given)
            raise Killed

    def die(*_: object, **__: object) -> None:
        """A killed driver clears nothing away."""

    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "abort_after", die)
        with pytest.raises(Killed):
            run_job(append(server, store), runner=Dying(server, killed=(1,), beaten=(2,), meanwhile=collect))
    (entry,) = list_staged(store)
    assert entry.state == "running"
    collect()
    collect_garbage(store, now=time.time() + lifecycle.LEASE_SECONDS + 60)
    assert data_files(store) == set()
    assert not store.list_names(f"{naming.PROGRESS}/")
    assert list_staged(store) == []


@pytest.mark.parametrize("kind", ["delete", "add_columns"])
def test_every_task_of_an_edit_keeps_its_books_in_two_requests(server: RunningServer, store: Store, kind: str) -> None:
    table = land(server, store, append(server, store, max_rows_per_file=ROWS), Cluster(server))
    assert len(table.get_fragments()) == TASKS
    common_fields = {**common(server, store), "rows_per_task": 1}
    spec = (
        DeleteSpec(**common_fields, predicate="id % 2 = 0")
        if kind == "delete"
        else AddColumnsSpec(**common_fields, columns={"twice": "id * 2"})
    )
    cluster = Cluster(server, beaten=(1,))
    left = land(server, store, spec, cluster)
    assert len(cluster.books) == TASKS + 1
    for name, requests in cluster.books.items():
        assert len(requests) <= BUDGET, (name, requests)
    ids = left.to_table()["id"].to_pylist()
    assert ids == [number for number in range(TASKS * ROWS) if kind != "delete" or number % 2]
    if kind == "add_columns":
        assert left.to_table()["twice"].to_pylist() == [2 * number for number in ids]
        assert data_files(store) == named_files(left)


def test_a_short_task_leaves_one_note_and_a_long_one_its_numbers(store: Store) -> None:
    short = ProgressReport(store, ATTEMPT, partition=0, task_attempt="7", seconds=600)
    short.update(5, 0, 0)
    short.finish(10, 1, 100)
    assert list_notes(store, ATTEMPT) == ["00000.7.1.0.0.0"]
    assert read_progress(store, ATTEMPT).line() == "1 tasks have begun"
    long = ProgressReport(store, ATTEMPT, partition=1, task_attempt="8", seconds=0.0)
    long.update(5, 0, 0)
    long.finish(20, 2, 200)
    assert read_progress(store, ATTEMPT).line() == "20 rows, 2 fragments, 0.0 MiB from 1 tasks; 1 more have begun"
    assert started_tasks(list_notes(store, ATTEMPT)) == {(0, "7"), (1, "8")}


def test_a_task_whose_first_note_was_refused_leaves_one_at_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or its files would stay if its result does not count."""

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put", refuse)
        report = ProgressReport(store, ATTEMPT, partition=0, task_attempt="7", seconds=600)
    assert not list_notes(store, ATTEMPT)
    report.finish(10, 1, 100)
    assert started_tasks(list_notes(store, ATTEMPT)) == {(0, "7")}
