"""One staged transaction on the very version that it was planned on lands without a claim; anything else takes one."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.manifests import latest_version, list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.commit.transactions import load_transaction, read_transaction_file
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    RetryableConflictError,
    StoreError,
)
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.model import ALREADY_LANDED, LANDED, StagedTransaction
from lance_core.publish.registry.at_work import commits_at_work
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.fences import fence_path, list_fences, publishers, read_fence
from lance_core.publish.registry.landings import find_landed
from lance_core.publish.registry.ledger import recorded_version
from lance_core.publish.service import alone
from lance_core.publish.service.alone import publish_alone
from lance_core.publish.service.commit_staged import commit_staged
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.garbage import collect_garbage
from lance_core.publish.staging.staged import begin_attempt, finish_attempt
from lance_core.table.operations import Delete
from lance_core.table.transaction import Transaction
from tests.commit import commit_support
from tests.commit.commit_support import append, create, finish, group_records, live_rows, paths
from tests.io.faulty_stores import FaultyStore
from tests.protocol import protocol_support as jobs
from tests.protocol.protocol_support import Hook, HookStore, Killed, ids, is_manifest_put, rows_at, watched
from tests.publish.registry.test_group_fences import Interrupted
from tests.publish.service.test_interleaved import interleave

LATER = 10 * 24 * 3600.0
Key = tuple[str, str]


class WideStore(MemoryStore):
    """Far away: what can be asked at once is asked at once, in threads."""

    is_local = False
    is_wide = True


@pytest.fixture(params=["memory", "wide", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A table of the rows 1, 2, 3 at version 1."""
    kinds = {"memory": MemoryStore, "wide": WideStore}
    found: Store = LocalStore(tmp_path / "t") if request.param == "local" else kinds[request.param](uuid.uuid4().hex)
    create(found)
    return found


def memory() -> Store:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    return store


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of the official library: the ids 0 to 19, in two fragments, at version 2."""
    place = str(tmp_path / "table.lance")
    lance.write_dataset(rows_at(range(10)), place)
    lance.write_dataset(rows_at(range(10, 20)), place, mode="append")
    return place


def stage(store: Store, values: Sequence[int]) -> StagedTransaction:
    """A staged append that names the version it was planned on, as those of jobs do (`commit_support.stage` does not)."""
    newest = load_manifest(store)
    attempt = begin_attempt(
        store,
        identity=str(uuid.uuid4()),
        spec={"kind": "append"},
        read_version=newest.version,
        base=newest.transaction_file,
        lease_seconds=3600,
    )
    return finish(store, attempt, values)


def stage_removal(store: Store, fragment: int) -> StagedTransaction:
    """A staged delete of all rows of a fragment: it writes no file but its transaction."""
    newest = load_manifest(store)
    identity, version = str(uuid.uuid4()), newest.version
    attempt = begin_attempt(
        store, identity=identity, spec={"kind": "delete"}, read_version=version, base=newest.transaction_file
    )
    transaction = Transaction(version, identity, Delete((), (fragment,), "all of it"))
    return finish_attempt(store, attempt, transaction, rows=0, bytes=0, rows_deleted=3)


def key_of(ref: StagedTransaction) -> Key:
    return ref.identity, ref.attempt


def is_claim(path: str) -> bool:
    return path.rpartition("/")[0] == naming.COMMITS


def claim_puts(calls: Sequence[tuple[str, str]]) -> list[str]:
    """Claims that were written by these calls of a store; guards are of staging tasks."""
    return [path for name, path in calls if name.startswith(("put", "copy", "open")) and is_claim(path)]


def at_manifest(act: Callable[[], object]) -> Hook:
    """Does something right before the first put of a manifest."""
    done: list[object] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path) and not done:
            done.append(name)
            act()
        return action()

    return hook


def die() -> None:
    raise Killed


def kill_before_manifest(store: Store, ref: StagedTransaction) -> None:
    """Its commit dies between its fence and its manifest."""
    with contextlib.suppress(Killed):
        commit_staged(HookStore(store, at_manifest(die)), [ref])


def gc_late(store: Store) -> None:
    collect_garbage(store, now=time.time() + LATER)


def records(store: Store) -> set[str]:
    """What is left of staged work and commits."""
    folders = (naming.STAGED, naming.COMMITS, naming.FENCES)
    return {path for path in paths(store) if path.startswith(folders)} - group_records(store)


def orphans(store: Store) -> set[str]:
    """Whatever no version needs, but for the ledger and hints."""
    needed = {path for item in list_versions(store) for path in referenced_files(load_manifest(store, item.version))}
    keep = ("_versions/", f"{naming.LEDGER}/")
    return {path for path in paths(store) if not path.startswith(keep)} - needed - group_records(store)


def broken(store: Store) -> dict[int, set[str]]:
    """Files that a version names and that are gone."""
    there = paths(store)
    named = {item.version: {*referenced_files(load_manifest(store, item.version))} for item in list_versions(store)}
    return {version: files - there for version, files in named.items() if files - there}


def prune(uri: str) -> None:
    """The official library removes all old versions."""
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False)


def prune_behind_others(uri: str) -> None:
    """Others append, and the history is removed."""
    for number in (800, 801):
        lance.write_dataset(rows_at([number]), uri, mode="append")
    prune(uri)


# On the version that it was planned on

WORK: dict[str, tuple[Callable[[str], StagedTransaction], list[int], str]] = {
    "append": (lambda uri: jobs.append(uri, [100, 101]), [*range(20), 100, 101], "Append"),
    "delete": (lambda uri: jobs.delete(uri, "id in (3, 12)"), [item for item in range(20) if item not in (3, 12)], "Delete"),
    "update": (lambda uri: jobs.update(uri, {"id": "id + 500"}, "id = 3"), [*range(3), *range(4, 20), 503], "Update"),
}


@pytest.mark.parametrize("given", ["references", "identities", "the service"])
@pytest.mark.parametrize("cleanup", ["ours", "official"])
@pytest.mark.parametrize("work", WORK)
def test_it_lands_without_a_claim_and_its_version_names_the_staged_file(
    uri: str, work: str, cleanup: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, expected, operation = WORK[work]
    ref, store = act(uri), LocalStore(uri)
    place, calls = watched(store)
    if given == "the service":
        done = commit_staged(place, [ref])
    else:
        monkeypatch.setattr("lance_core.jobs.publish.commit.resolve_store", lambda *_: place)
        spec = CommitSpec.of([ref], uri=uri)
        done = run_job(spec if given == "references" else replace(spec, references=()))  # type: ignore[assignment]
    assert (done.version, done.identities, done.num_versions) == (3, {ref.identity: LANDED}, 1)
    assert (done.rows_added, done.rows_deleted) == (ref.num_rows, ref.num_deleted_rows)
    assert claim_puts(calls) == []
    # Nothing is written but fence, manifest, hint and ledger record.
    written = {path for name, path in calls if name.startswith(("put", "open"))}
    (fence,) = [path for path in written if path.endswith(".fence.json")]
    hint, ledger, version = naming.HINT_PATH, naming.ledger_path(ref.identity), naming.manifest_path(3)
    assert written <= {fence, hint, ledger, version}
    # The version names the staged file, which stays.
    name = ref.transaction_path.removeprefix(f"{naming.TRANSACTIONS}/")
    assert load_manifest(store).transaction_file == name
    assert records(store) == set()
    gc_late(store)
    assert ref.transaction_path in paths(store)
    assert ids(uri) == expected
    theirs = lance.dataset(uri).read_transaction(3)
    assert theirs is not None
    assert (type(theirs.operation).__name__, theirs.uuid, theirs.read_version) == (operation, ref.identity, 2)
    ours = load_transaction(store, 3)
    assert ours is not None
    assert ours.uuid == ref.identity
    assert ours.operation.name == operation
    # It goes with its version.
    lance.write_dataset(rows_at([900]), uri, mode="append")
    if cleanup == "ours":
        run_cleanup(store, plan_cleanup(store, older_than=dt.timedelta(0)))
    else:
        prune(uri)
    assert [item.version for item in list_versions(store)] == [4]
    assert ref.transaction_path not in paths(store)
    assert ids(uri) == sorted([*expected, 900])
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_LANDED}
    assert ids(uri) == sorted([*expected, 900])


def test_a_delete_of_whole_fragments_which_writes_no_file_lands_like_any_other(uri: str) -> None:
    ref, store = jobs.delete(uri, "id >= 10"), LocalStore(uri)
    assert commit_staged(store, [ref]).identities == {ref.identity: LANDED}
    assert ids(uri) == [*range(10)]
    theirs = lance.dataset(uri).read_transaction(3)
    assert theirs is not None
    assert type(theirs.operation).__name__ == "Delete"
    gc_late(store)
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})


def test_the_fence_comes_before_the_files_are_looked_for_and_the_manifest_behind_that(store: Store) -> None:
    ref = stage(store, (7,))
    place, calls = watched(store)
    commit_staged(place, [ref])
    order = [
        name for name, path in calls if path.endswith(".fence.json") or path.startswith("data/") or name == "put_if_absent"
    ]
    assert order[:3] == ["put_if_absent", "size", "put_if_absent"]
    deleted = [path for name, path in calls if name == "delete"]
    assert deleted[-1].endswith(".fence.json")
    assert recorded_version(store, ref.identity) == 2


def test_work_of_long_ago_asks_for_the_newest_version_before_it_decides(store: Store) -> None:
    old = [replace(stage(store, (value,)), planned_at=time.time() - 3600) for value in (7, 8)]
    place, calls = watched(store)
    assert commit_staged(place, old[:1]).identities == {old[0].identity: LANDED}
    assert claim_puts(calls) == []
    assert publish_alone(place, old[1]) is None
    assert list_fences(store) == {}, "nothing was decided on a version that is not the newest"
    ahead = replace(old[1], planned_at=time.time() + 3600)  # a clock that is wrong
    assert publish_alone(place, ahead) is None
    assert list_fences(store) == {}


def test_a_transaction_that_is_too_large_for_a_manifest_takes_a_claim(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "MAX_INLINE_TRANSACTION_SIZE", 10)
    ref = stage(store, (7,))
    assert publish_alone(store, ref) is None
    place, calls = watched(store)
    commit_staged(place, [ref])
    assert len(claim_puts(calls)) == 1
    assert (live_rows(store), records(store)) == ([1, 2, 3, 7], set())


def test_a_check_of_the_caller_is_made_with_a_claim(store: Store) -> None:
    ref = stage(store, (7,))
    place, calls = watched(store)

    def refuse(*_: object) -> None:
        raise IncompatibleConflictError("the gate is closed")

    with pytest.raises(IncompatibleConflictError, match="gate"):
        commit_staged(place, [ref], check=refuse)
    assert len(claim_puts(calls)) == 1
    assert (list_fences(store), list_claims(store), live_rows(store)) == ({}, [], [1, 2, 3])


# Again


@pytest.mark.parametrize("collected", [False, True], ids=["before gc", "after gc"])
@pytest.mark.parametrize("moved", [False, True], ids=["newest", "behind others"])
def test_the_second_commit_finds_it_landed(store: Store, collected: bool, moved: bool) -> None:
    ref = stage(store, (7,))
    assert commit_staged(store, [ref]).identities == {ref.identity: LANDED}
    if moved:
        append(store, (99,))
    if collected:
        gc_late(store)
    versions = latest_version(store)
    for _ in range(2):
        again = commit_staged(store, [ref])
        assert (again.identities, again.version) == ({ref.identity: ALREADY_LANDED}, 2)
        assert (again.num_versions, again.rows_added, again.fragments_added) == (0, 0, 0)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7, *[99] * moved], versions)
    assert commits_at_work(store) == []
    gc_late(store)
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})
    assert load_manifest(store, 2).transaction_file in ref.transaction_path


def test_the_second_commit_finds_it_landed_where_the_history_is_gone(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    lance.dataset(uri).tags.create("planned", 2)
    commit_staged(store, [ref])
    prune_behind_others(uri)
    assert [item.version for item in list_versions(store)] == [2, 5]
    again = commit_staged(store, [ref])
    assert (again.identities, again.num_versions) == ({ref.identity: ALREADY_LANDED}, 0)
    assert [item.version for item in list_versions(store)] == [2, 5]


def test_two_commits_at_once_land_it_once(store: Store) -> None:
    """The second one runs as a whole while the first is about to put its version."""
    ref = stage(store, (7,))
    seen: list[Any] = []
    place = HookStore(store, at_manifest(lambda: seen.append(commit_staged(store, [ref]))))
    late = commit_staged(place, [ref])
    assert seen[0].identities == {ref.identity: LANDED}
    assert (late.identities, late.num_versions, late.rows_added) == ({ref.identity: ALREADY_LANDED}, 0, 0)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7], 2)
    gc_late(store)
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})


# A table that has moved


def kill_at(number: int, *, behind: Callable[[str, str], bool]) -> tuple[Hook, list[tuple[str, str]]]:
    """Dies before the n-th call that comes behind one that `behind` accepts; those calls, the last one was never made."""
    calls: list[tuple[str, str]] = []
    begun: list[str] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if begun:
            calls.append((name, path))
            if len(calls) == number:
                raise Killed
        elif behind(name, path):
            begun.append(path)
        return action()

    return hook, calls


@pytest.mark.parametrize("is_old", [False, True], ids=["just planned", "planned long ago"])
def test_work_that_others_came_before_lands_once_by_a_claim(store: Store, is_old: bool) -> None:
    ref = stage(store, (7,))
    ref = replace(ref, planned_at=ref.planned_at - 3600) if is_old else ref
    append(store, (99,))
    place, calls = watched(store)
    assert commit_staged(place, [ref]).version == 3
    assert len({*claim_puts(calls)}) == 1
    assert live_rows(store) == [1, 2, 3, 7, 99]
    assert records(store) == set()
    commit_staged(store, [ref])
    assert live_rows(store) == [1, 2, 3, 7, 99]
    gc_late(store)
    assert (records(store), orphans(store)) == (set(), set())


def test_a_commit_that_goes_on_with_a_claim_is_one_commit_wherever_it_dies() -> None:
    number = 0
    while True:
        number += 1
        store = memory()
        ref = stage(store, (7,))
        append(store, (99,))
        hook, calls = kill_at(number, behind=lambda name, path: name == "put" and is_claim(path))
        with contextlib.suppress(Killed):
            commit_staged(HookStore(store, hook), [ref])
        if len(calls) < number:
            break
        fence = read_fence(store, *key_of(ref))
        assert fence is None or not fence.alone, calls[-1]
        assert [claim.attempts for claim in commits_at_work(store)] == [{ref.identity: ref.attempt}], calls[-1]
        commit_staged(store, [ref])
        assert live_rows(store) == [1, 2, 3, 7, 99], calls[-1]
        gc_late(store)
        assert (commits_at_work(store), records(store), orphans(store), broken(store)) == ([], set(), set(), {}), calls[-1]
    assert number > 15


def test_others_that_come_between_the_fence_and_the_manifest_are_no_doubt(store: Store) -> None:
    ref = stage(store, (7,))
    fences: list[Any] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            fences.append(read_fence(store, *key_of(ref)))
            if len(fences) == 1:
                append(store, (99,))
        return action()

    assert commit_staged(HookStore(store, hook), [ref]).version == 3
    assert [fence.alone for fence in fences] == [True, False]
    assert (live_rows(store), records(store), orphans(store)) == ([1, 2, 3, 7, 99], set(), set())


# Lost files


@pytest.mark.parametrize("given", ["the reference", "the transaction as well"])
def test_a_lost_data_file_is_named_and_no_fence_of_it_is_left(store: Store, given: str) -> None:
    ref = stage(store, (7,))
    transaction = read_transaction_file(store, ref.transaction_path)
    assert transaction is not None
    known = {ref: transaction} if given == "the transaction as well" else {}
    (lost,) = [path for path in paths(store) if path.startswith("data/") and naming.is_of_attempt(path, ref.attempt)]
    store.delete(lost)
    assert publish_alone(store, ref, known=known.get(ref)) is None
    assert list_fences(store) == {}
    with pytest.raises(IncompatibleConflictError, match=lost):
        commit_staged(store, [ref], known=known)
    assert (latest_version(store), commits_at_work(store)) == (1, [])
    assert not any(fence.alone for fence in list_fences(store).values())


def test_a_lost_staged_transaction_is_named_and_no_fence_of_it_is_left(store: Store) -> None:
    ref = stage(store, (7,))
    store.delete(ref.transaction_path)
    with pytest.raises(IncompatibleConflictError, match=ref.transaction_path):
        commit_staged(store, [ref])
    assert (list_fences(store), commits_at_work(store), latest_version(store)) == ({}, [], 1)


# Killed between fence and manifest


def test_a_killed_commit_is_named_and_the_next_one_lands_at_once(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    kill_before_manifest(store, ref)
    fence = read_fence(store, *key_of(ref))
    assert fence is not None
    assert (fence.alone, fence.withdraws) == (True, False)
    (found,) = commits_at_work(store)
    assert (found.commit, found.attempts, found.identities) == (fence.commit, {ref.identity: ref.attempt}, (ref.identity,))
    assert (found.since, list_claims(store)) == (fence.since, [])
    listed = CliRunner().invoke(cli, ["staged", "list", uri])
    assert listed.exit_code == 0, listed.output
    assert f"claimed by commit {fence.commit}" in listed.output
    gc_late(store)
    assert [item.commit for item in commits_at_work(store)] == [fence.commit], "it is wanted, and stays"
    began = time.monotonic()
    assert commit_staged(store, [ref]).identities == {ref.identity: LANDED}
    assert time.monotonic() - began < 30
    assert ids(uri) == [*range(20), 100]
    gc_late(store)
    assert (commits_at_work(store), records(store), orphans(store)) == ([], set(), set())


def test_a_commit_that_is_killed_behind_its_manifest_has_landed(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    faulty = FaultyStore(store, fail_at=1, when="after", error=Killed, matches=is_manifest_put)  # type: ignore[arg-type]
    with contextlib.suppress(Killed):
        commit_staged(faulty, [ref])
    assert [item.identities for item in commits_at_work(store)] == [(ref.identity,)]
    gc_late(store)
    assert ref.transaction_path in paths(store), "the version names it"
    assert (commits_at_work(store), records(store), recorded_version(store, ref.identity)) == ([], set(), 3)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_LANDED}
    assert (ids(uri), broken(store)) == ([*range(20), 100], {})


def test_nobody_knows_what_a_killed_commit_has_done_where_the_history_is_gone(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    kill_before_manifest(store, ref)
    prune_behind_others(uri)
    for _ in range(2):
        for refused in (
            lambda: find_landed(store, ref.identity, ref.read_version),
            lambda: commit_staged(store, [ref]),
            lambda: abort_attempt(store, *key_of(ref)),
        ):
            with pytest.raises(CommitStateUnknownError):
                refused()
        gc_late(store)
        assert len(commits_at_work(store)) == 1
    # A person has looked.
    abort_attempt(store, *key_of(ref), certain=True)
    gc_late(store)
    assert (records(store), orphans(store), 100 in ids(uri)) == (set(), set(), False)


def test_of_a_commit_that_has_ended_by_itself_it_is_known_where_the_history_is_gone(uri: str) -> None:
    """Its number had been pruned: what it put is a stray, which it removes; then it says that it has ended."""
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    with pytest.raises(RetryableConflictError):
        commit_staged(HookStore(store, at_manifest(lambda: prune_behind_others(uri))), [ref])
    fence = read_fence(store, *key_of(ref))
    assert fence is not None
    assert (fence.alone, fence.withdraws) == (False, False)
    assert commits_at_work(store) == []
    assert [item.version for item in list_versions(store)] == [4]
    assert find_landed(store, ref.identity, ref.read_version) is None
    assert ids(uri) == [*range(20), 800, 801]
    abort_attempt(store, *key_of(ref))
    assert 100 not in ids(uri)


@pytest.mark.parametrize("error", [StoreError, Killed], ids=["store error", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", ["append", "removal"])
def test_whichever_call_fails_it_lands_once(error: Callable[[str], BaseException], when: str, work: str) -> None:
    number, broke = 0, True
    while broke:
        number += 1
        store = memory()
        ref = stage(store, (7,)) if work == "append" else stage_removal(store, 0)
        expected = [1, 2, 3, 7] if work == "append" else []
        faulty = FaultyStore(store, fail_at=number, when=when, error=error)  # type: ignore[arg-type]
        with contextlib.suppress(LanceError, Killed):
            commit_staged(faulty, [ref])
        broke = faulty.num_calls >= number
        where = faulty.log[min(number, faulty.num_calls) - 1]
        commit_staged(store, [ref])
        commit_staged(store, [ref])
        assert (live_rows(store), latest_version(store)) == (expected, 2), where
        gc_late(store)
        assert (commits_at_work(store), records(store), orphans(store), broken(store)) == ([], set(), set(), {}), where
    assert number > 8


# Withdrawals at the same time


@pytest.mark.parametrize("work", ["append", "removal"])
@pytest.mark.parametrize("then", ["goes on", "dies"])
def test_an_abort_at_any_call_wins_or_loses_as_a_whole(work: str, then: str) -> None:
    number, outcomes = 0, set[bool]()
    while True:
        number += 1
        store = memory()
        append(store, (4, 5))
        ref = stage(store, (7,)) if work == "append" else stage_removal(store, 1)
        removed: list[str] = []

        def abort(store: Store = store, key: Key = key_of(ref), removed: list[str] = removed) -> None:
            with contextlib.suppress(IncompatibleConflictError):  # it has landed
                removed.extend(abort_attempt(store, *key))

        hook = Interrupted(number, abort, dies=then == "dies", race=None)
        with contextlib.suppress(IncompatibleConflictError, Killed):
            commit_staged(HookStore(store, hook), [ref])
        if hook.num_calls < number:
            break
        with contextlib.suppress(IncompatibleConflictError):
            commit_staged(store, [ref])
        undone, done = [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 7] if work == "append" else [1, 2, 3]
        assert live_rows(store) == (undone if removed else done), f"abort before call {number} of the commit"
        gc_late(store)
        assert (commits_at_work(store), broken(store)) == ([], {}), number
        # A commit with a claim that finds its work gone leaves its fence; what writes files needs none for that.
        left = {fence_path(*key_of(ref))} if work == "removal" else set()
        assert (records(store) - left, orphans(store) - left) == (set(), set()), number
        outcomes.add(bool(removed))
    assert outcomes == {False, True}
    assert number > 8


@pytest.mark.parametrize("work", ["append", "removal"])
def test_what_was_withdrawn_is_not_published_for_a_caller_that_had_read_it_before(store: Store, work: str) -> None:
    ref = stage(store, (7,)) if work == "append" else stage_removal(store, 0)
    transaction = read_transaction_file(store, ref.transaction_path)
    assert transaction is not None
    assert abort_attempt(store, *key_of(ref))
    with pytest.raises(IncompatibleConflictError, match="withdrawn"):
        commit_staged(store, [ref], known={ref: transaction})
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3], 1)


@pytest.mark.parametrize("other", ["abort", "gc", "commit", "abort and gc"])
@pytest.mark.parametrize("seed", range(25))
def test_whatever_runs_beside_it_in_any_order(other: str, seed: int) -> None:
    store = memory()
    ref = stage(store, (7,))
    beside: dict[str, list[Callable[[Store], object]]] = {
        "abort": [lambda place: abort_attempt(place, *key_of(ref))],
        "gc": [lambda place: collect_garbage(place, now=time.time() + LATER)],
        "commit": [lambda place: commit_staged(place, [ref])],
    }
    acts = [act for name in other.split(" and ") for act in beside[name]]
    committed, *_ = interleave(store, seed, lambda place: commit_staged(place, [ref]), *acts)
    rows = live_rows(store)
    assert rows == ([1, 2, 3] if isinstance(committed, LanceError) else [1, 2, 3, 7])
    assert other.startswith("abort") or rows == [1, 2, 3, 7]
    with contextlib.suppress(IncompatibleConflictError):
        commit_staged(store, [ref])
    gc_late(store)
    assert (commits_at_work(store), records(store), orphans(store), broken(store)) == ([], set(), set(), {})
    assert live_rows(store) in ([1, 2, 3], [1, 2, 3, 7])


# A put in doubt


class LatePut:
    """A hook: the first put of a manifest times out, and is done `delay` calls later; before, others may act."""

    def __init__(self, delay: int, *, before: Callable[[], object] | None = None) -> None:
        self._delay, self._before = delay, before
        self._late: Callable[[], Any] | None = None
        self._num_calls = self._at = 0
        self.has_landed = self.is_over = False

    def __call__(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        self._num_calls += 1
        if self._late is not None and self._num_calls >= self._at:
            self.land()
        if is_manifest_put(name, path) and not self._at:
            self._late, self._at = action, self._num_calls + self._delay
            if self._before is not None:
                self._before()
            raise StoreError("timed out")
        return action()

    def land(self) -> None:
        """It takes effect now."""
        late, self._late = self._late, None
        if late is not None:
            with contextlib.suppress(StoreError):
                late()
                self.has_landed = True


@pytest.mark.parametrize("beside", [False, True], ids=["by itself", "beside another writer"])
@pytest.mark.parametrize("work", ["append", "removal"])
def test_a_late_put_at_any_moment_lands_it_once_and_keeps_what_its_version_names(work: str, beside: bool) -> None:
    landed = set[bool]()
    for delay in range(1, 36):
        store = memory()
        append(store, (4, 5))
        ref = stage(store, (7,)) if work == "append" else stage_removal(store, 1)
        hook = LatePut(delay, before=(lambda store=store: append(store, (99,))) if beside else None)  # type: ignore[misc]
        with contextlib.suppress(LanceError):
            commit_staged(HookStore(store, hook), [ref])
        hook.land()
        landed.add(hook.has_landed)
        commit_staged(store, [ref])
        expected = [1, 2, 3, *([4, 5, 7] if work == "append" else []), *[99] * beside]
        assert (live_rows(store), broken(store)) == (expected, {}), delay
        assert latest_version(store) == 3 + beside, delay
        gc_late(store)
        assert (commits_at_work(store), records(store), orphans(store), broken(store)) == ([], set(), set(), {}), delay
        if hook.has_landed and work == "append":
            assert ref.transaction_path in paths(store), delay
    assert landed == ({False} if beside else {False, True})


@pytest.mark.parametrize("lands", [False, True])
def test_a_commit_in_doubt_says_so_and_keeps_the_staged_file(uri: str, lands: bool) -> None:
    """The put times out, and then the store does not answer at all."""
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    late: list[Callable[[], Any]] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            late.append(action)
        if late:
            raise StoreError("timed out")
        return action()

    with pytest.raises(StoreError, match="safe to make this commit again"):
        commit_staged(HookStore(store, hook), [ref])
    assert [item.attempts for item in commits_at_work(store)] == [{ref.identity: ref.attempt}]
    gc_late(store)
    assert ref.transaction_path in paths(store)
    if lands:
        late[0]()
        gc_late(store)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_LANDED if lands else LANDED}
    if not lands:
        with pytest.raises(AlreadyExistsError):
            late[0]()
    assert (ids(uri), broken(store)) == ([*range(20), 100], {})
    assert (ref.transaction_path in paths(store)) == lands
    gc_late(store)
    assert (commits_at_work(store), records(store), orphans(store)) == ([], set(), set())


def test_a_put_in_doubt_whose_store_answers_again_is_still_in_doubt_when_the_commit_gives_up(store: Store) -> None:
    """What follows fails by itself, with a claim; the first put may land all the same, and its fence goes on saying so."""
    ref = stage(store, (7,))
    late: list[Callable[[], Any]] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            if late:
                raise IncompatibleConflictError("as if somebody had made it impossible")
            late.append(action)
            raise StoreError("timed out")
        return action()

    with pytest.raises(IncompatibleConflictError):
        commit_staged(HookStore(store, hook), [ref])
    assert list_claims(store) == []
    assert [item.attempts for item in commits_at_work(store)] == [{ref.identity: ref.attempt}]
    found = publishers(store, *key_of(ref), group=ref.group)
    assert found is not None
    assert [fence.alone for fence in found] == [True, False]
    late[0]()
    assert find_landed(store, ref.identity, ref.read_version) == 2
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_LANDED}
    gc_late(store)
    assert (live_rows(store), records(store), orphans(store), broken(store)) == ([1, 2, 3, 7], set(), set(), {})


# References of other shapes


def _at_another_path(store: Store) -> StagedTransaction:
    ref = stage(store, (7,))
    other = naming.transaction_path(f"1-{ref.identity}.txn")
    store.put(other, store.get(ref.transaction_path))
    store.delete(ref.transaction_path)
    return replace(ref, transaction_path=other)


def _that_may_have_landed_before(store: Store) -> StagedTransaction:
    return replace(stage(store, (7,)), later_only=False)


def _that_does_not_name_its_version(store: Store) -> StagedTransaction:
    return replace(stage(store, (7,)), base="")


def _without_an_own_transaction(store: Store) -> StagedTransaction:
    return replace(stage(store, (7,)), plain=False)


SHAPES = (
    _at_another_path,
    _that_may_have_landed_before,
    _that_does_not_name_its_version,
    _without_an_own_transaction,
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__.strip("_"))
def test_a_reference_of_another_shape_takes_a_claim(store: Store, shape: Callable[[Store], StagedTransaction]) -> None:
    ref = shape(store)
    before = paths(store)
    place, calls = watched(store)
    assert publish_alone(place, ref) is None
    assert (calls, paths(store)) == ([], before), "nothing was decided, and nothing asked"
    fences: list[Any] = []
    commit_staged(HookStore(place, at_manifest(lambda: fences.append(read_fence(store, *key_of(ref))))), [ref])
    assert len({*claim_puts(calls)}) == 1
    assert [fence.alone for fence in fences] == [False]
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7], 2)
    commit_staged(store, [ref])
    gc_late(store)
    assert (live_rows(store), commits_at_work(store), records(store), orphans(store)) == ([1, 2, 3, 7], [], set(), set())


def test_work_that_creates_or_replaces_the_table_takes_a_claim() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    for overwrite in (False, True):
        ref = commit_support.stage(store, (7,), overwrite=overwrite)
        assert (ref.read_version, ref.plain) == (int(overwrite), False)
        for shown in (ref, replace(ref, base="x", later_only=True, planned_at=time.time())):
            assert publish_alone(store, shown) is None
        place, calls = watched(store)
        commit_staged(place, [ref])
        assert len({*claim_puts(calls)}) == 1
    assert (live_rows(store), records(store)) == ([7], set())


def test_work_that_was_planned_on_another_table_takes_a_claim_and_is_refused(tmp_path: Path) -> None:
    """The table was made again within the minute: the same number, another version."""
    store = LocalStore(tmp_path / "t")
    create(store)
    ref = stage(store, (7,))
    for entry in list_versions(store):
        store.delete(entry.path)
    create(store, (50, 51))
    place, calls = watched(store)
    assert publish_alone(place, ref) is None
    with pytest.raises(IncompatibleConflictError, match="created again"):
        commit_staged(place, [ref])
    assert len({*claim_puts(calls)}) == 1
    assert (live_rows(store), commits_at_work(store)) == ([50, 51], [])


# Numbers that were pruned


@pytest.mark.parametrize("how", ["overwrite", "restore"])
def test_a_number_that_was_pruned_below_a_replacement_of_the_table(uri: str, how: str) -> None:
    """A tag keeps the version that it was planned on, and the one behind it is gone. If the commit says that it landed, it
    did before the replacement, which is a serial order of both; the rows of others are as they were."""
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    lance.dataset(uri).tags.create("planned", 2)
    lance.write_dataset(rows_at([800]), uri, mode="append")
    if how == "overwrite":
        lance.write_dataset(rows_at([900]), uri, mode="overwrite")
    else:
        lance.dataset(uri, version=2).restore()
    prune(uri)
    assert [item.version for item in list_versions(store)] == [2, 4]
    before = ids(uri)
    try:
        assert commit_staged(store, [ref]).version == 3
    except RetryableConflictError:
        assert [item.version for item in list_versions(store)] == [2, 4]
    assert ids(uri) == before


def test_a_landing_whose_version_is_gone_is_not_doubled(store: Store) -> None:
    """As a cleanup leaves it that was killed between the manifests and the files."""
    ref = stage(store, (7,))
    commit_staged(store, [ref])
    append(store, (99,))
    (gone,) = [entry for entry in list_versions(store) if entry.version == 2]
    store.delete(gone.path)
    assert commit_staged(store, [ref]).version == 2
    assert live_rows(store) == [1, 2, 3, 7, 99]
    again = commit_staged(store, [replace(ref, planned_at=0.0)])
    assert again.identities == {ref.identity: ALREADY_LANDED}
    assert live_rows(store) == [1, 2, 3, 7, 99]


def test_the_second_commit_leaves_nothing_behind(store: Store) -> None:
    ref = stage(store, (7,))
    commit_staged(store, [ref])
    before = paths(store)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_LANDED}
    assert paths(store) == before
