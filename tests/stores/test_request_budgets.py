"""Requests are a budget: how many go over the wire for each operation, how many of them in a row, and with how many bytes.

They are counted at the repository's own server, which answers 40 ms late, so that what waits for what is seen in the depth.
Requests and bytes do not depend on the machine. Depth grows a little when threads of a busy machine start late, so its
bounds leave room for that; what is read one after the other is beyond them by far.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from bench.object_client import RunningServer, Traffic, object_server
from lance_core.commit import naming
from lance_core.format.version import FileVersion
from lance_core.io.pool import io_pool
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.write_fragments import make_work
from lance_core.jobs.runtime.lifecycle import look_at, open_attempt
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage

FRAGMENTS, ROWS = 40, 500
VERSIONS = ["0.1", "2.0", "2.1", "2.2", "2.3"]
LATENCY_MS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


def rows(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count)
    return pa.table({"id": ids, "x": ids * 0.5, "s": [f"text {number}" for number in ids]})


@dataclass(frozen=True)
class Table:
    server: RunningServer
    uri: str

    def open(self) -> Any:
        return lance_core.dataset(self.uri, storage_options=self.server.options)

    def watch(self, action: Callable[[], Any]) -> Traffic:
        """What an action sends when nothing is remembered and every answer is late."""
        return self.server.traffic_of(action, latency_ms=LATENCY_MS)


def new_table(server: RunningServer, *, version: str = "2.1", fragments: int = FRAGMENTS, num_rows: int = ROWS) -> Table:
    uri = f"s3://b{uuid.uuid4().hex}/t"
    data = rows(0, fragments * num_rows)
    options = {"storage_options": server.options, "data_storage_version": version}
    lance_core.write_dataset(data, uri, max_rows_per_file=num_rows, **options)
    return Table(server, uri)


@pytest.fixture(scope="module", params=VERSIONS)
def table(server: RunningServer, request: pytest.FixtureRequest) -> Table:
    """A table that is read only, per version of the format."""
    return new_table(server, version=request.param)


def budget(seen: Traffic, *, requests: int, depth: int, megabytes: float | None = None) -> None:
    assert seen.requests <= requests, str(seen)
    assert seen.depth <= depth, str(seen)
    assert seen.operations["HEAD"] == 0, str(seen)
    if megabytes is not None:
        assert seen.num_bytes <= megabytes * 1e6, str(seen)


def test_open(table: Table) -> None:
    budget(table.watch(table.open), requests=2, depth=2)


def test_open_and_count(table: Table) -> None:
    budget(table.watch(lambda: table.open().count_rows()), requests=2, depth=2)


def test_take_of_every_fragment(table: Table) -> None:
    handle = table.open()
    wanted = [*range(0, FRAGMENTS * ROWS, ROWS)]
    seen = table.watch(lambda: handle.take(wanted))
    budget(seen, requests=FRAGMENTS, depth=12)
    assert seen.width >= 6
    assert handle.take(wanted)["id"].to_pylist() == wanted


def test_batches(table: Table) -> None:
    found = []
    seen = table.watch(lambda: found.extend(table.open().to_batches()))
    budget(seen, requests=2 + FRAGMENTS, depth=14)
    assert pa.Table.from_batches(found)["id"].to_pylist() == [*range(FRAGMENTS * ROWS)]


def test_whole_table(table: Table) -> None:
    budget(table.watch(lambda: table.open().to_table()), requests=2 + FRAGMENTS, depth=14)


def test_count_with_a_filter(table: Table) -> None:
    budget(table.watch(lambda: table.open().count_rows("id % 7 = 0")), requests=2 + FRAGMENTS, depth=14)


def test_first_rows_read_no_further_than_they_must(table: Table) -> None:
    budget(table.watch(lambda: table.open().head(5)), requests=2 + 1, depth=3)


def test_columns_of_large_fragments_are_read_alone(server: RunningServer) -> None:
    large = new_table(server, fragments=4, num_rows=50_000)
    handle = large.open()
    one = large.watch(lambda: handle.to_table(columns=["x"]))
    budget(one, requests=4 * 2, depth=5, megabytes=4 * 0.47 + 0.3)
    few = large.watch(lambda: large.open().take([5, 60_000, 120_000, 199_999], columns=["id", "x"]))
    budget(few, requests=2 + 4 * 5, depth=8, megabytes=1.2)


@pytest.mark.parametrize("version", VERSIONS)
def test_small_files_that_are_wanted_whole_are_one_request_each(server: RunningServer, version: str) -> None:
    files, num_rows = 6, 20_000
    table = new_table(server, version=version, fragments=files, num_rows=num_rows)
    handle, found = table.open(), []
    every = pa.table(rows(0, files * num_rows).to_pydict())
    assert min(file.file_size_bytes for item in handle.get_fragments() for file in item.metadata.files) > 64 << 10
    for _ in range(2):  # what was read is not held: a second look costs the same
        budget(table.watch(lambda: found.append(handle.to_table())), requests=files, depth=3)
    assert all(item.equals(every) for item in found)
    budget(table.watch(lambda: table.open().to_table(columns=["x"])), requests=2 + 2 * files + 1, depth=7)
    handle.delete("id = 20007 or id = 0")
    seen = table.watch(lambda: table.open().optimize.compact_files(materialize_deletions_threshold=0.0))
    # Opening, the files and two deletion files; the new file, the commit of the ids, that of the rows.
    budget(seen, requests=2 + files + 2 + 1 + 4 + 5, depth=17)
    left = [*range(1, 20_007), *range(20_008, files * num_rows)]
    assert table.open().to_table()["id"].to_pylist() == left


def test_append(server: RunningServer) -> None:
    table = new_table(server, fragments=2)
    options = {"mode": "append", "storage_options": server.options}
    seen = table.watch(lambda: lance_core.write_dataset(rows(0, 10), table.uri, **options))
    # Opening, the data file, a look for the newest version beside the transaction, the manifest, a look at what became
    # of it beside the hint.
    budget(seen, requests=8, depth=6)


def test_delete(server: RunningServer) -> None:
    table = new_table(server)
    seen = table.watch(lambda: table.open().delete("id = 777"))
    # The deletion file, a look for the newest version beside the transaction, the manifest, a look at what became of it.
    budget(seen, requests=2 + FRAGMENTS + 5, depth=16)
    assert [item["operation"] for item in seen.seen if "/_versions/" in item["key"]] == ["GET", "PUT-IF-ABSENT"], str(seen)


def test_merge(server: RunningServer) -> None:
    table = new_table(server)
    source = pa.table({"id": [7, -1], "x": [0.25, 0.5], "s": ["seven", "new"]})
    seen = table.watch(
        lambda: table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
    )
    budget(seen, requests=2 + FRAGMENTS + 6, depth=17)
    assert [item["operation"] for item in seen.seen if "/_versions/" in item["key"]] == ["GET", "PUT-IF-ABSENT"], str(seen)


def test_upload_of_large_files_is_wide(server: RunningServer) -> None:
    uri = f"s3://b{uuid.uuid4().hex}/t"
    rng = np.random.default_rng(0)
    data = pa.table({f"c{number}": rng.normal(size=2_000_000) for number in range(4)})
    table = Table(server, uri)
    lance_core.write_dataset(data.slice(0, 10), uri, storage_options=server.options)  # the bucket is known from here on
    seen = table.watch(lambda: lance_core.write_dataset(data, uri, mode="overwrite", storage_options=server.options))
    parts = seen.operations["PART"]
    assert parts in (6, 7)
    assert seen.requests <= parts + 2 + 10
    assert seen.num_bytes <= 65e6


def test_cleanup_reads_each_manifest_once_and_deletes_in_bulk(server: RunningServer) -> None:
    table = new_table(server, fragments=1)
    versions = 70
    for number in range(versions):
        lance_core.write_dataset(rows(number, 1), table.uri, mode="append", storage_options=server.options)
    handle = table.open()
    seen = table.watch(lambda: handle.cleanup_old_versions(older_than=dt.timedelta(0)))
    manifests = [item["key"] for item in seen.seen if item["operation"] == "GET" and item["key"].endswith(".manifest")]
    # The newest one is looked at first, once more with the others, and as the one that shows which table it is.
    assert len(manifests) - len(set(manifests)) <= 2
    assert len(set(manifests)) == versions + 1
    assert seen.operations["DELETE-MANY"] + seen.operations["DELETE"] <= 3
    budget(seen, requests=versions + 1 + 35, depth=34)
    assert handle.to_table().num_rows == ROWS + versions
    assert [entry["version"] for entry in table.open().versions()] == [versions + 1]


def test_tags_are_read_at_once(server: RunningServer) -> None:
    table = new_table(server, fragments=1)
    handle = table.open()
    for number in range(30):
        handle.tags.create(f"t{number}", 1)
    budget(table.watch(lambda: table.open().tags.list()), requests=2 + 1 + 30, depth=7)


def test_garbage_of_dead_attempts_goes_in_bulk(server: RunningServer) -> None:
    table = new_table(server, fragments=1)
    store = resolve_store(table.uri, server.options)
    dead = 20
    for _ in range(dead):
        spec = AppendSpec(uri=table.uri, source=SourceSpec(callable="nobody:runs"), identity=random_identity())
        attempt = open_attempt(spec, look_at(store, spec))
        store.put(naming.data_path(naming.data_file_name(attempt.attempt)), b"unfinished")
    reports = []
    later = time.time() + 24 * 3600
    seen = table.watch(lambda: reports.append(collect_garbage(store, now=later)))
    assert (len(reports[0].attempts), len(reports[0].files)) == (dead, dead)
    assert seen.requests <= 12 * dead + 40 and seen.depth <= 60, str(seen)
    assert seen.operations["DELETE-MANY"] + seen.operations["DELETE"] <= 6
    # Their records show for a week more what suspended writers of theirs may still write.
    assert len(store.list_names(f"{naming.STAGED}/")) == dead
    collect_garbage(store, now=later + 9 * 24 * 3600)
    assert store.list_names(f"{naming.STAGED}/") == []
    assert table.open().count_rows() == ROWS


def test_a_task_of_a_job_keeps_its_books_in_two_requests(server: RunningServer) -> None:
    table = new_table(server, fragments=1)
    store = resolve_store(table.uri, server.options)
    spec = AppendSpec(
        uri=table.uri,
        source=SourceSpec(callable="nobody:runs"),
        identity=random_identity(),
        storage_options=server.options,
    )
    state = look_at(store, spec)
    assert state.manifest is not None
    attempt = open_attempt(spec, state)
    data = rows(0, 10)
    work = make_work(spec, attempt, schema=state.manifest.schema, target=data.schema, version=FileVersion.V2_1)
    seen = table.watch(lambda: work(0, "17", iter(data.to_batches())))
    # A note of the start, the data, the identity's first decision: what else there is to say is in the task's result.
    assert seen.operations == {"PUT": 2, "GET": 1}, str(seen)
    assert seen.depth == 3, str(seen)
    assert len(list(store.list("data/"))) == 2
    abort_attempt(store, attempt.identity, attempt.attempt)
    work(0, "18", iter(data.to_batches()))
    assert len(list(store.list("data/"))) == 1  # a task that outlived its attempt takes its file away again


def test_newest_version_of_a_long_history_is_on_the_first_page(server: RunningServer) -> None:
    table = new_table(server, fragments=1)
    # Names alone count here: the versions before are not looked at.
    for number in range(1, 4):
        lance_core.write_dataset(rows(number, 1), table.uri, mode="append", storage_options=server.options)
    store = resolve_store(table.uri, server.options)
    newest = bytes(store.get(naming.manifest_path(4)))
    store.put(naming.manifest_path(5000), newest)
    list(io_pool("").map(lambda number: store.put(naming.manifest_path(number), b""), range(2500, 4900)))
    with server.watch() as seen, pytest.raises(lance_core.errors.LanceError):
        lance_core.dataset(table.uri, version=None, storage_options=server.options).checkout_version(4999)
    opened = [item for item in seen.seen if item["operation"] == "GET"]
    assert opened[0]["key"].endswith(naming.manifest_path(5000))
    assert [item["operation"] for item in seen.seen][:3] == ["LIST", "LIST", "GET"]


@pytest.mark.slow
def test_no_operation_sends_more_than_the_official_library() -> None:
    from bench.far import make_tables, measure, operations

    with object_server() as running:
        make_tables(running, 2_000, 30)
        wanted = [*operations(2_000, 30)]
        found = measure(running, wanted, latency_ms=30, megabytes_per_second=50, repeat=1)
    for title, runs in found.items():
        ours, theirs = runs["lance_core"][0], runs["official"][0]
        assert ours.requests <= theirs.requests + 3, (title, str(ours), str(theirs))
        assert ours.num_bytes <= theirs.num_bytes * 1.2 + 50_000, (title, str(ours), str(theirs))
        assert ours.depth <= theirs.depth * 2 + 4, (title, str(ours), str(theirs))
