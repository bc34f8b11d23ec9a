"""One record decides about many attempts that were planned together, and for the version behind that one only."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import latest_version, list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.commit.transactions import load_transaction, read_transaction_file
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError, StoreError
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.record_types import APART, PUBLISH, Fence
from lance_core.publish.registry.attempts import list_staged
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.fences import fence_for_publishing, fence_for_withdrawal, fence_path, publishers, read_fence
from lance_core.publish.registry.group_fences import (
    Key,
    group_of,
    is_damaged,
    keep_apart,
    list_groups,
    publish_together,
    read_group,
    version_of,
)
from lance_core.publish.registry.landings import find_landed
from lance_core.publish.registry.verify import damaged_records, set_aside
from lance_core.publish.service.commit_staged import commit_staged
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.drain import Loaded, require_whole
from lance_core.publish.staging.garbage import collect_garbage
from tests.commit.commit_support import append, create, live_rows, paths, stage
from tests.io.faulty_stores import FaultyStore
from tests.protocol.protocol_support import Hook, HookStore, Killed, is_manifest_put, watched

LATER = 10 * 24 * 3600.0
OURS, THEIRS = "c0" * 8, "d0" * 8
TRICKS = (
    "", ".", "..", "/", "../x", "../../_versions/4", "1/2", "/4", "4/", "4.json", "4\n", " 4", "4 ", "-4", "4-", "4--1",
    "+4", "4-abc", "4-" + "f" * 15, "4-" + "f" * 17, "4-" + "F" * 16, "4-" + "g" * 16, "4-../../../../x", "٤", "4\0", "*",
    "4" * 21,
)  # fmt: skip


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty place."""
    return LocalStore(tmp_path / "place" / "t.lance") if request.param == "local" else MemoryStore(uuid.uuid4().hex)


def keys_of(count: int) -> list[Key]:
    return [(f"job{number}", f"{number:016x}") for number in range(count)]


def together(store: Store, keys: Sequence[Key], group: str, *, version: int, commit: str = OURS) -> Any:
    """`publish_together` of attempts that are all of one group."""
    return publish_together(store, keys, dict.fromkeys(keys, group), commit=commit, version=version)


def at_manifest(number: int, act: Callable[[], object]) -> Hook:
    """Does something right before a commit's n-th put of a manifest."""
    puts = 0

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        nonlocal puts
        if is_manifest_put(name, path):
            puts += 1
            if puts == number:
                act()
        return action()

    return hook


def die() -> None:
    raise Killed


def kill_before_manifest(store: Store, refs: Sequence[StagedTransaction]) -> None:
    """A commit that has decided, and dies before it puts anything."""
    with contextlib.suppress(Killed):
        commit_staged(HookStore(store, at_manifest(1, die)), refs)


def group_path(number: int) -> str:
    return f"{naming.FENCES}/{number}.json"


def key_of(ref: StagedTransaction) -> Key:
    return ref.identity, ref.attempt


def loaded(store: Store, refs: Sequence[StagedTransaction]) -> list[Loaded]:
    found = [(ref, read_transaction_file(store, ref.transaction_path)) for ref in refs]
    return [Loaded(ref, transaction) for ref, transaction in found if transaction is not None]


def commits_of(store: Store, ref: StagedTransaction) -> list[str]:
    return [fence.commit for fence in publishers(store, *key_of(ref), group=ref.group) or ()]


def gc_late(store: Store) -> None:
    collect_garbage(store, now=time.time() + LATER)


def broken(store: Store) -> dict[int, set[str]]:
    """Files that a version names and that are gone."""
    there = paths(store)
    named = {item.version: {*referenced_files(load_manifest(store, item.version))} for item in list_versions(store)}
    return {version: files - there for version, files in named.items() if files - there}


# A record by itself


def test_attempts_that_a_task_planned_on_one_version_are_one_group() -> None:
    asked = Asked(dag_id="d", run_id="r", task_id="t", map_index=1)
    assert group_of(4, Asked()) == "4"
    assert group_of(4, asked) == group_of(4, replace(asked, map_index=2, try_number=3, host="another"))
    others = [replace(asked, dag_id="e"), replace(asked, run_id="s"), replace(asked, task_id="u")]
    names = {group_of(4, other) for other in others}
    assert len({group_of(4, asked), group_of(5, asked), *names}) == 5
    assert {version_of(name) for name in names} == {4}
    assert all(naming.group_path(name) for name in ("0", group_of(4, asked), str((1 << 64) - 1)))


def test_several_attempts_of_a_group_are_decided_by_one_record(store: Store) -> None:
    place, calls = watched(store)
    keys = keys_of(3)
    mine, others = together(place, keys, "4", version=5)
    assert ([*mine], others) == (keys, {})
    assert {(fence.outcome, fence.commit, fence.withdraws) for fence in mine.values()} == {(PUBLISH, OURS, False)}
    assert calls == [("put_if_absent", group_path(4))]
    assert paths(store) == {group_path(4)}
    found = read_group(store, "4")
    assert found is not None
    assert (found.outcome, found.commit, found.attempts) == (PUBLISH, OURS, dict(keys))
    assert together(store, keys, "4", version=5)[0] == mine, "the same commit asks again"


def test_each_group_is_decided_by_itself(store: Store) -> None:
    keys, task = keys_of(7), group_of(4, Asked(task_id="t"))
    groups = dict(zip(keys, ["4", "4", task, task, "3", "3", "4"], strict=True))
    groups[keys[6]] = "4-" + "0" * 16  # alone in its group
    mine, others = publish_together(store, keys, groups, commit=OURS, version=5)
    assert ({*mine}, others) == ({*keys[:4]}, {})
    assert paths(store) == {group_path(4), f"{naming.FENCES}/{task}.json"}


@pytest.mark.parametrize("version", [1, 3, 4, 6, 7, 1 << 63])
def test_a_group_decides_for_no_other_version(store: Store, version: int) -> None:
    assert together(store, keys_of(3), "4", version=version) == ({}, {})
    assert paths(store) == set()


def test_one_attempt_and_too_many_for_one_record_have_fences_of_their_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, calls = watched(store)
    assert together(place, keys_of(1), "4", version=5) == ({}, {})
    assert together(place, [], "4", version=5) == ({}, {})
    monkeypatch.setattr("lance_core.publish.registry.group_fences._MOST", 3)
    assert together(place, keys_of(4), "4", version=5) == ({}, {})
    assert calls == []
    assert len(together(place, keys_of(3), "4", version=5)[0]) == 3


@pytest.mark.parametrize("group", TRICKS)
def test_what_is_no_name_of_a_group_decides_nothing_and_touches_nothing(group: str, tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "c" / "d" / "t.lance"
    inner = LocalStore(root)
    inner.put("_versions/4.manifest", b"not ours")
    before = sorted(tmp_path.rglob("*"))
    place, calls = watched(inner)
    # Whatever an attacker takes for the version: the one behind the number in it, or behind -1.
    for version in (1, 4, 5):
        assert together(place, keys_of(3), group, version=version) == ({}, {})
    for newest in (0, 4):
        assert keep_apart(place, [group], newest=newest) == {}
    assert (read_group(place, group), version_of(group), naming.group_path(group)) == (None, -1, "")
    assert publishers(place, *keys_of(1)[0], group=group) == []
    assert not [call for call in calls if not call[1].startswith("_lance_core/staged/job0.")]
    assert sorted(tmp_path.rglob("*")) == before


def test_files_beside_the_records_are_no_records(store: Store) -> None:
    for name in ("x.json", "4.json.tmp", "4", "..json", "-1.json"):
        store.put(f"{naming.FENCES}/{name}", b"{")
    assert list_groups(store) == {}
    assert damaged_records(store) == []


def test_only_groups_of_the_newest_version_are_kept_apart(store: Store) -> None:
    found = keep_apart(store, ["3", "4", "4", "5", "4-" + "a" * 16], newest=4)
    assert [*found] == ["4", "5", "4-" + "a" * 16]
    assert {decided.outcome for decided in found.values()} == {APART}
    assert {*list_groups(store)} == {*found}


def test_apart_first_and_a_commit_decides_nothing_by_the_group(store: Store) -> None:
    keys = keys_of(3)
    (apart,) = keep_apart(store, ["4"], newest=4).values()
    assert (apart.outcome, apart.attempts) == (APART, {})
    assert together(store, keys, "4", version=5) == ({}, {})
    assert keep_apart(store, ["4"], newest=4) == {"4": apart}, "the first record stays"
    # The attempts' own fences are free, for either side.
    assert fence_for_withdrawal(store, *keys[0], by="abort", decided=apart)[1]
    assert fence_for_publishing(store, keys, commit=OURS)[keys[0]].withdraws
    assert [item.commit for item in publishers(store, *keys[1], group="4") or ()] == [OURS]


def test_publish_first_and_a_withdrawal_finds_it(store: Store) -> None:
    *members, other = keys_of(4)
    together(store, members, "4", version=5)
    decided = keep_apart(store, ["4"], newest=4)["4"]
    assert decided == read_group(store, "4")
    for key in members:
        fence, is_new = fence_for_withdrawal(store, *key, by="abort", decided=decided)
        assert (fence.outcome, fence.commit, is_new) == (PUBLISH, OURS, False)
        assert read_fence(store, *key) is None, "nothing was decided behind the commit's back"
    # Another attempt of the same identity, and one that is not named, are free.
    for free in (other, (members[0][0], "ff" * 8)):
        fence, is_new = fence_for_withdrawal(store, *free, by="abort", decided=decided)
        assert (fence.withdraws, is_new) == (True, True)


def test_an_attempt_that_a_version_withdrew_stays_withdrawn_under_a_group_that_publishes_it(store: Store) -> None:
    keys = keys_of(2)
    together(store, keys, "4", version=5)
    store.put(fence_path(*keys[0]), b'{"format": 2, "outcome": "withdraw", "by": "gc", "version": 5}')
    fence, is_new = fence_for_withdrawal(store, *keys[0], by="abort", decided=read_group(store, "4"))
    assert (fence.withdraws, fence.version, is_new) == (True, 5, False)
    assert publishers(store, *keys[0], group="4") == []


def test_two_commits_of_overlapping_attempts_know_each_other(store: Store) -> None:
    keys = keys_of(4)
    together(store, keys[:3], "4", version=5, commit=THEIRS)
    mine, others = together(store, keys[1:], "4", version=5)
    assert mine == {}
    assert {key: fence.commit for key, fence in others.items()} == dict.fromkeys(keys[1:3], THEIRS)
    first = read_group(store, "4")
    assert first is not None
    assert (first.commit, [*first.attempts.items()]) == (THEIRS, keys[:3])


@pytest.mark.parametrize("decide", ["publish", "apart"])
def test_a_lost_reply_of_the_put_counts_as_ours(store: Store, decide: str) -> None:
    faulty = FaultyStore(store, fail_at=1, when="after", matches=lambda name, path: path.startswith(naming.FENCES))
    keys = keys_of(2)
    if decide == "publish":
        mine, others = together(faulty, keys, "4", version=5)
        assert ([*mine], others) == (keys, {})
    else:
        assert keep_apart(faulty, ["4"], newest=4)["4"] == read_group(store, "4")
    assert faulty.num_calls > 1, "the record was looked at"


@pytest.mark.parametrize("decide", ["publish", "apart"])
def test_a_lost_put_decides_nothing(store: Store, decide: str) -> None:
    faulty = FaultyStore(store, fail_at=1, matches=lambda name, path: path.startswith(naming.FENCES))
    with pytest.raises(StoreError):
        if decide == "publish":
            together(faulty, keys_of(2), "4", version=5)
        else:
            keep_apart(faulty, ["4"], newest=4)
    assert read_group(store, "4") is None


def test_a_lost_reply_behind_the_record_of_another_is_not_ours(store: Store) -> None:
    """The put is refused because of theirs, and the refusal is lost."""
    keys = keys_of(2)
    together(store, keys, "4", version=5, commit=THEIRS)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if name == "put_if_absent":
            raise StoreError("timed out")
        return action()

    mine, others = together(HookStore(store, hook), keys, "4", version=5)
    assert (mine, {fence.commit for fence in others.values()}) == ({}, {THEIRS})


# A damaged record

DAMAGED = {
    "no JSON": b"{",
    "empty": b"",
    "no object": b"[]",
    "no outcome": b'{"format": 2, "commit": "c"}',
    "attempts of a wrong type": b'{"format": 2, "outcome": "publish", "attempts": ["job0"]}',
    "very deep": b'{"outcome": "apart", "more": ' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_means_hands_off(store: Store, data: bytes) -> None:
    store.put(group_path(4), data)
    key, *_ = keys = keys_of(2)
    decided = keep_apart(store, ["4"], newest=4)["4"]
    assert is_damaged(decided)
    fence, is_new = fence_for_withdrawal(store, *key, by="abort", decided=decided)
    assert (fence.withdraws, fence.commit, is_new) == (False, "", False)
    assert publishers(store, *key, group="4") is None
    mine, others = together(store, keys, "4", version=5)
    assert (mine, {fence.by for fence in others.values()}) == ({}, {"damaged record"})
    (bad,) = damaged_records(store)
    assert bad.path == group_path(4)


def test_a_commit_lands_beside_a_damaged_record_and_an_abort_makes_it_lose_first(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    store.put(group_path(1), b"{")
    abort_attempt(store, *key_of(refs[0]))
    assert latest_version(store) == 2, "a version withdraws it, for a commit might be about to publish it"
    assert commit_staged(store, refs[1:]).num_versions == 1
    assert live_rows(store) == [1, 2, 3, 8, 9]
    gc_late(store)
    assert bytes(store.get(group_path(1))) == b"{"
    assert list_claims(store) == []


def test_a_damaged_record_leaves_it_unknown_what_has_landed_where_the_history_is_gone(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8)]
    store.put(group_path(1), b"{")
    append(store, (4,))
    append(store, (5,))
    for entry in list_versions(store)[:-1]:
        store.delete(entry.path)
    with pytest.raises(CommitStateUnknownError):
        find_landed(store, refs[0].identity, 1)
    set_aside(store, [item.path for item in damaged_records(store)])
    assert find_landed(store, refs[0].identity, 1) is None


def test_the_command_names_a_damaged_record_and_sets_it_aside(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t.lance")
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8)]
    store.put(group_path(1), b"{")
    for dry_run in (True, False):
        found = CliRunner().invoke(cli, ["staged", "repair", store.uri, *["--dry-run"] * dry_run])
        assert found.exit_code == 0, found.output
        assert group_path(1) in found.output
        assert "group" in found.output
        assert (group_path(1) in paths(store)) == dry_run
    assert damaged_records(store) == []
    assert bytes(store.get("_lance_core/aside/fences/1.json")) == b"{"
    abort_attempt(store, *key_of(refs[0]))
    assert latest_version(store) == 1, "nobody is in the way any more"


# Commits of several attempts


def test_a_fold_lands_by_one_record_and_leaves_none(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in range(10, 15)]
    place, calls = watched(store)
    done = commit_staged(place, refs)
    assert (done.version, done.num_versions, done.rows_added) == (2, 1, 5)
    assert live_rows(store) == [1, 2, 3, *range(10, 15)]
    puts = [path for name, path in calls if name == "put_if_absent"]
    assert [path for path in puts if path.startswith(naming.FENCES)] == [group_path(1)]
    assert not [path for path in puts if path.endswith(".fence.json")]
    # Behind the record the files are looked for, and then comes the version.
    moments = {path: number for number, (name, path) in enumerate(calls) if name in ("put_if_absent", "size")}
    files = [path for path in moments if path.startswith("data/")]
    assert len(files) == 5
    (version,) = [path for path in moments if path.startswith("_versions/")]
    assert moments[group_path(1)] < min(map(moments.__getitem__, files))
    assert max(map(moments.__getitem__, files)) < moments[version]
    assert list_groups(store) == {}
    assert list_claims(store) == []
    assert not [path for path in paths(store) if path.startswith(("_lance_core/staged/", "_lance_core/commits/"))]
    # What goes with the landing goes before the claim, which is the last.
    deleted = [path for name, path in calls if name == "delete"]
    assert deleted.index(group_path(1)) == len(deleted) - 2
    assert deleted[-1].startswith(naming.COMMITS)


def test_a_table_that_is_created_by_many_is_decided_by_one_record(store: Store) -> None:
    refs = [stage(store, (value,), read_version=0) for value in (7, 8)]
    place, calls = watched(store)
    assert commit_staged(place, refs).version == 1
    assert [path for name, path in calls if name == "put_if_absent" and path.startswith(naming.FENCES)] == [group_path(0)]
    assert (live_rows(store), list_groups(store)) == ([7, 8], {})


def test_behind_a_lost_race_each_attempt_is_fenced_by_itself_before_the_next_put(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in range(10, 15)]
    puts: list[dict[Key, Fence | None]] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            puts.append({key_of(ref): read_fence(store, *key_of(ref)) for ref in refs})
            if len(puts) == 1:
                append(store, (99,))
        return action()

    done = commit_staged(HookStore(store, hook), refs)
    assert (done.version, done.num_versions) == (3, 1)
    assert [*puts[0].values()] == [None] * 5, "decided by the group"
    assert len({fence.commit for fence in puts[1].values() if fence is not None and not fence.withdraws}) == 1
    assert None not in puts[1].values()
    assert len(puts) == 2
    assert live_rows(store) == [1, 2, 3, *range(10, 15), 99]
    assert list_groups(store) == {}
    assert not [path for path in paths(store) if path.startswith("_lance_core/staged/")]


def test_what_is_withdrawn_behind_a_lost_race_is_refused_although_the_group_said_publish(store: Store) -> None:
    """Behind a later version it decides nothing: a withdrawal puts the fence of the attempt, and the commit finds it."""
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]

    def others() -> None:
        append(store, (99,))
        abort_attempt(store, *key_of(refs[0]))

    place = HookStore(store, at_manifest(1, others))
    with pytest.raises(IncompatibleConflictError, match=refs[0].identity):
        commit_staged(place, refs)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 99], 2)
    commit_staged(store, refs[1:])
    assert live_rows(store) == [1, 2, 3, 8, 9, 99]
    gc_late(store)
    assert (list_groups(store), list_claims(store), broken(store)) == ({}, [], {})


def test_a_second_commit_of_some_of_them_is_named_by_fences_of_its_own_and_was_not_first(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    kill_before_manifest(store, refs[:2])
    (theirs,) = list_claims(store)
    assert {*list_groups(store)} == {"1"}
    items = loaded(store, refs[1:])
    decided = require_whole(store, items, commit=OURS, version=2)
    assert not decided.refusals
    assert (decided.shared, decided.together) == (frozenset([key_of(refs[1])]), frozenset())
    assert commits_of(store, refs[0]) == [theirs.commit]
    assert commits_of(store, refs[1]) == [theirs.commit, OURS]
    assert commits_of(store, refs[2]) == [OURS]
    # And once more, by somebody who finds both.
    again = require_whole(store, items, commit="e0" * 8, version=2)
    assert again.shared == {key_of(ref) for ref in refs[1:]}
    assert commits_of(store, refs[1]) == [theirs.commit, OURS, "e0" * 8]


@pytest.mark.parametrize("first", [slice(0, 2), slice(0, 4), slice(1, 3)])
@pytest.mark.parametrize("second", [slice(1, 4), slice(0, 4), slice(1, 2)])
def test_overlapping_commits_land_each_attempt_once_and_leave_nothing(store: Store, first: slice, second: slice) -> None:
    """The second one runs as a whole while the first is about to put its version."""
    create(store)
    refs = [stage(store, (value,)) for value in range(10, 14)]
    place = HookStore(store, at_manifest(1, lambda: commit_staged(store, refs[second])))
    commit_staged(place, refs[first])
    wanted = {ref.identity for ref in (*refs[first], *refs[second])}
    assert live_rows(store) == [1, 2, 3, *(10 + number for number, ref in enumerate(refs) if ref.identity in wanted)]
    commit_staged(store, refs)
    assert live_rows(store) == [1, 2, 3, *range(10, 14)]
    gc_late(store)
    assert (list_groups(store), list_claims(store), list_staged(store), broken(store)) == ({}, [], [], {})
    assert not [path for path in paths(store) if path.startswith(("_lance_core/staged/", "_lance_core/commits/"))]


# Garbage collection


def test_gc_keeps_apart_only_the_groups_of_the_newest_version(store: Store) -> None:
    create(store)
    append(store, (4,))
    append(store, (5,))
    groups = ["1", "2", "3", "3-" + "a" * 16, "2-" + "a" * 16, "9"]
    keep_apart(store, groups, newest=0)
    collect_garbage(store, dry_run=True)
    assert {*list_groups(store)} == {*groups}
    collect_garbage(store)
    assert {*list_groups(store)} == {"3", "3-" + "a" * 16, "9"}


@pytest.mark.parametrize("end", ["landed", "withdrawn", "one of each"])
def test_gc_keeps_what_says_who_publishes_until_each_attempt_is_settled(store: Store, end: str) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8)]
    kill_before_manifest(store, refs)
    gc_late(store)
    assert {*list_groups(store)} == {"1"}, "it decides about the next version"
    append(store, (99,))
    gc_late(store)
    assert {*list_groups(store)} == {"1"}, "both are staged"
    expected = [1, 2, 3, 99]
    if end == "landed":
        commit_staged(store, refs[:1])
        gc_late(store)
        assert {*list_groups(store)} == {"1"}, "one is staged"
        commit_staged(store, refs[1:])
        expected += [7, 8]
    elif end == "withdrawn":
        for ref in refs:
            assert {*list_groups(store)} == {"1"}
            abort_attempt(store, *key_of(ref))
            gc_late(store)
    else:
        commit_staged(store, refs[:1])
        abort_attempt(store, *key_of(refs[1]))
        expected += [7]
    gc_late(store)
    assert list_groups(store) == {}
    assert live_rows(store) == sorted(expected)
    assert list_claims(store) == []


def test_gc_keeps_the_record_for_an_attempt_that_was_landed_but_whose_sibling_is_in_doubt(store: Store) -> None:
    """The history is gone, and the record is what tells that a commit was about to publish the other one."""
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8)]
    kill_before_manifest(store, refs)
    for value in (97, 98, 99):
        append(store, (value,))
    for entry in list_versions(store)[:-1]:
        store.delete(entry.path)
    for _ in range(2):
        with pytest.raises(CommitStateUnknownError):
            find_landed(store, refs[0].identity, 1)
        gc_late(store)
        assert {*list_groups(store)} == {"1"}
    # A person says how it is; then nothing of it is left.
    for ref in refs:
        abort_attempt(store, *key_of(ref), certain=True)
    gc_late(store)
    assert (list_groups(store), list_claims(store)) == ({}, [])


# Withdrawal against commits that were killed or sleep


def test_an_abort_of_what_a_killed_commit_had_decided_by_its_group_takes_a_version(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    kill_before_manifest(store, refs)
    assert [read_fence(store, *key_of(ref)) for ref in refs] == [None] * 3
    assert abort_attempt(store, *key_of(refs[0]))
    assert latest_version(store) == 2
    assert (live_rows(store), broken(store)) == ([1, 2, 3], {})
    for repeated in range(2):
        with pytest.raises(IncompatibleConflictError, match=r"withdrawn"):
            commit_staged(store, refs)
        assert abort_attempt(store, *key_of(refs[0])) == [], repeated
    done = commit_staged(store, refs[1:])
    assert {*done.identities.values()} == {"landed"}
    assert live_rows(store) == [1, 2, 3, 8, 9]
    gc_late(store)
    assert (list_groups(store), list_claims(store), list_staged(store), broken(store)) == ({}, [], [], {})


def test_an_abort_of_an_attempt_that_the_group_does_not_name_takes_no_version(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    kill_before_manifest(store, refs[:2])
    abort_attempt(store, *key_of(refs[2]))
    assert latest_version(store) == 1
    commit_staged(store, refs[:2])
    assert live_rows(store) == [1, 2, 3, 7, 8]


def test_a_commit_that_sleeps_before_its_version_is_refused_when_one_of_its_group_was_withdrawn(store: Store) -> None:
    create(store)
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    place = HookStore(store, at_manifest(1, lambda: abort_attempt(store, *key_of(refs[1]))))
    with pytest.raises(IncompatibleConflictError, match="was withdrawn in version 2"):
        commit_staged(place, refs)
    transaction = load_transaction(store, 2)
    assert transaction is not None
    assert transaction.operation.name == "ReserveFragments"
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3], 2)
    commit_staged(store, [refs[0], refs[2]])
    assert (live_rows(store), broken(store)) == ([1, 2, 3, 7, 9], {})


class Interrupted:
    """A hook: right before the n-th call another writer acts, and the caller goes on or dies. On request the first put of a
    manifest loses its number as well."""

    def __init__(self, number: int, act: Callable[[], object], *, dies: bool, race: Callable[[], object] | None) -> None:
        self._number, self._act, self._dies, self._race = number, act, dies, race
        self.num_calls = 0

    def __call__(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        self.num_calls += 1
        if is_manifest_put(name, path) and self._race is not None:
            race, self._race = self._race, None
            race()
        if self.num_calls == self._number:
            self._act()
            if self._dies:
                raise Killed
        return action()


@pytest.mark.parametrize("races", [False, True], ids=["by itself", "beside another writer"])
@pytest.mark.parametrize("then", ["goes on", "dies"])
def test_an_abort_at_any_call_of_a_commit_of_a_group_loses_and_doubles_nothing(then: str, races: bool) -> None:
    number, outcomes = 0, set[bool]()
    while True:
        number += 1
        store = MemoryStore(uuid.uuid4().hex)
        create(store)
        refs = [stage(store, (value,)) for value in (7, 8, 9)]
        removed: list[str] = []

        def abort(store: Store = store, key: Key = key_of(refs[0]), removed: list[str] = removed) -> None:
            with contextlib.suppress(IncompatibleConflictError):  # it has landed
                removed.extend(abort_attempt(store, *key))

        def race(store: Store = store) -> None:
            append(store, (99,))

        hook = Interrupted(number, abort, dies=then == "dies", race=race if races else None)
        said: Mapping[str, str] = {}
        with contextlib.suppress(IncompatibleConflictError, Killed):
            said = commit_staged(HookStore(store, hook), refs).identities
        if hook.num_calls < number:
            break
        rows = live_rows(store)
        assert all(value in rows for ref, value in zip(refs, (7, 8, 9), strict=True) if ref.identity in said), number
        commit_staged(store, refs[1:])
        with contextlib.suppress(IncompatibleConflictError):
            commit_staged(store, refs[:1])
        rows = live_rows(store)
        # What was removed is not in the table, and what was not removed is.
        assert [value for value in rows if value != 99] == [1, 2, 3, *[7] * (not removed), 8, 9], number
        gc_late(store)
        assert (live_rows(store), broken(store)) == (rows, {}), number
        assert (list_groups(store), list_claims(store), list_staged(store)) == ({}, [], []), number
        outcomes.add(bool(removed))
    assert outcomes == {False, True}
    assert number > 30


@pytest.mark.parametrize("error", [StoreError, Killed], ids=["store error", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whichever_call_of_a_commit_of_a_group_fails_each_lands_once(
    error: Callable[[str], BaseException], when: str
) -> None:
    number, broke = 0, True
    while broke:
        number += 1
        store = MemoryStore(uuid.uuid4().hex)
        create(store)
        refs = [stage(store, (value,)) for value in (7, 8, 9)]
        faulty = FaultyStore(store, fail_at=number, when=when, error=error)  # type: ignore[arg-type]
        with contextlib.suppress(LanceError, Killed):
            commit_staged(faulty, refs)
        broke = faulty.num_calls >= number
        where = faulty.log[min(number, faulty.num_calls) - 1]
        commit_staged(store, refs[:2])
        commit_staged(store, refs)
        assert live_rows(store) == [1, 2, 3, 7, 8, 9], where
        gc_late(store)
        assert (list_groups(store), list_claims(store), list_staged(store), broken(store)) == ({}, [], [], {}), where
    assert number > 30
