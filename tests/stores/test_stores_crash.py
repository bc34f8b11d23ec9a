"""Every verb, killed before, during and after every call to the store: the table opens as it was or as it should become.

After each kill: the newest version is the old or the new one and validates, a cleanup leaves exactly the files that versions
refer to, and the same verb, done again, arrives. The same for a signal at each call, whose handler ends the verb while the
store lives on, so that everything that tidies up behind an error runs.
"""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    MemoryShortageError,
    RetryableConflictError,
)
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store, StoreEntry
from lance_core.publish.collect import collect_garbage
from tests.dataset.exact_storage import missing, strangers
from tests.io.faulty_stores import FaultyStore

WHEN = ("before", "during", "after")
_LATER = 30 * 86_400


class Killed(BaseException):
    """The process dies: nobody catches this."""


class Leaky(MemoryStore):
    """A memory store that shows unfinished writes as a file system does."""

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        return (entry for entry in super().list(prefix) if not entry.path.endswith(".unfinished"))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        return (entry for entry in super().list(prefix) if entry.path.endswith(".unfinished"))

    def child(self, path: str) -> Leaky:
        return Leaky(self._name, folder=f"{self._folder}{path.rstrip('/')}")


class Dying(FaultyStore):
    """Dies at one call and does nothing from then on. "during": half of what was written stays, unfinished."""

    def __init__(self, inner: Store, *, fail_at: int, when: str, shared: Dying | None = None) -> None:
        super().__init__(inner, fail_at=fail_at, when="after" if when == "after" else "before", forever=True, error=Killed,
                         shared=shared)  # fmt: skip
        self._during = when == "during"

    def _around(self, inner: Store) -> Dying:
        shared = self._shared
        return Dying(inner, fail_at=self._fail_at, when="during" if self._during else self._when, shared=shared)  # type: ignore[arg-type]

    def _call(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        if self._during and self.num_calls + 1 == self._fail_at and name in ("put", "put_if_absent", "write", "close"):
            folder, _, last = path.rpartition("/")
            self.inner.put(f"{folder}/.{last}.0123abcd.unfinished", b"half of it")
        if self._fail_at and self._when == "after" and self.num_calls >= self._fail_at:
            raise Killed(f"{name} after the end")  # a dead process does no more calls
        return super()._call(name, path, action)


class Stopped(BaseException):
    """What the handler of a signal raises."""


class Stopping(FaultyStore):
    """At one call the process gets SIGTERM, whichever thread makes the call; everything goes on to work."""

    def __init__(self, inner: Store, *, fail_at: int, when: str, shared: Stopping | None = None) -> None:
        super().__init__(inner, fail_at=fail_at, when="after" if when == "after" else "before", shared=shared)

    def _around(self, inner: Store) -> Stopping:
        return Stopping(inner, fail_at=self._fail_at, when=self._when, shared=self._shared)  # type: ignore[arg-type]

    def _call(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        stops = self._count(name, path)
        if stops and self._when == "before":
            signal.raise_signal(signal.SIGTERM)
        result = action()
        if stops and self._when == "after":
            signal.raise_signal(signal.SIGTERM)
        return result


def _stop(*_: object) -> None:
    raise Stopped


def _source(*keys: int) -> pa.Table:
    return pa.table({"id": [*keys], "s": [f"n{key}" for key in keys], "x": [key * 10 for key in keys]})


def _index(ds: LanceDataset) -> None:
    ds.create_scalar_index("x", "BTREE", replace=True)


def _merge(ds: LanceDataset) -> None:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.when_not_matched_by_source_delete("id = 1").execute(_source(3, 4, 50))


def _batch(ds: LanceDataset) -> None:
    LanceDataset.commit_batch(ds, [ds.uncommitted.insert(_source(number)) for number in (70, 71)])


def _upkeep(ds: LanceDataset) -> None:
    ds.optimize.optimize_indices()


VERBS: dict[str, Callable[[LanceDataset], Any]] = {
    "append": lambda ds: ds.insert(_source(20, 21)),
    "overwrite": lambda ds: ds.insert(_source(30), mode="overwrite"),
    "delete": lambda ds: ds.delete("id IN (1, 5)"),
    "delete a fragment": lambda ds: ds.delete("id < 4"),
    "update": lambda ds: ds.update({"x": "x + 1"}, where="id % 2 = 0"),
    "merge_insert": _merge,
    "replace_where": lambda ds: ds.replace_where("id >= 6", _source(6, 60)),
    "truncate": lambda ds: ds.truncate_table(),
    "add column": lambda ds: ds.add_columns({"y": "x * 2"}),
    "add null column": lambda ds: ds.add_columns(pa.field("z", pa.int64())),
    "rename": lambda ds: ds.alter_columns({"path": "s", "name": "t"}),
    "retype": lambda ds: ds.alter_columns({"path": "x", "data_type": pa.int32()}),
    "drop column": lambda ds: ds.drop_columns(["s"]),
    "merge": lambda ds: ds.merge(pa.table({"id": [1, 2], "m": [7, 8]}), "id"),
    "add rows' columns": lambda ds: ds.add_columns(pa.table({"r": [*range(ds.count_rows())]})),
    "compact": lambda ds: ds.optimize.compact_files(),
    "compact, deferred": lambda ds: ds.optimize.compact_files(defer_index_remap=True),
    "copy pages": lambda ds: ds.optimize.compact_files(
        compaction_mode="try_binary_copy", excluded_fragment_ids=[0], target_rows_per_fragment=9
    ),
    "index": _index,
    "optimize indices": _upkeep,
    "drop index": lambda ds: ds.drop_index("x_idx"),
    "full text index": lambda ds: ds.create_scalar_index("s", "INVERTED"),
    "restore": lambda ds: ds.checkout_version(1).restore(),
    "config": lambda ds: ds.update_config({"k": "v2"}),
    "metadata": lambda ds: ds.update_metadata({"m": "n"}),
    "tag": lambda ds: ds.tags.create("new", 2),
    "move tag": lambda ds: ds.tags.update("old", 2),
    "untag": lambda ds: ds.tags.delete("old"),
    "branch": lambda ds: ds.create_branch("b2"),
    "bases": lambda ds: ds.add_bases([lance_core.DatasetBasePath("memory://elsewhere/b", "one")]),
    "field metadata": lambda ds: ds.update_field_metadata({"x": {"unit": "m"}}),
    "batch": _batch,
    "cleanup": lambda ds: ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False),
}


def _empty(name: str) -> None:
    """Free the memory of a root: there are thousands of them in a run."""
    store = MemoryStore(name)
    for entry in [*store.list("")]:
        store.delete(entry.path)


class Template:
    """A table with deletions, an index, a tag, config and four versions, as bytes to begin from again and again."""

    def __init__(self) -> None:
        name = uuid.uuid4().hex
        ds = lance_core.write_dataset(_source(*range(1, 9)), f"memory://{name}/t", max_rows_per_file=3)
        _index(ds)
        ds = LanceDataset(f"memory://{name}/t")
        ds.delete("id = 2")
        ds.insert(_source(9))
        ds.update_config({"k": "v1"})
        ds.tags.create("old", 1)
        store = MemoryStore(name)
        self._objects = {entry.path: bytes(store.get(entry.path)) for entry in store.list("")}
        _empty(name)

    def begin(self) -> tuple[str, Leaky]:
        """A fresh copy: the name of its memory root, and its store."""
        name = uuid.uuid4().hex
        store = Leaky(name)
        for path, data in self._objects.items():
            store.put(path, data)
        return name, store.child("t")


@pytest.fixture(scope="module")
def template() -> Template:
    return Template()


def handle_on(store: Store) -> LanceDataset:
    return LanceDataset.from_snapshot(snapshot_of(store))


def facts(store: Store) -> dict[str, Any]:
    """All that a user sees of a table."""
    ds = handle_on(store)
    ds.validate()
    table = ds.to_table()
    return {
        "schema": str(table.schema.remove_metadata()),
        "rows": sorted(map(str, table.to_pylist())),
        "config": dict(ds.snapshot.manifest.config),
        "metadata": dict(ds.snapshot.manifest.table_metadata),
        "indices": sorted({index.name for index in ds.snapshot.manifest.indices}),
        "bases": sorted(base.path for base in ds.base_paths().values()),
        "fields": [(item.name, dict(item.metadata)) for item in ds.lance_schema.fields],
        "tags": {name: tag["version"] for name, tag in ds.tags.list().items()},
        "branches": [*ds.branches.list()],
    }


def attempt(template: Template, verb: str, *, fail_at: int, when: str, kind: type[Dying | Stopping] = Dying) -> int:
    """Kill or stop the verb at one call and look at what is there. The number of calls the verb made."""
    name, store = template.begin()
    old = facts(store)
    dying = kind(store, fail_at=fail_at, when=when)
    where = f"{verb}, {kind.__name__.lower()} {when} call {fail_at}"
    try:
        handle = handle_on(dying)
        VERBS[verb](handle)
    except (Killed, Stopped):
        pass
    calls = dying.num_calls
    found = facts(store)
    if fail_at == 0:
        template.__dict__.setdefault("new", {})[verb] = found
    new = template.__dict__["new"][verb]
    assert found in (old, new), f"{where}: {dying.log[-3:]}"
    tidy(store)
    assert missing(store) == [], where
    assert strangers(store) == [], where
    assert facts(store) == found, where
    if found == old:
        VERBS[verb](handle_on(store))
        assert facts(store) == new, f"{where}, and done again"
    _empty(name)
    return calls


def tidy(store: Store) -> None:
    """What a user does some days later."""
    later = time.time() + _LATER
    collect_garbage(store, now=later)
    run_cleanup(store, plan_cleanup(store, retain_versions=10**6, delete_unverified=True, now=later))


@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_some_calls(template: Template, verb: str) -> None:
    calls = attempt(template, verb, fail_at=0, when="before")
    # The end is where things are published: every call there, a few of the reads before it.
    chosen = sorted({*range(max(1, calls - 4), calls + 1), max(1, calls // 2)})
    for number, fail_at in enumerate(chosen):
        attempt(template, verb, fail_at=fail_at, when=WHEN[number % 3])


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_every_call(template: Template, verb: str) -> None:
    calls = attempt(template, verb, fail_at=0, when="before")
    for fail_at in range(1, calls + 1):
        for when in WHEN:
            attempt(template, verb, fail_at=fail_at, when=when)


@pytest.fixture
def stopping() -> Iterator[None]:
    """SIGTERM raises `Stopped` in the main thread, as the handlers of tasks and jobs raise."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are seen by the main thread only")
    before = signal.signal(signal.SIGTERM, _stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("stopping")
@pytest.mark.parametrize("verb", VERBS)
def test_stopped_at_some_calls(template: Template, verb: str) -> None:
    calls = attempt(template, verb, fail_at=0, when="before", kind=Stopping)
    for number, fail_at in enumerate(sorted({*range(max(1, calls - 4), calls + 1), max(1, calls // 2)})):
        attempt(template, verb, fail_at=fail_at, when=("before", "after")[number % 2], kind=Stopping)


@pytest.mark.slow
@pytest.mark.usefixtures("stopping")
@pytest.mark.parametrize("verb", VERBS)
def test_stopped_at_every_call(template: Template, verb: str) -> None:
    calls = attempt(template, verb, fail_at=0, when="before", kind=Stopping)
    for fail_at in range(1, calls + 1):
        for when in ("before", "after"):
            attempt(template, verb, fail_at=fail_at, when=when, kind=Stopping)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        *(("put_if_absent", error) for error in (MemoryError, MemoryShortageError, ZeroDivisionError)),
        *(("a look behind it", error) for error in (MemoryError, MemoryShortageError, CorruptFileError)),
    ],
)
@pytest.mark.parametrize("verb", ["append", "overwrite", "delete", "index", "compact"])
def test_what_fails_behind_the_put_takes_nothing_back(template: Template, verb: str, call: str, error: type) -> None:
    """The files of a version that is there were removed, where anything but the store failed behind its put."""
    name, store = template.begin()
    old = handle_on(store).version
    put: list[str] = []

    def matches(called: str, path: str) -> bool:
        is_put = called == "put_if_absent" and path.startswith("_versions/")
        is_look = bool(put) and called.startswith(("get", "list", "names", "missing", "not_listed", "first"))
        put.extend([path] * is_put)
        return is_put if call == "put_if_absent" else is_look

    faulty = FaultyStore(store, fail_at=1, when="after", matches=matches, error=error)
    with suppress(error, CommitStateUnknownError, RetryableConflictError):
        VERBS[verb](handle_on(faulty))
    assert handle_on(store).version > old
    facts(store)
    assert missing(store) == []
    _empty(name)
