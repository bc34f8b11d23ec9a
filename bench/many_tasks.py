"""The end of a write job of very many tasks, without Spark: what the driver does once all of them have reported.

::

    python -m bench.many_tasks --tasks 100000 --latency-ms 30

Every task leaves a note on the store and hands one fragment to the driver, which reconciles the counts, looks for tasks
that began in vain, stages the transaction, and takes the notes away. A commit of what was staged follows with `--commit`.
"""

from __future__ import annotations

import argparse
import resource
import uuid
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

import lance_core
from bench.object_client import RunningServer, Traffic, object_server
from lance_core.commit import naming
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.lifecycle import close_attempt, look_at, open_attempt
from lance_core.jobs.runtime.progress import PROGRESS
from lance_core.jobs.runtime.protocols import StagedOperation, TaskResult
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.publish.commit import commit_staged
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.table.operations.append import Append
from lance_core.wire.fragments import decode_fragment, encode_fragment

_ROWS = 1000


def begin(server: RunningServer, num_tasks: int, *, losers: int = 0) -> tuple[Store, Attempt, list[TaskResult]]:
    """A table, and an attempt whose tasks have all ended; `losers` of them began once more in vain."""
    uri = f"s3://b{uuid.uuid4().hex}/t"
    options: Mapping[str, str] = server.options
    lance_core.write_dataset(pa.table({"a": [1]}), uri, storage_options=dict(options))
    store = resolve_store(uri, options)
    spec = AppendSpec(uri=uri, source=SourceSpec(callable="bench.many_tasks:begin"), identity=random_identity())
    table = look_at(store, spec)
    attempt = open_attempt(spec, table)
    assert table.manifest is not None
    template = table.manifest.fragments[0].files[0]
    results = [_result(number, attempt, template) for number in range(num_tasks)]
    folder = f"{PROGRESS}/{attempt.attempt}"
    again = range(num_tasks, num_tasks + losers)
    notes = [f"{number:05d}.{number}.1.0.0.0" for number in range(num_tasks)]
    notes += [f"{number - num_tasks:05d}.{number}.1.0.0.0" for number in again]
    server.put_objects(uri, [f"{folder}/{note}" for note in notes])
    server.put_objects(uri, [naming.data_path(decode_fragment(item.fragments[0]).files[0].path) for item in results], "x")
    return store, attempt, results


def _result(number: int, attempt: Attempt, template: DataFile) -> TaskResult:
    file = replace(template, path=naming.data_file_name(attempt.attempt), file_size_bytes=1)
    fragment = encode_fragment(Fragment(id=0, files=(file,), physical_rows=_ROWS))
    return TaskResult(number, str(number), _ROWS, _ROWS, 1, (fragment,))


def end(store: Store, attempt: Attempt, results: list[TaskResult]) -> StagedTransaction:
    """What the driver does when all tasks have reported."""

    def conclude(found: object) -> StagedOperation:
        fragments = tuple(decode_fragment(data) for item in results for data in item.fragments)
        return StagedOperation(Append(fragments), _ROWS * len(fragments), len(fragments))

    return close_attempt(store, attempt, results, conclude=conclude, properties={})


def main() -> None:
    """Run the driver's end and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--commit", action="store_true")
    given = parser.parse_args()
    with object_server() as server:
        store, attempt, results = begin(server, given.tasks)
        server.set_speed(latency_ms=given.latency_ms, megabytes_per_second=50)
        with server.watch() as seen:
            staged = end(store, attempt, results)
        _say("end of the job", given.tasks, seen)
        if given.commit:
            with server.watch() as seen:
                commit_staged(store, [staged])
            _say("commit", given.tasks, seen)


def _say(what: str, num_tasks: int, seen: Traffic) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what} of {num_tasks:,} tasks: {seen.seconds:.1f} s, {seen}, peak {peak:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
