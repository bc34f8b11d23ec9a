"""Which commits were about to publish an attempt, and whether one of them ended in doubt."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pytest

from lance_core.commit import naming
from lance_core.commit.registry import claims, fences
from lance_core.commit.registry.landings import find_landed
from lance_core.errors import CommitStateUnknownError
from lance_core.io.local.store import LocalStore
from lance_core.io.resolve import resolve_store
from tests.protocol.protocol_support import append, rows_at


def test_each_commit_of_an_attempt_is_found_by_name(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    key = ("job", "00ff00ff00ff00ff")
    commits = [f"{number:016x}" for number in range(1, 4)]
    for commit in commits:
        first = fences.fence_for_publishing(store, [key], commit=commit)[key]
        assert first.commit == commits[0]
    assert fences.fence_for_publishing(store, [key], commit=commits[1])[key].commit == commits[0]
    assert fences.publishers(store, *key) == commits
    store.put(naming.staged_path(*key[:1], "fenceb", attempt=key[1]), b"{")
    assert fences.publishers(store, *key) is None
    fences.remove_fence(store, *key)
    assert not store.list_names("_lance_core/staged/")


def test_a_fence_is_no_doubt_once_each_commit_has_ended(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows_at([0]), uri)
    mine = append(uri, [100])
    store = resolve_store(uri)
    claim = claims.put_claim(store, uuids=[], attempts={mine.identity: mine.attempt}, commit=naming.new_attempt())
    fences.fence_for_publishing(store, [(mine.identity, mine.attempt)], commit=claim.commit)
    for number in range(2):
        lance.write_dataset(rows_at([number]), uri, mode="append")
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
    with pytest.raises(CommitStateUnknownError):
        find_landed(store, mine.identity, mine.read_version)
    claims.drop_claim(store, claim)
    assert find_landed(store, mine.identity, mine.read_version) is None
