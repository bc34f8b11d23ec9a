"""The staged lane on local files, where work has piled up: `python -m bench.staged_local`.

::

    deletes      100 staged deletes, 10 versions since, on 10,000 fragments
    collection   beside 10,000 staged transactions that are wanted, and of 10,000 attempts that died
    abort        of an attempt of one file, in a table that has 100,000 data files
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa

from lance_core.commit import naming
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.stage import begin_attempt, finish_attempt
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction

Timing = tuple[str, float, float]


def _rows(start: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def deletes(folder: Path, *, fragments: int, count: int, versions: int) -> Timing:
    """Each delete is of one row, in a fragment of its own."""
    uri = str(folder / "deletes.lance")
    lance.write_dataset(_rows(0, fragments * 10), uri, max_rows_per_file=10, max_rows_per_group=10)
    step = fragments * 10 // count
    refs: list[StagedTransaction] = []
    for number in range(count):
        staged = run_job(DeleteSpec(uri=uri, predicate=f"id = {number * step}", identity=str(uuid.uuid4())))
        assert isinstance(staged, StagedTransaction)
        refs.append(staged)
    for number in range(versions):
        lance.write_dataset(_rows(1_000_000 + number, 1), uri, mode="append")
    return _timed(f"{count} staged deletes, {versions} versions since, {fragments:,} fragments", lambda: _commit(uri, refs))


def _commit(uri: str, refs: list[StagedTransaction]) -> None:
    run_job(CommitSpec(uri=uri, identities=tuple(ref.identity for ref in refs)))


def _attempt(store: LocalStore, *, lease_seconds: float = 3600) -> Attempt:
    identity = str(uuid.uuid4())
    return begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1, lease_seconds=lease_seconds)


def _data_file(store: LocalStore, attempt: str, data: bytes) -> Fragment:
    name = naming.data_file_name(attempt)
    store.put(naming.data_path(name), data, durable=False)
    return Fragment(0, (DataFile(name, (0,), (0,), 2, 2, len(data)),), 1)


def collection(folder: Path, *, count: int) -> Iterator[Timing]:
    """Of appends of one small file."""
    uri = folder / "collection.lance"
    lance.write_dataset(_rows(0, 1), str(uri))
    store = LocalStore(uri)
    data = bytes(store.get(next(store.list("data/")).path))
    for _ in range(count):
        attempt = _attempt(store)
        operation = Append((_data_file(store, attempt.attempt, data),))
        finish_attempt(store, attempt, Transaction(1, attempt.identity, operation), rows=1, bytes=len(data))
    yield _timed(f"collection beside {count:,} staged", lambda: collect_garbage(store))
    for _ in range(count):
        _data_file(store, _attempt(store, lease_seconds=0).attempt, data)
    yield _timed(f"collection of {count:,} dead attempts beside them", lambda: collect_garbage(store))


def abort(folder: Path, *, files: int) -> Timing:
    """Of an attempt that finished: what it costs does not depend on the files of others."""
    uri = folder / "abort.lance"
    lance.write_dataset(_rows(0, 1), str(uri))
    store = LocalStore(uri)
    for _ in range(files):
        _data_file(store, naming.new_attempt(), b"x")
    attempt = _attempt(store)
    operation = Append((_data_file(store, attempt.attempt, b"x"),))
    finish_attempt(store, attempt, Transaction(1, attempt.identity, operation), rows=1, bytes=1)
    return _timed(f"abort beside {files:,} data files", lambda: abort_attempt(store, attempt.identity, attempt.attempt))


def _timed(title: str, action: Callable[[], object]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return title, time.perf_counter() - wall, time.process_time() - cpu


def measure(folder: Path, *, scale: float, which: frozenset[str]) -> Iterator[Timing]:
    """Title, seconds and seconds of CPU of each."""
    if "deletes" in which:
        yield deletes(folder, fragments=int(10_000 * scale), count=int(100 * scale), versions=10)
    if "collection" in which:
        yield from collection(folder, count=int(10_000 * scale))
    if "abort" in which:
        yield abort(folder, files=int(100_000 * scale))


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", default=["deletes", "collection", "abort"])
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    print("| operation | s | CPU s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for title, wall, cpu in measure(Path(folder), scale=given.scale, which=frozenset(given.which)):
            print(f"| {title} | {wall:.2f} | {cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
