"""Adversarial cases in a few lines: jobs as one-line functions, a store whose every call can be hooked, exact end states.

`hooked(hook)` makes every store that a job of this thread opens call `hook(name, path, action)` instead of the action.
Final tables are read by the official library.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import lance
import pyarrow as pa

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.errors import LanceError
from lance_core.io import resolve
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec, CompactSpec, DeleteSpec, ReplaceWhereSpec, UpdateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.publish.model import CommitResult, StagedTransaction

Hook = Callable[[str, str, Callable[[], Any]], Any]
_LOCAL = threading.local()
_RESOLVE = resolve._resolve


DIGESTS: dict[str, str] = {}
"""What the references that staging jobs returned say, for commits that are given identities only."""


class Killed(BaseException):
    """The process dies here: nobody catches it."""


class HookStore(WrappedStore):
    """Every call goes through the hook."""

    def __init__(self, inner: Store, hook: Hook) -> None:
        super().__init__(inner)
        self.hook = hook

    @property
    def is_local(self) -> bool:
        return True

    def _around(self, inner: Store) -> HookStore:
        return HookStore(inner, self.hook)

    def _call(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        return self.hook(name, path, action)


def resolve_hooked(uri: Any, options: dict[str, str]) -> Store:
    """In the place of `resolve._resolve`."""
    store = _RESOLVE(uri, options)
    hook = getattr(_LOCAL, "hook", None)
    return store if hook is None else HookStore(store, hook)


@contextmanager
def hooked(hook: Hook | None) -> Iterator[None]:
    """Stores that this thread opens inside call the hook; None: they do not."""
    before = getattr(_LOCAL, "hook", None)
    _LOCAL.hook = hook
    try:
        yield
    finally:
        _LOCAL.hook = before


def watched(store: Store) -> tuple[HookStore, list[tuple[str, str]]]:
    """The store, and every call that goes through it."""
    calls: list[tuple[str, str]] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        calls.append((name, path))
        return action()

    return HookStore(store, hook), calls


def is_manifest_put(name: str, path: str) -> bool:
    """Whether a call publishes a version."""
    return name == "put_if_absent" and path.startswith("_versions/")


def is_decision_put(name: str, path: str, number: int = 1) -> bool:
    """Whether a call decides about an identity for the `number`th time; the first time is the end of its first try."""
    return name == "put_if_absent" and path.startswith("_lance_core/decisions/") and path.endswith(f".{number:06d}.json")


def rows_at(ids: Iterable[int], value: int = 0) -> pa.Table:
    """What the sources of these tests give."""
    numbers = list(ids)
    return pa.table({"id": pa.array(numbers, pa.int64()), "value": pa.array([value] * len(numbers), pa.int64())})


def source(ids: Iterable[int], value: int = 0) -> SourceSpec:
    return SourceSpec(callable="tests.protocol.protocol_support:rows_at", kwargs={"ids": list(ids), "value": value})


def new_identity() -> str:
    return str(uuid.uuid4())


def append(uri: str, ids: Iterable[int], identity: str | None = None, value: int = 0, **more: Any) -> StagedTransaction:
    spec = AppendSpec(uri=uri, source=source(ids, value), identity=identity or new_identity(), **more)
    return staged(spec)


def delete(uri: str, predicate: str, identity: str | None = None) -> StagedTransaction:
    return staged(DeleteSpec(uri=uri, predicate=predicate, identity=identity or new_identity()))


def update(uri: str, updates: Mapping[str, str], where: str, identity: str | None = None) -> StagedTransaction:
    return staged(UpdateSpec(uri=uri, updates=dict(updates), where=where, identity=identity or new_identity()))


def replace(uri: str, predicate: str, ids: Iterable[int], value: int = 0, identity: str | None = None) -> StagedTransaction:
    rows = source(ids, value)
    return staged(ReplaceWhereSpec(uri=uri, predicate=predicate, source=rows, identity=identity or new_identity()))


def merge(uri: str, ids: Iterable[int], value: int = 1, identity: str | None = None) -> StagedTransaction:
    return staged(MergeSpec(uri=uri, on=("id",), source=source(ids, value), identity=identity or new_identity()))


def compact(uri: str, identity: str | None = None, **more: Any) -> StagedTransaction:
    return staged(CompactSpec(uri=uri, identity=identity or new_identity(), **more))


def add_columns(uri: str, columns: Mapping[str, str], identity: str | None = None) -> StagedTransaction:
    return staged(AddColumnsSpec(uri=uri, columns=dict(columns), identity=identity or new_identity()))


def staged(spec: Any) -> StagedTransaction:
    found = run_job(spec)
    assert isinstance(found, StagedTransaction)
    DIGESTS[found.identity] = found.digest
    return found


def commit(uri: str, refs: Sequence[StagedTransaction | str] = (), **more: Any) -> CommitResult:
    identities = tuple(ref if isinstance(ref, str) else ref.identity for ref in refs)
    digests = {name: DIGESTS[name] for name in identities if name in DIGESTS}
    found = run_job(CommitSpec(uri=uri, identities=identities, digests=digests, **more))
    assert isinstance(found, CommitResult)
    return found


def ids(uri: str, *, since: int = 0) -> list[int]:
    """Ids from `since` on, sorted, as the official library reads them."""
    dataset = lance.dataset(uri)
    dataset.validate()
    return sorted(item for item in dataset.to_table(columns=["id"])["id"].to_pylist() if item >= since)


def rows(uri: str, *, since: int = 0) -> list[tuple[int, int]]:
    """(id, value), sorted."""
    dataset = lance.dataset(uri)
    dataset.validate()
    table = dataset.to_table(columns=["id", "value"])
    return sorted(row for row in zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True) if row[0] >= since)


def broken_references(uri: str) -> dict[int, set[str]]:
    """Files that a version names and that are gone, by version."""
    store = _RESOLVE(uri, {})
    there = {entry.path for entry in store.list("")}
    found = {}
    for entry in list_versions(store):
        named = {path for path in referenced_files(load_manifest(store, entry.version)) if not path.endswith("/")}
        if named - there:
            found[entry.version] = named - there
    return found


def orphans(uri: str) -> list[str]:
    """Data files of no version."""
    store = _RESOLVE(uri, {})
    needed = {path for entry in list_versions(store) for path in referenced_files(load_manifest(store, entry.version))}
    return [entry.path for entry in store.list("data/") if entry.path not in needed]


def refusal(action: Callable[[], object]) -> LanceError | None:
    """The refusal of an action, which must name the cure; None when it did its work. Any other error is a failure."""
    try:
        action()
    except LanceError as error:
        assert getattr(error, "cure", None) or getattr(error, "retryable", False), f"no cure: {error!r}"
        return error
    return None
