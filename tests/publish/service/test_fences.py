"""Who may publish an attempt and who may give it up: one key decides, and a killed commit is in nobody's way."""

from __future__ import annotations

import contextlib
from pathlib import Path

import lance
import pytest

from lance_core.commit.identities import identities_of, withdrawals_of
from lance_core.commit.manifests import latest_version
from lance_core.commit.transactions import load_transaction
from lance_core.errors import IncompatibleConflictError
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.registry.attempts import list_staged
from lance_core.publish.registry.fences import (
    fence_for_publishing,
    fence_for_withdrawal,
    note_fence_version,
    publishers,
    read_fence,
    remove_fence,
)
from lance_core.publish.service.commit_staged import commit_staged
from lance_core.publish.staging.abort import abort_attempt
from tests.commit.commit_support import create, live_rows, stage
from tests.io.faulty_stores import FaultyStore


class Killed(BaseException):
    """A process that dies."""


def _is_publication(name: str, path: str) -> bool:
    return name == "put_if_absent" and path.startswith("_versions/")


def commits_of(store: Store, key: tuple[str, str]) -> list[str]:
    return [item.commit for item in publishers(store, *key, group="") or ()]


def test_the_first_decision_stands() -> None:
    store = MemoryStore("first-decision")
    key = ("job", "00ff00ff00ff00ff")
    assert not fence_for_publishing(store, [key], commit="c1")[key].withdraws
    found, is_new = fence_for_withdrawal(store, *key, by="abort", decided=None)
    assert (found.withdraws, found.commit, is_new) == (False, "c1", False)
    other = ("job", "11ff00ff00ff00ff")
    assert fence_for_withdrawal(store, *other, by="abort", decided=None)[1]
    assert fence_for_publishing(store, [other], commit="c1")[other].withdraws


@pytest.mark.parametrize("kind", ["one file with many names", "a file each"])
def test_many_attempts_are_decided_each_for_itself(kind: str, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t") if kind == "one file with many names" else MemoryStore(f"many-decisions-{kind}")
    keys = [(f"job{number}", f"{number:016x}") for number in range(40)]
    withdrawn, others, mine = keys[:5], keys[5:10], keys[10:]
    for key in withdrawn:
        assert fence_for_withdrawal(store, *key, by="abort", decided=None)[1]
    fence_for_publishing(store, others, commit="c1")
    found = fence_for_publishing(store, keys, commit="c2")
    assert [*found] == keys
    assert {key for key in keys if found[key].withdraws} == {*withdrawn}
    assert {found[key].commit for key in others} == {"c1"}
    assert {found[key].commit for key in mine} == {"c2"}
    assert all(commits_of(store, key) == ["c1", "c2"] for key in others)
    assert all(commits_of(store, key) == ["c2"] for key in mine)
    # One of them changes, the others keep what they say: a record is replaced, never written into.
    note_fence_version(store, *mine[0], by="gc", version=7)
    remove_fence(store, *mine[1])
    again = {key: read_fence(store, *key) for key in mine}
    assert again[mine[0]] is not None and again[mine[0]].withdraws
    assert again[mine[1]] is None
    assert all(fence is not None and fence.commit == "c2" for fence in [*again.values()][2:])


def test_a_damaged_decision_means_hands_off() -> None:
    store = MemoryStore("damaged-decision")
    store.put("_lance_core/staged/job.00ff00ff00ff00ff.fence.json", b"{")
    fence = read_fence(store, "job", "00ff00ff00ff00ff")
    assert fence is not None and not fence.withdraws


def test_aborting_what_a_killed_commit_was_about_to_publish_takes_a_version_without_rows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    staged = stage(store, (7,))
    faulty = FaultyStore(store, fail_at=1, when="before", error=Killed, matches=_is_publication)  # type: ignore[arg-type]
    with contextlib.suppress(Killed):
        commit_staged(faulty, [staged])
    assert abort_attempt(store, staged.identity, staged.attempt)
    fence = load_transaction(store, 2)
    assert fence is not None
    assert withdrawals_of(fence) == {staged.identity: staged.attempt}
    assert identities_of(fence) == {}
    dataset = lance.dataset(store.uri)
    dataset.validate()
    assert (dataset.version, sorted(dataset.to_table()["a"].to_pylist())) == (2, [1, 2, 3])
    assert list_staged(store) == []
    with pytest.raises(IncompatibleConflictError, match="withdrawn"):
        commit_staged(store, [staged])


def test_a_commit_that_was_under_way_finds_the_fence_version_and_refuses() -> None:
    store = MemoryStore("under-way")
    create(store)
    staged = stage(store, (7,))

    class Between(FaultyStore):
        done = False

        def _call(self, name: str, path: str, action):  # type: ignore[no-untyped-def]
            if _is_publication(name, path) and not Between.done:
                Between.done = True
                abort_attempt(store, staged.identity, staged.attempt)
            return action()

    with pytest.raises(IncompatibleConflictError, match="was withdrawn"):
        commit_staged(Between(store, fail_at=10**9), [staged])
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3], 2)


def test_an_abort_of_what_nobody_was_about_to_publish_makes_no_version() -> None:
    store = MemoryStore("no-version")
    create(store)
    staged = stage(store, (7,))
    abort_attempt(store, staged.identity, staged.attempt)
    assert latest_version(store) == 1
