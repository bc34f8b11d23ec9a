"""The end of a job of many tasks: few requests, what counts safe before anything is tidied up, losers found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.many_tasks import begin, end
from bench.object_client import RunningServer, object_server
from lance_core.commit import naming
from lance_core.commit.references import data_paths
from lance_core.commit.transactions import read_transaction_file
from lance_core.io.many import missing
from lance_core.jobs.runtime.progress import PROGRESS
from lance_core.publish.attempts import list_staged
from lance_core.publish.commit import commit_staged
from lance_core.publish.staged_properties import num_new_fragments, staged_writers
from lance_core.wire.fragments import decode_fragment

TASKS = 2500


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


def test_the_end_of_a_job_is_a_few_requests(server: RunningServer) -> None:
    store, attempt, results = begin(server, TASKS)
    with server.watch() as seen:
        staged = end(store, attempt, results)
    (entry,) = list_staged(store)
    # Of so many fragments the decision has no transaction of its own: who lists staged work reads no file for each.
    assert (entry.staged, entry.num_fragments) == (staged, None)
    transaction = read_transaction_file(store, staged.transaction_path)
    assert transaction is not None
    assert num_new_fragments(transaction) == TASKS
    pages = -(-TASKS // 1000)
    assert seen.operations["LIST"] <= pages + 1
    assert seen.operations["DELETE-MANY"] == pages
    assert seen.operations["DELETE"] == 0
    assert seen.requests <= 2 * pages + 12, str(seen)
    deletes = [item["start"] for item in seen.seen if item["operation"] == "DELETE-MANY"]
    finished = next(
        item["end"] for item in seen.seen if "/decisions/" in item["key"] and item["operation"] == "PUT-IF-ABSENT"
    )
    assert min(deletes) >= finished
    assert not list(store.list(f"{PROGRESS}/"))


def test_files_of_tasks_that_began_in_vain_go(server: RunningServer) -> None:
    store, attempt, results = begin(server, 20, losers=1)
    stray = naming.data_path(naming.data_file_name(attempt.attempt))
    store.put(stray, b"x")
    end(store, attempt, results)
    left = [entry.path for entry in store.list(f"{naming.DATA}/")]
    assert stray not in left
    assert len(left) == 20 + 1


@pytest.mark.slow
def test_the_end_of_a_job_of_100_000_tasks(server: RunningServer) -> None:
    store, attempt, results = begin(server, 100_000)
    server.set_speed(latency_ms=30, megabytes_per_second=50)
    try:
        with server.watch() as seen:
            end(store, attempt, results)
    finally:
        server.set_speed(latency_ms=0, megabytes_per_second=0)
    assert seen.requests <= 2 * 100 + 12, str(seen)
    assert seen.seconds < 60, str(seen)


def test_files_of_many_tasks_are_looked_for_in_a_listing(server: RunningServer) -> None:
    store, attempt, results = begin(server, TASKS)
    staged = end(store, attempt, results)
    with server.watch() as seen:
        commit_staged(store, [staged])
    assert seen.operations["HEAD"] == 0
    assert seen.requests <= 30, str(seen)
    store, attempt, results = begin(server, TASKS)
    staged = end(store, attempt, results)
    gone = naming.data_path(decode_fragment(results[7].fragments[0]).files[0].path)
    store.delete(gone)
    transaction = read_transaction_file(store, staged.transaction_path)
    assert transaction is not None
    assert missing(store, data_paths(transaction, writers=staged_writers(transaction, staged.attempt))) == [gone]
