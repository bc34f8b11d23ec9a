"""A version that withdraws an attempt is whole, whoever decides about the attempt while it is being published."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import lance
import pytest

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.errors import IncompatibleConflictError
from lance_core.io.resolve import resolve_store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.staging import remove
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.garbage import collect_garbage
from lance_core.table.operations import ReserveFragments
from tests.protocol.protocol_support import (
    Killed,
    append,
    broken_references,
    commit,
    hooked,
    ids,
    is_manifest_put,
    orphans,
    refusal,
)

_DAY = 24 * 3600.0
Hook = Callable[[str, str, Callable[[], Any]], Any]


def _abort(uri: str, ref: StagedTransaction) -> None:
    abort_attempt(resolve_store(uri), ref.identity, ref.attempt)


def _about_to_be_published(uri: str) -> StagedTransaction:
    """Its commit has died between its fence and its manifest."""
    ref = append(uri, range(1000, 1010))

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        commit(uri, [ref])
    return ref


def _before_each_version(*acts: Callable[[], object]) -> Hook:
    """Before the first manifest is put the first act is done, and so on."""
    left = list(acts)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path) and left:
            act = left.pop(0)
            with hooked(None):
                act()
        return action()

    return hook


@pytest.mark.parametrize("decided", ["landed", "withdrawn"])
def test_garbage_collection_spares_a_fence_version_whose_attempt_is_decided_meanwhile(uri: str, decided: str) -> None:
    """Another commit lands the attempt, or another abort withdraws it; garbage is collected; then the version appears."""
    ref = _about_to_be_published(uri)

    def decide() -> None:
        if decided == "landed":
            commit(uri, [ref])
        else:
            _abort(uri, ref)

    def collect() -> None:
        collect_garbage(resolve_store(uri), now=time.time() + 40 * _DAY)

    with hooked(_before_each_version(decide, collect)):
        refused = refusal(lambda: _abort(uri, ref))
    assert isinstance(refused, IncompatibleConflictError) == (decided == "landed")
    collect()
    assert not broken_references(uri)
    assert not orphans(uri)
    assert not list_claims(resolve_store(uri))
    assert ids(uri, since=1000) == ([*range(1000, 1010)] if decided == "landed" else [])


def test_a_killed_abort_leaves_nothing_of_its_version(uri: str) -> None:
    ref = _about_to_be_published(uri)
    files = {entry.path for entry in resolve_store(uri).list("_transactions/")}
    claims = list_claims(resolve_store(uri))

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        _abort(uri, ref)
    assert {entry.path for entry in resolve_store(uri).list("_transactions/")} == files
    assert list_claims(resolve_store(uri)) == claims


def test_the_official_library_reads_a_fence_version_and_commits_beyond_it(uri: str) -> None:
    ref, before = _about_to_be_published(uri), lance.dataset(uri)
    _abort(uri, ref)
    store = resolve_store(uri)
    version = list_versions(store)[-1].version
    assert isinstance(load_transaction(store, version).operation, ReserveFragments)
    assert not load_manifest(store, version).transaction_file
    table = lance.dataset(uri)
    assert table.version == version == before.version + 1
    assert table.read_transaction(version) is not None
    first = table.to_table(columns=["id"])["id"][0].as_py()
    before.delete(f"id = {first}")  # planned on the version before: it is judged against the fence version
    assert lance.dataset(uri).version == version + 1
    assert first not in ids(uri)


def test_very_many_attempts_are_withdrawn_by_several_versions(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remove, "_KEYS_OF_A_FENCE", 2)
    refs = [_about_to_be_published(uri) for _ in range(5)]
    before = lance.dataset(uri).version
    keys = [(ref.identity, ref.attempt) for ref in refs]
    removal = remove.remove_attempts(resolve_store(uri), keys, by="a test", doubt="fence")
    assert not removal.refusals
    assert not removal.left
    assert lance.dataset(uri).version == before + 3
    assert all(isinstance(refusal(lambda ref=ref: commit(uri, [ref])), IncompatibleConflictError) for ref in refs)  # type: ignore[misc]
    assert not orphans(uri)
