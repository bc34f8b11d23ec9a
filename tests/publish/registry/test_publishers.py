"""Which commits were about to publish an attempt, and whether one of them ended in doubt."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import replace
from pathlib import Path

import lance
import pytest

from lance_core.commit import naming
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import load_manifest
from lance_core.errors import CommitStateUnknownError
from lance_core.io.local.store import LocalStore
from lance_core.io.resolve import resolve_store
from lance_core.publish.registry import claims, fences
from lance_core.publish.registry.landings import find_landed, in_doubt
from lance_core.table.operations import ReserveFragments
from lance_core.table.transaction import Transaction
from tests.protocol.protocol_support import append, rows_at


def test_each_commit_of_an_attempt_is_found_by_name(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    key = ("job", "00ff00ff00ff00ff")
    commits = [f"{number:016x}" for number in range(1, 4)]
    for commit in commits:
        first = fences.fence_for_publishing(store, [key], commit=commit)[key]
        assert first.commit == commits[0]
    assert fences.fence_for_publishing(store, [key], commit=commits[1])[key].commit == commits[0]
    assert [item.commit for item in fences.publishers(store, *key, group="") or ()] == commits
    store.put(naming.staged_path(*key[:1], "fenceb", attempt=key[1]), b"{")
    assert fences.publishers(store, *key, group="") is None
    fences.remove_fence(store, *key)
    assert not store.list_names("_lance_core/staged/")


def test_a_fence_is_no_doubt_once_each_commit_has_ended(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows_at([0]), uri)
    mine = append(uri, [100])
    store = resolve_store(uri)
    claim = claims.make_claim(uuids=[], attempts={mine.identity: mine.attempt}, commit=naming.new_attempt())
    claims.write_claim(store, claim)
    fences.fence_for_publishing(store, [(mine.identity, mine.attempt)], commit=claim.commit)
    for number in range(2):
        lance.write_dataset(rows_at([number]), uri, mode="append")
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
    with pytest.raises(CommitStateUnknownError):
        find_landed(store, mine.identity, mine.read_version)
    assert in_doubt(store, {mine.identity: mine.read_version, "another": 1}) == {mine.identity: 2}
    claims.drop_claim(store, claim)
    assert in_doubt(store, {mine.identity: mine.read_version}) == {}
    assert find_landed(store, mine.identity, mine.read_version) is None


def test_a_transaction_file_with_the_name_of_an_attempt_is_no_landing_of_it(tmp_path: Path) -> None:
    """A version that withdraws an attempt used to have such a file; only data, deletion and index files show a landing."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows_at([0]), uri)
    mine = append(uri, [100])
    store = resolve_store(uri)
    other = Transaction(1, str(uuid.uuid4()), ReserveFragments(0))
    commit_transaction(store, other, attempt=mine.attempt)
    newest = load_manifest(store)
    assert naming.is_of_attempt(naming.transaction_path(newest.transaction_file), mine.attempt)
    for number in range(2):
        lance.write_dataset(rows_at([number]), uri, mode="append")
    # A version with such a file is the newest again, and the versions before it are gone.
    commit_transaction(store, replace(other, read_version=4, uuid=str(uuid.uuid4())), attempt=mine.attempt)
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
    assert find_landed(store, mine.identity, mine.read_version) is None
