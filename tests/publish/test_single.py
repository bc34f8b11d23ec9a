"""One staged transaction on the very version that it was planned on is put as it is; anything else is left to `commit`."""

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
from lance_core.commit.transactions import load_transaction
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
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish import publisher
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit, commit_staged
from lance_core.publish.decisions import decision_path, look
from lance_core.publish.history import find_committed
from lance_core.publish.intent import list_intents
from lance_core.publish.model import ALREADY_COMMITTED, COMMITTED, StagedTransaction
from lance_core.publish.publisher import CommitRequest, publish_single
from lance_core.publish.stage import begin_attempt, finish_attempt
from lance_core.table.operations import Delete
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import append, create, finish, live_rows, paths, stage
from tests.io.faulty_stores import FaultyStore
from tests.protocol import protocol_support as jobs
from tests.protocol.protocol_support import Hook, HookStore, Killed, ids, is_manifest_put, rows_at, watched
from tests.publish.publish_support import (
    LATER,
    Interrupted,
    Key,
    LatePut,
    WideStore,
    at_manifest,
    broken,
    committed_at,
    gc_late,
    intents,
    key_of,
    kill_before_manifest,
    memory,
    orphans,
    records,
)
from tests.publish.test_interleaved import interleave


@pytest.fixture(params=["memory", "wide", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A table of the rows 1, 2, 3 at version 1."""
    kinds = {"memory": MemoryStore, "wide": WideStore}
    found: Store = LocalStore(tmp_path / "t") if request.param == "local" else kinds[request.param](uuid.uuid4().hex)
    create(found)
    return found


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of the official library: the ids 0 to 19, in two fragments, at version 2."""
    place = str(tmp_path / "table.lance")
    lance.write_dataset(rows_at(range(10)), place)
    lance.write_dataset(rows_at(range(10, 20)), place, mode="append")
    return place


def stage_removal(store: Store, fragment: int) -> StagedTransaction:
    """A staged delete of all rows of a fragment: it writes no file but its transaction."""
    newest = load_manifest(store)
    identity, version = str(uuid.uuid4()), newest.version
    attempt = begin_attempt(
        store, identity=identity, spec={"kind": "delete"}, read_version=version, base=newest.transaction_file
    )
    transaction = Transaction(version, identity, Delete((), (fragment,), "all of it"))
    return finish_attempt(store, attempt, transaction, rows=0, bytes=0, rows_deleted=3)


def intent_puts(calls: Sequence[tuple[str, str]]) -> set[str]:
    """Intents that were written by these calls of a store."""
    wanted = f"{naming.INTENTS}/"
    return {path for name, path in calls if name.startswith(("put", "copy", "open")) and path.startswith(wanted)}


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
def test_its_version_names_the_staged_file_which_goes_with_it(
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
    assert (done.version, done.identities, done.num_versions) == (3, {ref.identity: COMMITTED}, 1)
    assert (done.rows_added, done.rows_deleted) == (ref.num_rows, ref.num_deleted_rows)
    # Nothing is written but intent, manifest, hint and decision.
    written = {path for name, path in calls if name.startswith(("put", "open"))}
    (intent,) = intent_puts(calls)
    decision = decision_path(ref.identity, 2)
    assert written == {intent, naming.manifest_path(3), decision, naming.HINT_PATH}
    before = calls[: calls.index(("put_if_absent", naming.manifest_path(3)))]
    assert not [path for name, path in before if name.startswith("list") and path.startswith("_versions")]
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
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_COMMITTED}
    assert ids(uri) == sorted([*expected, 900])


def test_a_delete_of_whole_fragments_which_writes_no_file_is_published_like_any_other(uri: str) -> None:
    ref, store = jobs.delete(uri, "id >= 10"), LocalStore(uri)
    assert commit_staged(store, [ref]).identities == {ref.identity: COMMITTED}
    assert ids(uri) == [*range(10)]
    theirs = lance.dataset(uri).read_transaction(3)
    assert theirs is not None
    assert type(theirs.operation).__name__ == "Delete"
    gc_late(store)
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})


def test_the_intent_and_the_look_for_the_files_come_before_the_manifest(store: Store) -> None:
    ref = stage(store, (7,))
    place, calls = watched(store)
    commit_staged(place, [ref])
    (intent,) = intent_puts(calls)
    moments = [
        "intent" if path == intent else name
        for name, path in calls
        if (path == intent and name == "put") or path.startswith("data/") or name == "put_if_absent"
    ]
    assert {*moments[:2]} == {"intent", "size"}, "one beside the other"
    assert moments[2:] == ["put_if_absent", "put_if_absent"]
    deleted = [path for name, path in calls if name == "delete"]
    assert deleted[-1] == intent, "until everything else is gone it says what is left"
    assert committed_at(store, ref.identity) == 2


def stage_at(store: Store, value: int, *, ago: float) -> StagedTransaction:
    """An append that was planned `ago` seconds ago, by the clock of its task."""
    with pytest.MonkeyPatch.context() as patch:
        moment = time.time() - ago
        patch.setattr(time, "time", lambda: moment)
        return stage(store, (value,))


def test_work_of_long_ago_asks_for_the_newest_version_first(store: Store) -> None:
    old = [stage_at(store, value, ago=3600) for value in (7, 8)]
    ahead = stage_at(store, 9, ago=-3600)  # a clock that is wrong
    place, calls = watched(store)
    assert commit_staged(place, old[:1]).identities == {old[0].identity: COMMITTED}
    assert len(intent_puts(calls)) == 1
    for item in (old[1], ahead):
        place, calls = watched(store)
        assert publish_single(place, item, states={}) is None
        assert intent_puts(calls) == set(), "nothing is begun on a version that is not the newest"


def test_a_transaction_too_large_for_a_manifest_is_left_to_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "MAX_INLINE_TRANSACTION_SIZE", 10)
    ref = stage(store, (7,))
    assert publish_single(store, ref, states={}) is None
    assert list_intents(store) == []
    commit_staged(store, [ref])
    assert (live_rows(store), records(store)) == ([1, 2, 3, 7], set())


def test_a_check_of_the_caller_is_made_by_the_commit(store: Store) -> None:
    ref = stage(store, (7,))
    place, calls = watched(store)

    def refuse(*_: object) -> None:
        raise IncompatibleConflictError("the gate is closed")

    with pytest.raises(IncompatibleConflictError, match="gate"):
        commit_staged(place, [ref], check=refuse)
    assert len(intent_puts(calls)) == 1
    assert (list_intents(store), live_rows(store)) == ([], [1, 2, 3])


# Again


@pytest.mark.parametrize("collected", [False, True], ids=["before gc", "after gc"])
@pytest.mark.parametrize("moved", [False, True], ids=["newest", "behind others"])
def test_the_second_commit_finds_it_committed(store: Store, collected: bool, moved: bool) -> None:
    ref = stage(store, (7,))
    assert commit_staged(store, [ref]).identities == {ref.identity: COMMITTED}
    if moved:
        append(store, (99,))
    if collected:
        gc_late(store)
    versions = latest_version(store)
    for _ in range(2):
        again = commit_staged(store, [ref])
        assert (again.identities, again.version) == ({ref.identity: ALREADY_COMMITTED}, 2)
        assert (again.num_versions, again.rows_added, again.fragments_added) == (0, 0, 0)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7, *[99] * moved], versions)
    assert intents(store) == []
    gc_late(store)
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})
    assert load_manifest(store, 2).transaction_file in ref.transaction_path


def test_the_second_commit_finds_it_committed_where_the_history_is_gone(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    lance.dataset(uri).tags.create("planned", 2)
    commit_staged(store, [ref])
    prune_behind_others(uri)
    assert [item.version for item in list_versions(store)] == [2, 5]
    again = commit_staged(store, [ref])
    assert (again.identities, again.num_versions) == ({ref.identity: ALREADY_COMMITTED}, 0)
    assert [item.version for item in list_versions(store)] == [2, 5]


def test_two_commits_at_once_land_it_once(store: Store) -> None:
    """The second one runs as a whole while the first is about to put its version."""
    ref = stage(store, (7,))
    seen: list[Any] = []
    place = HookStore(store, at_manifest(1, lambda: seen.append(commit_staged(store, [ref]))))
    late = commit_staged(place, [ref])
    assert seen[0].identities == {ref.identity: COMMITTED}
    assert (late.identities, late.num_versions, late.rows_added) == ({ref.identity: ALREADY_COMMITTED}, 0, 0)
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
def test_work_that_others_came_before_is_committed_once(store: Store, is_old: bool) -> None:
    ref = stage_at(store, 7, ago=3600 if is_old else 0)
    append(store, (99,))
    place, calls = watched(store)
    assert commit_staged(place, [ref]).version == 3
    assert len(intent_puts(calls)) == 2 - is_old, "what was planned long ago is not tried in vain"
    assert live_rows(store) == [1, 2, 3, 7, 99]
    assert records(store) == set()
    commit_staged(store, [ref])
    assert live_rows(store) == [1, 2, 3, 7, 99]
    gc_late(store)
    assert (records(store), orphans(store)) == (set(), set())


def test_a_commit_that_goes_on_behind_a_try_in_vain_may_die_anywhere() -> None:
    number = 0
    while True:
        number += 1
        store = memory()
        ref = stage(store, (7,))
        append(store, (99,))
        hook, calls = kill_at(number, behind=is_manifest_put)
        with contextlib.suppress(Killed):
            commit_staged(HookStore(store, hook), [ref])
        if len(calls) < number:
            break
        commit_staged(store, [ref])
        assert live_rows(store) == [1, 2, 3, 7, 99], calls[-1]
        gc_late(store)
        assert (records(store), orphans(store), broken(store)) == (set(), set(), {}), calls[-1]
    assert number > 15


def test_others_that_come_between_the_intent_and_the_manifest_are_no_doubt(store: Store) -> None:
    ref = stage(store, (7,))
    seen: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            seen.append(len(list_intents(store)))
            if len(seen) == 1:
                append(store, (99,))
        return action()

    assert commit_staged(HookStore(store, hook), [ref]).version == 3
    assert seen == [1, 1]
    assert (live_rows(store), records(store), orphans(store)) == ([1, 2, 3, 7, 99], set(), set())


# Lost files


def test_a_lost_data_file_is_named_and_no_intent_of_it_is_left(store: Store) -> None:
    ref = stage(store, (7,))
    (lost,) = [path for path in paths(store) if path.startswith("data/") and naming.is_of_attempt(path, ref.attempt)]
    store.delete(lost)
    assert publish_single(store, ref, states={}) is None
    assert list_intents(store) == []
    with pytest.raises(IncompatibleConflictError, match=lost):
        commit_staged(store, [ref])
    assert (latest_version(store), list_intents(store)) == (1, [])


def test_the_decision_has_the_transaction_so_its_file_may_be_lost(store: Store) -> None:
    ref = stage(store, (7,))
    store.delete(ref.transaction_path)
    assert commit_staged(store, [ref]).identities == {ref.identity: COMMITTED}
    assert (live_rows(store), records(store)) == ([1, 2, 3, 7], set())


# Killed between intent and manifest


def test_a_killed_commit_is_named_and_the_next_one_goes_on_at_once(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    kill_before_manifest(store, [ref])
    (found,) = list_intents(store)
    assert (found.attempts, found.base) == ({ref.identity: ref.attempt}, 2)
    listed = CliRunner().invoke(cli, ["staged", "list", uri])
    assert listed.exit_code == 0, listed.output
    assert f"in a commit: {found.commit}" in listed.output
    gc_late(store)
    assert list_intents(store) == [found], "it is wanted, and stays"
    began = time.monotonic()
    assert commit_staged(store, [ref]).identities == {ref.identity: COMMITTED}
    assert time.monotonic() - began < 30
    assert ids(uri) == [*range(20), 100]
    gc_late(store)
    assert (records(store), orphans(store)) == (set(), set())


def test_a_commit_that_is_killed_behind_its_manifest_is_found(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    faulty = FaultyStore(store, fail_at=1, when="after", error=Killed, matches=is_manifest_put)  # type: ignore[arg-type]
    with contextlib.suppress(Killed):
        commit_staged(faulty, [ref])
    assert intents(store) == [{ref.identity: ref.attempt}]
    gc_late(store)
    assert ref.transaction_path in paths(store), "the version names it"
    assert (records(store), committed_at(store, ref.identity)) == (set(), 3)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_COMMITTED}
    assert (ids(uri), broken(store)) == ([*range(20), 100], {})


def test_nobody_knows_what_a_killed_commit_has_done_where_the_history_is_gone(uri: str) -> None:
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    kill_before_manifest(store, [ref])
    prune_behind_others(uri)
    for _ in range(2):
        for refused in (
            lambda: find_committed(store, ref.identity, ref.read_version),
            lambda: commit_staged(store, [ref]),
            lambda: abort_attempt(store, *key_of(ref)),
        ):
            with pytest.raises(CommitStateUnknownError):
                refused()
        gc_late(store)
        assert intents(store) == [{ref.identity: ref.attempt}]
        assert len(list_versions(store)) == 1, "what is refused leaves the table as it was"
    # A person has looked.
    abort_attempt(store, *key_of(ref), certain=True)
    gc_late(store)
    assert (records(store), orphans(store), 100 in ids(uri)) == (set(), set(), False)


def test_of_a_commit_that_has_ended_by_itself_it_is_known_where_the_history_is_gone(uri: str) -> None:
    """Its number had been pruned: what it put is a stray, which it removes; then it says that it has ended."""
    ref, store = jobs.append(uri, [100]), LocalStore(uri)
    with pytest.raises(RetryableConflictError):
        commit_staged(HookStore(store, at_manifest(1, lambda: prune_behind_others(uri))), [ref])
    assert intents(store) == []
    assert [item.version for item in list_versions(store)] == [4]
    assert find_committed(store, ref.identity, ref.read_version) is None
    assert ids(uri) == [*range(20), 800, 801]
    abort_attempt(store, *key_of(ref))
    assert 100 not in ids(uri)


@pytest.mark.parametrize("error", [StoreError, Killed], ids=["store error", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", ["append", "removal"])
def test_whichever_call_fails_it_is_committed_once(error: Callable[[str], BaseException], when: str, work: str) -> None:
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
        assert (records(store), orphans(store), broken(store)) == (set(), set(), {}), where
    assert number > 8


# Aborts at the same time


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
            with contextlib.suppress(IncompatibleConflictError):  # it was committed
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
        assert (records(store), orphans(store), broken(store)) == (set(), set(), {}), number
        outcomes.add(bool(removed))
    assert outcomes == {False, True}
    assert number > 8


@pytest.mark.parametrize("work", ["append", "removal"])
def test_what_was_aborted_is_not_published_for_a_caller_that_had_read_it_before(store: Store, work: str) -> None:
    ref = stage(store, (7,)) if work == "append" else stage_removal(store, 0)
    before = look(store, ref.identity)
    assert abort_attempt(store, *key_of(ref))
    assert publish_single(store, ref, states={ref.identity: before}) is None
    request = CommitRequest(refs=(ref,), states={ref.identity: before})
    with pytest.raises(IncompatibleConflictError, match="aborted"):
        commit(store, request)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3], 2)
    assert list_intents(store) == []


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
    assert (records(store), orphans(store), broken(store)) == (set(), set(), {})
    assert live_rows(store) in ([1, 2, 3], [1, 2, 3, 7])


# A put in doubt


@pytest.mark.parametrize("beside", [False, True], ids=["by itself", "beside another writer"])
@pytest.mark.parametrize("work", ["append", "removal"])
def test_a_late_put_at_any_moment_counts_once_and_keeps_what_its_version_names(work: str, beside: bool) -> None:
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
        assert (records(store), orphans(store), broken(store)) == (set(), set(), {}), delay
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
    assert intents(store)[0] == {ref.identity: ref.attempt}
    gc_late(store)
    assert ref.transaction_path in paths(store)
    if lands:
        late[0]()
        gc_late(store)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_COMMITTED if lands else COMMITTED}
    if not lands:
        with pytest.raises(AlreadyExistsError):
            late[0]()
    assert (ids(uri), broken(store)) == ([*range(20), 100], {})
    named = naming.transaction_path(load_manifest(store).transaction_file)
    assert (ref.transaction_path in paths(store)) == (ref.transaction_path == named)
    gc_late(store)
    assert (records(store), orphans(store)) == (set(), set())


def test_a_put_in_doubt_whose_store_answers_again_is_still_in_doubt_when_the_commit_gives_up(store: Store) -> None:
    """What follows fails by itself, in the commit; the first put may land all the same, and its intent goes on saying so."""
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
    assert intents(store) == [{ref.identity: ref.attempt}]
    late[0]()
    assert find_committed(store, ref.identity, ref.read_version) == 2
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_COMMITTED}
    gc_late(store)
    assert (live_rows(store), records(store), orphans(store), broken(store)) == ([1, 2, 3, 7], set(), set(), {})


# References of other shapes


def _without_the_number_of_its_decision(store: Store) -> StagedTransaction:
    return replace(stage(store, (7,)), number=0)


def _of_another_kind(store: Store) -> StagedTransaction:
    return replace(stage(store, (7,)), operation="compact")


SHAPES = (_without_the_number_of_its_decision, _of_another_kind)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__.strip("_"))
def test_a_reference_of_another_shape_is_left_to_the_commit(
    store: Store, shape: Callable[[Store], StagedTransaction]
) -> None:
    ref = shape(store)
    before = paths(store)
    place, calls = watched(store)
    assert publish_single(place, ref, states={}) is None
    assert (calls, paths(store)) == ([], before), "nothing was decided, and nothing asked"
    commit_staged(place, [ref])
    assert len(intent_puts(calls)) == 1
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7], 2)
    commit_staged(store, [ref])
    gc_late(store)
    assert (live_rows(store), records(store), orphans(store)) == ([1, 2, 3, 7], set(), set())


def test_work_that_does_not_say_its_version_is_left_to_the_commit(store: Store) -> None:
    attempt = begin_attempt(store, identity=str(uuid.uuid4()), spec={"kind": "append"}, read_version=1)
    ref = finish(store, attempt, (7,))
    place, calls = watched(store)
    assert publish_single(place, ref, states={}) is None
    assert intent_puts(calls) == set(), "nothing was begun"
    commit_staged(store, [ref])
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3, 7], 2)


def test_work_that_creates_or_replaces_the_table_is_left_to_the_commit() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    for overwrite in (False, True):
        ref = stage(store, (7,), overwrite=overwrite)
        assert ref.read_version == int(overwrite)
        for shown in (ref, replace(ref, operation="append", read_version=1)):
            assert publish_single(store, shown, states={}) is None
        place, calls = watched(store)
        commit_staged(place, [ref])
        assert len(intent_puts(calls)) == 1
    assert (live_rows(store), records(store)) == ([7], set())


def test_work_that_was_planned_on_another_table_is_refused(tmp_path: Path) -> None:
    """The table was made again within the minute: the same number, another version."""
    store = LocalStore(tmp_path / "t")
    create(store)
    ref = stage(store, (7,))
    for entry in list_versions(store):
        store.delete(entry.path)
    create(store, (50, 51))
    assert publish_single(store, ref, states={}) is None
    with pytest.raises(IncompatibleConflictError, match="created again"):
        commit_staged(store, [ref])
    assert (live_rows(store), list_intents(store)) == ([50, 51], [])


# Numbers that were pruned


@pytest.mark.parametrize("how", ["overwrite", "restore"])
def test_a_number_that_was_pruned_below_a_replacement_of_the_table(uri: str, how: str) -> None:
    """A tag keeps the version that it was planned on, and the one behind it is gone. If the commit says that it was
    committed, it was so before the replacement, which is a serial order of both; the rows of others are as they were."""
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


@pytest.mark.parametrize("others", [1, 2, 3, 5])
def test_a_delete_that_slept_before_its_put_is_not_told_to_be_committed(uri: str, others: int) -> None:
    """Others commit and prune all but the newest version; then the delete puts its version under a number that is free."""
    store = LocalStore(uri)
    gone = ids(uri)[0]
    ref = run_job(DeleteSpec(uri=uri, identity=str(uuid.uuid4()), predicate=f"id = {gone}"))
    assert isinstance(ref, StagedTransaction)

    def sleep() -> None:
        for number in range(others):
            lance.write_dataset(rows_at([800 + number]), uri, mode="append")
        prune(uri)

    for place in (HookStore(store, at_manifest(1, sleep)), store, store):
        try:
            told = commit_staged(place, [ref]).identities[ref.identity]
        except LanceError:
            told = "refused"
        assert (told == "refused") == (gone in ids(uri))


def test_what_was_committed_in_a_version_that_is_gone_is_not_doubled(store: Store) -> None:
    """As a cleanup leaves it that was killed between the manifests and the files."""
    ref = stage(store, (7,))
    commit_staged(store, [ref])
    append(store, (99,))
    (gone,) = [entry for entry in list_versions(store) if entry.version == 2]
    store.delete(gone.path)
    assert commit_staged(store, [ref]).version == 2
    assert live_rows(store) == [1, 2, 3, 7, 99]
    again = commit_staged(store, [ref])
    assert again.identities == {ref.identity: ALREADY_COMMITTED}
    assert live_rows(store) == [1, 2, 3, 7, 99]


def test_the_second_commit_leaves_nothing_behind(store: Store) -> None:
    ref = stage(store, (7,))
    commit_staged(store, [ref])
    before = paths(store)
    assert commit_staged(store, [ref]).identities == {ref.identity: ALREADY_COMMITTED}
    assert paths(store) == before
