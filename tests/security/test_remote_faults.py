"""An object store that refuses, throttles, or does not answer, at each request of each verb, through both engines."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from bench.object_client import RunningServer, object_server
from lance_core.errors import LanceError, StoreError, StoreRefusedError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage

Options = Mapping[str, str]
ROWS = pa.table({"id": range(100, 110), "s": [f"n{number}" for number in range(10)]})
FAULTS: dict[str, dict[str, Any]] = {
    "refused from then on": {"status": 403, "code": "AccessDenied", "times": -1},
    "quota from then on": {"status": 507, "code": "QuotaExceeded", "times": -1},
    "throttled once": {"status": 503, "code": "SlowDown", "times": 1},
    "failing from then on": {"status": 500, "code": "InternalError", "times": -1},
    "no answer once": {"status": 0, "times": 1},
    "no answer from then on": {"status": 0, "times": -1},
    "done without an answer": {"status": 0, "times": 1, "after": True},
}
REFUSALS = ("refused from then on", "quota from then on")


def _open(uri: str, options: Options) -> Any:
    return lance_core.dataset(uri, storage_options=dict(options))


def _stage(uri: str, options: Options) -> object:
    staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 9", storage_options=options))
    return run_job(CommitSpec.of([staged], uri=uri, storage_options=options))


VERBS: dict[str, Callable[[str, Options], object]] = {
    "read": lambda uri, options: _open(uri, options).to_table(filter="id < 5"),
    "append": lambda uri, options: lance_core.write_dataset(ROWS, uri, mode="append", storage_options=dict(options)),
    "overwrite": lambda uri, options: lance_core.write_dataset(ROWS, uri, mode="overwrite", storage_options=dict(options)),
    "delete": lambda uri, options: _open(uri, options).delete("id < 5"),
    "update": lambda uri, options: _open(uri, options).update({"s": "'new'"}, where="id = 3"),
    "merge": lambda uri, options: _open(uri, options).merge_insert("id").when_not_matched_insert_all().execute(ROWS),
    "compact": lambda uri, options: _open(uri, options).optimize.compact_files(),
    "index": lambda uri, options: _open(uri, options).create_scalar_index("s", "BTREE", replace=True),
    "add columns": lambda uri, options: _open(uri, options).add_columns({"t": "id + 1"}),
    "tag": lambda uri, options: _open(uri, options).tags.create("x", 1),
    "branch": lambda uri, options: _open(uri, options).create_branch("side"),
    "job": _stage,
}


@dataclass(frozen=True)
class Place:
    """A server with one good table, and what is in it."""

    server: RunningServer
    good: str
    rows: list[Any]

    def options(self, engine: str) -> dict[str, str]:
        return {**self.server.options, "store_engine": engine, "client_max_retries": "1", "client_retry_timeout": "2"}

    def copy(self) -> str:
        uri = f"{self.good}-{uuid.uuid4().hex}"
        self.server.copy(self.good, uri)
        return uri


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with object_server() as server:
        good = "s3://faults/t"
        rows = pa.table({"id": range(20), "s": [f"row {number}" for number in range(20)]})
        lance_core.write_dataset(rows, good, max_rows_per_file=5, storage_options=server.options)
        yield Place(server, good, rows.to_pylist())


def _num_requests(place: Place, verb: str, engine: str) -> int:
    uri = place.copy()
    with place.server.watch() as seen:
        VERBS[verb](uri, place.options(engine))
    return seen.requests


def _names(place: Place, uri: str) -> set[str]:
    return {entry.path for entry in resolve_store(uri, place.server.options).list("")}


def _check(place: Place, verb: str, engine: str, fault: str, at: int) -> None:
    uri, options, where = place.copy(), place.options(engine), (verb, engine, fault, at)
    before = _names(place, uri)
    place.server.fail({"operation": "", "contains": uri.removeprefix("s3://"), "skip": at, **FAULTS[fault]})
    failed = None
    try:
        VERBS[verb](uri, options)
    except LanceError as error:
        failed = error
    finally:
        place.server.fail()
    ds = _open(uri, place.server.options)
    ds.validate()
    if failed is None:
        return
    if fault in REFUSALS and isinstance(failed, StoreError):
        assert isinstance(failed, StoreRefusedError), (where, failed)
        assert not failed.retryable
    if ds.version > 1:
        return  # it had landed when the answer was lost
    assert ds.to_table().to_pylist() == place.rows, where
    if verb == "job" and _is_staged(place, uri):
        # Staged work is no garbage: a commit that comes later publishes it.
        run_job(CommitSpec(uri=uri, storage_options=place.server.options))
        ds = _open(uri, place.server.options)
        assert ds.to_table().to_pylist() == [row for row in place.rows if row["id"] != 9], where
        return
    _sweep(place, uri)
    left = {name for name in _names(place, uri) - before if not name.startswith(("_lance_core/", "_refs/", "tree/"))}
    assert not left, (where, left)


def _is_staged(place: Place, uri: str) -> bool:
    return any(entry.state == "finished" for entry in list_staged(resolve_store(uri, place.server.options)))


def _sweep(place: Place, uri: str) -> None:
    """What maintenance does: garbage of jobs first, then files that nothing refers to."""
    collect_garbage(resolve_store(uri, place.server.options), now=4e9)
    lance_core.dataset(uri, storage_options=place.server.options).cleanup_old_versions(
        retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False
    )


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("verb", ["append", "delete", "job"])
def test_a_store_that_refuses_or_fails_leaves_the_table_as_it_was(place: Place, verb: str, engine: str) -> None:
    total = _num_requests(place, verb, engine)
    assert total > 3
    for at, fault in [(total // 2, "refused from then on"), (total - 1, "done without an answer")]:
        _check(place, verb, engine, fault, at)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_request_of_every_verb_may_fail(place: Place, verb: str, fault: str, engine: str) -> None:
    for at in range(_num_requests(place, verb, engine)):
        _check(place, verb, engine, fault, at)
