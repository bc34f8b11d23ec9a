"""Many writers at once: every append its own version, every row there, the history serial."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.commit import commit_staged
from lance_core.table.build import build
from tests.commit.commit_support import append, create, file_bytes, live_rows, paths, stage
from tests.commit.race_worker import race

PROCESSES, EACH = 8, 25


def test_8_processes_of_25_appends(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    create(store)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.map(race, [(store.uri, contents_of(number)) for number in range(PROCESSES)], chunksize=1)
    assert [entry.version for entry in list_versions(store)] == list(range(1, PROCESSES * EACH + 2))
    dataset = lance.dataset(store.uri)
    dataset.validate()
    expected = [1, 2, 3, *range(1000, 1000 + PROCESSES * EACH)]
    assert sorted(dataset.to_table()["a"].to_pylist()) == expected
    assert_serial(store)
    assert not [path for path in paths(store) if path.endswith(".unfinished")]


def contents_of(number: int) -> list[bytes]:
    """The data files one process adds, each with one row."""
    return [file_bytes([1000 + number * EACH + turn]) for turn in range(EACH)]


def assert_serial(store: Store) -> None:
    """Replaying each transaction on the version before gives each version."""
    versions = [load_manifest(store, entry.version) for entry in list_versions(store)]
    for before, after in itertools.pairwise(versions):
        transaction = load_transaction(store, after.version)
        assert transaction is not None
        replayed = build(
            before,
            transaction,
            timestamp_ns=after.timestamp_ns,
            writer_version=after.writer_version,  # type: ignore[arg-type]
            transaction_file=after.transaction_file,
        )
        assert list(replayed.fragments) == list(after.fragments)
        assert replayed.max_fragment_id == after.max_fragment_id


def test_threads_create_one_table() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    staged = [stage(store, (number,), read_version=0) for number in range(8)]
    start = threading.Barrier(8)
    failures: list[BaseException] = []

    def commit(number: int) -> None:
        start.wait()
        try:
            commit_staged(store, [staged[number]])
        except BaseException as error:
            failures.append(error)

    run_threads(commit)
    assert failures == []
    assert live_rows(store) == list(range(8))
    assert [entry.version for entry in list_versions(store)] == list(range(1, 9))


def test_threads_commit_overlapping_sets() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    staged = [stage(store, (number,)) for number in range(100, 112)]
    start = threading.Barrier(8)
    failures: list[BaseException] = []

    def commit(number: int) -> None:
        start.wait()
        mine: Sequence[int] = [index for index in range(12) if index % 8 != number]
        try:
            commit_staged(store, [staged[index] for index in mine])
        except BaseException as error:
            failures.append(error)

    run_threads(commit)
    assert failures == []
    assert live_rows(store) == [1, 2, 3, *range(100, 112)]


def run_threads(target: object, count: int = 8) -> None:
    threads = [threading.Thread(target=target, args=(number,)) for number in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_alternating_with_the_official_writer(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    create(store)
    for number in range(4):
        append(store, (10 + number,))
        lance.write_dataset(pa.table({"a": [20 + number]}), store.uri, mode="append")
        append(store, (30 + number,), read_version=1)
    dataset = lance.dataset(store.uri)
    dataset.validate()
    expected = sorted([1, 2, 3, *range(10, 14), *range(20, 24), *range(30, 34)])
    assert sorted(dataset.to_table()["a"].to_pylist()) == expected
    assert dataset.version == 13
    assert [dataset.read_transaction(version).read_version for version in (1, 2, 4)] == [0, 1, 1]
