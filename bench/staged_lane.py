"""The staged commit lane on an object store that is far: `python -m bench.staged_lane --latency-ms 30`.

Requests, depth (the longest chain of requests one after the other) and time of a commit of 1, 100 and 1,000 staged appends,
of an abort, and of a collection, as the server counts them.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

import lance_core
from bench.object_client import RunningServer, Traffic, object_server
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.secret import Secret, as_secret
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.model import StagedTransaction


def rows(start: int = 0, count: int = 3) -> pa.Table:
    """What each staged append adds."""
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


class Lane:
    """A table of a few versions on the server, and what is staged for it."""

    def __init__(self, server: RunningServer, *, versions: int = 3) -> None:
        self.server = server
        self.uri = f"s3://b{uuid.uuid4().hex}/t"
        for number in range(versions):
            place = lance_core.write_dataset if number == 0 else partial(lance_core.write_dataset, mode="append")
            place(rows(number), self.uri, storage_options=server.options)

    def stage(self, count: int) -> list[StagedTransaction]:
        """So many appends of one mapped task, each of one small file."""
        found, run_id = [], uuid.uuid4().hex
        for number in range(count):
            source = SourceSpec(callable="bench.staged_lane:rows", kwargs={"start": 1000 + 10 * number})
            identity = make_identity(self.uri, dag_id="lane", run_id=run_id, task_id="stage", map_index=number)
            spec = AppendSpec(uri=self.uri, source=source, identity=identity, storage_options=self.options)
            staged = run_job(spec)
            assert isinstance(staged, StagedTransaction)
            found.append(staged)
        return found

    @property
    def options(self) -> Mapping[str, Secret]:
        """Storage options of the server."""
        return {name: as_secret(text, where="bench") for name, text in self.server.options.items()}

    def commit(self, refs: list[StagedTransaction]) -> None:
        """One commit task."""
        run_job(CommitSpec.of(refs, uri=self.uri, storage_options=self.options))

    def watch(self, action: Callable[[], object], *, latency_ms: float) -> Traffic:
        """What an action sends when every answer is late and nothing is remembered."""
        return self.server.traffic_of(action, latency_ms=latency_ms)


def measure(server: RunningServer, *, latency_ms: float, counts: tuple[int, ...] = (1, 100, 1000)) -> dict[str, Traffic]:
    """Traffic by what was done."""
    found = {}
    for count in counts:
        lane = Lane(server)
        commit = partial(lane.commit, lane.stage(count))
        found[f"commit of {count:,} staged appends"] = lane.watch(commit, latency_ms=latency_ms)
    lane = Lane(server)
    (ref,) = lane.stage(1)
    store = resolve_store(lane.uri, server.options)
    found["abort of one"] = lane.watch(lambda: abort_attempt(store, ref.identity, ref.attempt), latency_ms=latency_ms)
    lane.stage(20)
    found["collection beside 20 staged"] = lane.watch(lambda: collect_garbage(store), latency_ms=latency_ms)
    return found


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--counts", type=int, nargs="*", default=[1, 100, 1000])
    parser.add_argument("--calls", action="store_true", help="print each request of the commit of one")
    given = parser.parse_args()
    with object_server() as server:
        measure(server, latency_ms=0, counts=(1,))  # imports what is imported late
        print("| operation | requests | depth | ms |\n|---|---|---|---|")
        for title, seen in measure(server, latency_ms=given.latency_ms, counts=tuple(given.counts)).items():
            print(f"| {title} | {seen.requests:,} | {seen.depth} | {seen.seconds * 1000:,.0f} |")
            if given.calls and " 1 staged" in title:
                for item in seen.seen:
                    print("   ", item["operation"], item.get("key") or item)


if __name__ == "__main__":
    main()
