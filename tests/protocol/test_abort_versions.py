"""A version that aborts finished work is whole, whoever decides about the attempt while it is being published."""

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
from lance_core.publish import abort
from lance_core.publish.abort import AbortRequest, abort_attempt, remove_attempts
from lance_core.publish.collect import collect_garbage
from lance_core.publish.intent import list_intents
from lance_core.publish.model import StagedTransaction
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
    """Its commit has died before its manifest."""
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


@pytest.mark.parametrize("decided", ["committed", "aborted"])
def test_garbage_collection_spares_an_abort_version_whose_attempt_is_decided_meanwhile(uri: str, decided: str) -> None:
    """Another commit publishes the attempt, or another abort decides; garbage is collected; then the version appears."""
    ref = _about_to_be_published(uri)

    def decide() -> None:
        if decided == "committed":
            commit(uri, [ref])
        else:
            _abort(uri, ref)

    def collect() -> None:
        collect_garbage(resolve_store(uri), now=time.time() + 40 * _DAY)

    with hooked(_before_each_version(decide, collect)):
        refused = refusal(lambda: _abort(uri, ref))
    assert isinstance(refused, IncompatibleConflictError) == (decided == "committed")
    collect()
    assert not broken_references(uri)
    assert not orphans(uri)
    assert not list_intents(resolve_store(uri))
    assert ids(uri, since=1000) == ([*range(1000, 1010)] if decided == "committed" else [])


def test_a_killed_abort_leaves_nothing_of_its_version(uri: str) -> None:
    ref = _about_to_be_published(uri)
    files = {entry.path for entry in resolve_store(uri).list("_transactions/")}
    intents = list_intents(resolve_store(uri))

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        _abort(uri, ref)
    assert {entry.path for entry in resolve_store(uri).list("_transactions/")} == files
    mine = [intent for intent in list_intents(resolve_store(uri)) if intent not in intents]
    assert [(intent.aborts, tuple(intent.attempts)) for intent in mine] == [(True, (ref.identity,))]
    _abort(uri, ref)
    collect_garbage(resolve_store(uri), now=time.time() + 40 * _DAY)
    assert not list_intents(resolve_store(uri)), "whoever comes next finishes what was begun"
    assert not orphans(uri)
    assert ids(uri, since=1000) == []


def test_the_official_library_reads_an_abort_version_and_commits_beyond_it(uri: str) -> None:
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
    before.delete(f"id = {first}")  # planned on the version before: it is judged against that version
    assert lance.dataset(uri).version == version + 1
    assert first not in ids(uri)


def test_very_many_attempts_are_aborted_by_several_versions(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abort, "_MOST_AT_ONCE", 2)
    refs = [_about_to_be_published(uri) for _ in range(5)]
    before = lance.dataset(uri).version
    keys = [(ref.identity, ref.attempt) for ref in refs]
    removal = remove_attempts(resolve_store(uri), keys, AbortRequest("a test", finished="abort"))
    assert not removal.refusals
    assert not removal.left
    assert lance.dataset(uri).version == before + 3
    assert all(isinstance(refusal(lambda ref=ref: commit(uri, [ref])), IncompatibleConflictError) for ref in refs)  # type: ignore[misc]
    assert not orphans(uri)
