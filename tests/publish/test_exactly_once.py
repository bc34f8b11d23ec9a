"""Exactly once: whatever breaks at whichever store call, a retry leaves each row once and gc leaves no orphan."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal

import lance
import pytest

from lance_core.commit.manifests import latest_version, list_versions, load_manifest
from lance_core.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    IncompatibleConflictError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
)
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish import history
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from lance_core.publish.decisions import CommittedWork, say_committed, settle_by_hand
from lance_core.publish.history import find_committed, settle_history
from lance_core.publish.intent import list_intents
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.stage import begin, begin_attempt, find_staged
from tests.commit.commit_support import CONTENT, append, create, finish, live_rows, paths, stage
from tests.io.faulty_stores import FaultyStore
from tests.protocol.protocol_support import Killed, is_manifest_put
from tests.publish.publish_support import MEMORY, committed_at, decisions, gc_late, is_decision, orphans, prune


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex)


def stage_and_commit(store: Store, identity: str) -> None:
    """What an orchestrator runs, and runs again after any failure."""
    from lance_core.publish.attempts import find_finished

    if committed_at(store, identity) is not None:
        return
    staged = find_finished(store, identity)
    if staged is None or find_committed(store, identity, staged.read_version) is None:
        staged = find_staged(store, identity) or stage(store, (7, 8), identity=identity)
    commit_staged(store, [staged])


@pytest.mark.parametrize("exists", [False, True], ids=["creates", "appends"])
@pytest.mark.parametrize("error", [StoreError, Killed], ids=["store error", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_every_store_call_may_fail(exists: bool, error: Callable[[str], BaseException], when: str) -> None:
    """Fail one call, then run the whole thing again: rows and versions exact; gc leaves nothing behind."""
    number, broke = 0, True
    base = [1, 2, 3] if exists else []
    while broke:
        number += 1
        inner = memory()
        if exists:
            create(inner)
        faulty = FaultyStore(inner, fail_at=number, when=when, error=error)  # type: ignore[arg-type]
        identity = str(uuid.uuid4())
        with contextlib.suppress(LanceError, Killed):
            stage_and_commit(faulty, identity)
        broke = faulty.num_calls >= number
        stage_and_commit(inner, identity)
        stage_and_commit(inner, identity)
        assert live_rows(inner) == sorted([*base, 7, 8]), faulty.log[number - 1]
        assert latest_version(inner) == 1 + exists, faulty.log[number - 1]
        gc_late(inner)
        assert orphans(inner) == set(), faulty.log[number - 1]
        assert live_rows(inner) == sorted([*base, 7, 8])
    assert number > 20


@pytest.mark.parametrize("when", ["before", "after"])
def test_history_pruned_after_a_kill_never_doubles(when: str) -> None:
    """Kill at each call, then lose all old versions, then retry: found, refused or committed, but never twice."""
    number, broke, unknown = 0, True, 0
    while broke:
        number += 1
        inner = memory()
        create(inner)
        staged = stage(inner, (7, 8))
        faulty = FaultyStore(inner, fail_at=number, when=when, error=Killed)  # type: ignore[arg-type]
        with contextlib.suppress(Killed):
            commit_staged(faulty, [staged])
        broke = faulty.num_calls >= number
        append(inner, (9,))
        append(inner, (10,))
        prune(inner)
        try:
            commit_staged(inner, [staged])
        except CommitStateUnknownError:
            unknown += 1
        except RetryableConflictError:
            # Never published, and too much history is gone to judge it: it may be taken back and staged again.
            abort_attempt(inner, staged.identity, staged.attempt)
            commit_staged(inner, [stage(inner, (7, 8), identity=staged.identity)])
        assert live_rows(inner).count(7) == 1 or unknown, faulty.log[number - 1]
        assert live_rows(inner).count(7) <= 1
    assert 0 < unknown < number


def test_our_cleanup_decides_what_the_versions_that_go_carry() -> None:
    store = memory()
    create(store)
    staged = stage(store, (7,))
    waiting = stage(store, (8,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=is_decision), [staged])
    assert committed_at(store, staged.identity) is None
    append(store, (9,))
    settle_history(store, [entry.version for entry in list_versions(store)][:-1], newest=latest_version(store))
    prune(store)
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    assert find_committed(store, waiting.identity, waiting.read_version) is None


def test_committing_twice_adds_nothing() -> None:
    store = memory()
    create(store)
    staged = [stage(store, (7,)), stage(store, (8, 9))]
    first = commit_staged(store, staged)
    assert (first.version, first.num_versions, first.rows_added, first.fragments_added) == (2, 1, 3, 2)
    assert set(first.identities.values()) == {"committed"}
    again = commit_staged(store, staged)
    assert (again.version, again.num_versions, again.rows_added) == (2, 0, 0)
    assert set(again.identities.values()) == {"already_committed"}
    assert live_rows(store) == [1, 2, 3, 7, 8, 9]
    assert list_intents(store) == []
    assert list_staged(store) == []


def test_same_set_committed_at_once() -> None:
    """Two committers that both looked before either published: the second finds the first's work in the log."""
    store = memory()
    create(store)
    staged = [stage(store, (7,)), stage(store, (8,))]
    extra = stage(store, (9,))
    results = []

    class Racing(FaultyStore):
        def _call(self, name, path, action):  # type: ignore[no-untyped-def]
            if name == "put_if_absent" and path.startswith("_versions/") and not results:
                results.append(commit_staged(store, staged))
            return super()._call(name, path, action)

    late = commit_staged(Racing(store, fail_at=0), [*staged, extra])
    assert results[0].version == 2
    assert late.version == 3
    assert late.identities == {
        staged[0].identity: "already_committed",
        staged[1].identity: "already_committed",
        extra.identity: "committed",
    }
    assert live_rows(store) == [1, 2, 3, 7, 8, 9]


def test_zombie_and_retry_of_one_identity() -> None:
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    zombie = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    retry = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    winner = finish(store, retry, (7, 8))
    assert finish(store, zombie, (7, 8)) == winner
    commit_staged(store, [winner])
    assert live_rows(store) == [1, 2, 3, 7, 8]
    assert orphans(store) == set()


def test_an_attempt_that_was_given_up_cannot_finish() -> None:
    store = memory()
    create(store)
    attempt = begin_attempt(store, identity="job-1", spec={"kind": "append"}, read_version=1, lease_seconds=1)
    gc_late(store)
    with pytest.raises(RetryableConflictError, match="aborted while"):
        finish(store, attempt, (7,))
    assert find_staged(store, "job-1") is None
    assert orphans(store) == set()


def test_gc_respects_leases_and_wanted_work() -> None:
    store = memory()
    create(store)
    wanted = stage(store, (7,))
    running = begin_attempt(store, identity="running", spec={}, read_version=1)
    finish_later = begin_attempt(store, identity="dead", spec={}, read_version=1, lease_seconds=0)
    from tests.commit.commit_support import write_fragment

    write_fragment(store, (8,), attempt=running.attempt)
    dead_file = write_fragment(store, (9,), attempt=finish_later.attempt).files[0].path
    half = store.open_writer(f"data/{dead_file}")
    half.write(b"x")
    before = paths(store)
    report = collect_garbage(store, dry_run=True)
    assert report.files == (f"data/{dead_file}",)
    assert paths(store) == before
    assert collect_garbage(store).files == report.files
    assert collect_garbage(store).files == ()
    assert {entry.identity: entry.state for entry in list_staged(store)} == {
        wanted.identity: "finished",
        "running": "running",
    }
    gc_late(store)
    assert {entry.identity for entry in list_staged(store)} == {wanted.identity}
    commit_staged(store, [wanted])
    assert live_rows(store) == [1, 2, 3, 7]


def test_gc_finds_half_written_local_files(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    attempt = begin_attempt(store, identity="dead", spec={}, read_version=1, lease_seconds=0)
    from lance_core.commit import naming

    writer = store.open_writer(naming.data_path(naming.data_file_name(attempt.attempt)))
    writer.write(b"half a file")
    foreign = store.open_writer("data/other.lance")
    foreign.write(b"somebody else's")
    store.open_writer("_versions/18446744073709551613.manifest").write(b"a manifest")
    report = collect_garbage(store)
    assert len(report.files) == 1
    assert attempt.attempt in report.files[0]
    assert len(list(store.list_unfinished(""))) == 2
    gc_late(store)
    assert list(store.list_unfinished("")) == []
    foreign.abort()


def test_abort_removes_exactly_the_attempt() -> None:
    store = memory()
    create(store)
    before = paths(store)
    other = stage(store, (8,))
    kept = paths(store)
    staged = stage(store, (7,))
    removed = abort_attempt(store, staged.identity, staged.attempt)
    assert len(removed) == 2
    # The version that says so, and both decisions of the identity, stay.
    assert not kept - paths(store)
    assert not [path for path in paths(store) - kept if not path.startswith(("_versions/", "_transactions/", *MEMORY))]
    assert (latest_version(store), live_rows(store)) == (2, [1, 2, 3])
    assert [item.outcome for item in decisions(store, staged.identity)] == ["finished", "aborted"]
    assert abort_attempt(store, staged.identity, staged.attempt) == []
    assert latest_version(store) == 2, "it is decided, so no further version says so"
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(store, [staged])
    abort_attempt(store, other.identity, other.attempt)
    assert {path for path in paths(store) if path.startswith("data/")} == {
        path for path in before if path.startswith("data/")
    }
    assert orphans(store) == set()


def test_abort_refuses_what_was_committed() -> None:
    store = memory()
    create(store)
    staged = stage(store, (7,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=is_decision), [staged])
    with pytest.raises(IncompatibleConflictError, match="was committed"):
        abort_attempt(store, staged.identity, staged.attempt)
    commit_staged(store, [staged])
    assert live_rows(store) == [1, 2, 3, 7]
    finished = stage(store, (8,))
    commit_staged(FaultyStore(store, fail_at=1, matches=lambda name, path: name == "delete"), [finished])
    with pytest.raises(IncompatibleConflictError, match="was committed"):
        abort_attempt(store, finished.identity, finished.attempt)


def test_a_restaged_spec_replaces_the_old_one() -> None:
    store = memory()
    create(store)
    old = stage(store, (7,), identity="job-1", spec={"sql": "wrong"})
    assert find_staged(store, "job-1", spec={"sql": "right"}) is None
    new = stage(store, (8,), identity="job-1", spec={"sql": "right"})
    assert find_staged(store, "job-1", spec={"sql": "right"}) == new
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(store, [old])
    commit_staged(store, [new])
    assert live_rows(store) == [1, 2, 3, 8]
    assert orphans(store) == set()


def test_vanished_files_are_noticed_before_the_commit(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    staged = stage(store, (7,))
    append(store, (9,))
    lance.dataset(store.uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    with pytest.raises(LanceError):
        commit_staged(store, [staged])
    assert find_staged(store, staged.identity) is None
    again = stage(store, (7,), identity=staged.identity)
    commit_staged(store, [again])
    assert live_rows(store) == [1, 2, 3, 7, 9]


def test_pylance_cleanup_leaves_our_records_and_staged_files_alone(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    done = stage(store, (6,))
    commit_staged(store, [done])
    staged = stage(store, (7,))
    before = {path for path in paths(store) if path.startswith("_lance_core/")}
    append(store, (9,))
    lance.dataset(store.uri).cleanup_old_versions(older_than=timedelta(0))
    assert {path for path in paths(store) if path.startswith("_lance_core/")} == before
    assert find_staged(store, staged.identity) == staged
    lance.dataset(store.uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert {path for path in paths(store) if path.startswith("_lance_core/")} == before
    assert commit_staged(store, [done]).num_versions == 0


def test_nothing_to_commit_to() -> None:
    store = memory()
    with pytest.raises(NotFoundError):
        append(store, (1,), read_version=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("exists", [False, True], ids=["creates", "appends"])
def test_kill_9_at_every_step_on_local_files(exists: bool, tmp_path: Path) -> None:
    """A child process is killed for good at each store call, before or after it; no handler of ours runs."""
    base = [1, 2, 3] if exists else []
    content = CONTENT.of((7, 8))
    assert content
    number, survived = 0, 0
    while survived < 2:
        number += 1
        when = "before" if number % 2 else "after"
        store = LocalStore(tmp_path / str(number))
        if exists:
            create(store)
        identity = str(uuid.uuid4())
        killed = run_and_kill(store, identity, fail_at=number // 2 + 1, when=when)
        survived = 0 if killed else survived + 1
        stage_and_commit(store, identity)
        assert live_rows(store) == sorted([*base, 7, 8]), number
        assert latest_version(store) == 1 + exists, number
        gc_late(store)
        assert orphans(store) == set(), number
    assert number > 40


def run_and_kill(store: LocalStore, identity: str, *, fail_at: int, when: str) -> bool:
    def die(_: str) -> BaseException:
        os.kill(os.getpid(), signal.SIGKILL)
        return Killed()

    child = os.fork()
    if child == 0:
        try:
            stage_and_commit(FaultyStore(store, fail_at=fail_at, when=when, error=die), identity)  # type: ignore[arg-type]
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _killed_at_publication(store: Store, *, when: Literal["before", "after"]) -> StagedTransaction:
    """A staged append whose commit died there; then others went on and the history was pruned."""
    create(store)
    staged = stage(store, (7,))

    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, when=when, error=Killed, matches=is_manifest_put), [staged])
    append(store, (9,))
    append(store, (10,))
    prune(store)
    return staged


def test_what_the_newest_version_refers_to_was_committed() -> None:
    store = memory()
    staged = _killed_at_publication(store, when="after")
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    assert committed_at(store, staged.identity) == latest_version(store)
    gc_late(store)
    assert (live_rows(store), orphans(store)) == ([1, 2, 3, 7, 9, 10], set())


def test_a_number_that_a_stranger_has_filled_hides_no_gap() -> None:
    """Versions 1 and 2 are pruned behind a kill; then a writer that had slept since version 1 puts its own version 2."""
    store = memory()
    create(store)
    asleep = MemoryStore("asleep")
    for path in paths(store):
        asleep.put(path, store.get(path))
    append(asleep, (99,))
    staged = stage(store, (7,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, when="after", error=Killed, matches=is_manifest_put), [staged])
    append(store, (9,))
    prune(store)
    of_the_first = next(entry.path for entry in list_versions(asleep) if entry.version == 1)
    for path in paths(asleep) - paths(store) - {of_the_first}:
        store.put(path, asleep.get(path))
    assert [entry.version for entry in list_versions(store)] == [2, 3]
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3, 7, 9]


@pytest.mark.parametrize("damaged", [False, True])
def test_a_large_transaction_that_cannot_be_read_keeps_no_other_member(
    damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large for the decision, it is a file of its own."""
    monkeypatch.setattr("lance_core.publish.decisions._MAX_INLINE", 0)
    store = memory()
    create(store)
    good, bad = stage(store, (7,)), stage(store, (8,))
    store.delete(bad.transaction_path)
    if damaged:
        store.put(bad.transaction_path, b"none")
    with pytest.raises(CorruptFileError if damaged else IncompatibleConflictError, match=bad.transaction_path):
        commit_staged(store, [good, bad])
    assert live_rows(store) == [1, 2, 3]
    done = commit_staged(store, [good, bad], partial=True)
    assert done.identities == {good.identity: "committed"}
    assert [*done.refused] == [bad.identity]
    assert live_rows(store) == [1, 2, 3, 7]


@pytest.mark.parametrize("committed", [True, False])
def test_a_person_settles_what_nobody_can_know(committed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed around the publication, history pruned: refused, until somebody looks and says."""
    store = memory()
    # As if a compaction had rewritten its rows meanwhile: no file of the attempt is in use any more.
    monkeypatch.setattr(history, "_told_by", lambda *_: iter(()))
    staged = _killed_at_publication(store, when="after" if committed else "before")
    for refused in (
        lambda: commit_staged(store, [staged]),
        lambda: find_committed(store, staged.identity, staged.read_version),
        lambda: abort_attempt(store, staged.identity, staged.attempt),
    ):
        with pytest.raises(CommitStateUnknownError) as caught:
            refused()
        assert "lance staged settle" in (caught.value.cure or "")
    gc_late(store)
    with pytest.raises(CommitStateUnknownError):
        commit_staged(store, [staged])
    if committed:
        settle_by_hand(store, staged.identity, version=2)
        assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    else:
        abort_attempt(store, staged.identity, staged.attempt, certain=True)
        commit_staged(store, [stage(store, (7,), identity=staged.identity)])
    gc_late(store)
    assert live_rows(store) == [1, 2, 3, 7, 9, 10]
    assert list_intents(store) == []


def test_an_attempt_that_began_before_another_was_committed_finds_that_one() -> None:
    """Try 1 begins and sleeps; try 2 is staged, committed and cleared; try 1 finishes, for nothing is staged any more."""
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    sleeping = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    commit_staged(store, [stage(store, [7], identity=identity)])
    append(store, [9])
    late = finish(store, sleeping, [7])
    assert commit_staged(store, [late]).identities == {identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3, 7, 9]
    assert orphans(store) == set()


@pytest.mark.parametrize("gone", [[2], [1, 2], [2, 3]])
def test_the_decisions_are_asked_where_the_log_since_the_read_version_has_a_gap(gone: list[int]) -> None:
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    sleeping = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    commit_staged(store, [stage(store, [7], identity=identity)])
    append(store, [9])
    append(store, [10])
    late = finish(store, sleeping, [7])
    for entry in list_versions(store):
        if entry.version in gone:
            store.delete(entry.path)
    assert commit_staged(store, [late]).identities == {identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3, 7, 9, 10]


def test_what_is_in_no_version_is_found_in_the_decisions() -> None:
    """Try 1 finishes and is aborted; try 2 finds nothing to do and says so; then somebody commits what try 1 returned."""
    store = memory()
    create(store)
    late = stage(store, [7])
    abort_attempt(store, late.identity, late.attempt)
    say_committed(store, CommittedWork(late.identity, 1), by="nothing to do")
    assert commit_staged(store, [late]).identities == {late.identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3]


def test_a_decision_about_another_table_is_no_commit_of_lost_work() -> None:
    store = memory()
    create(store)
    ref = stage(store, [7])
    abort_attempt(store, ref.identity, ref.attempt)
    say_committed(store, CommittedWork(ref.identity, 9), by="a table that was here before")
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(store, [ref])
    assert commit_staged(store, [stage(store, [7], identity=ref.identity)]).num_versions == 1
    assert live_rows(store) == [1, 2, 3, 7]


def _again(store: Store, ref: StagedTransaction, commit: str = "c0" * 8) -> Attempt:
    """A try that takes the place of a finished one, for a commit that brings it up."""
    newest = load_manifest(store)
    return begin(
        store,
        Attempt(
            identity=ref.identity,
            spec={"kind": "append"},
            read_version=newest.version,
            base=newest.transaction_file,
            replaces=(ref.attempt, commit),
        ),
    )


def test_what_is_brought_up_takes_the_place_of_what_was_finished() -> None:
    store = memory()
    create(store)
    ref = stage(store, [7])
    append(store, [9])
    new = finish(store, _again(store, ref), [7])
    assert (new.attempt != ref.attempt, new.number, new.read_version) == (True, 2, 2)
    assert [item.superseded for item in decisions(store, ref.identity)] == [(), (ref.attempt,)]
    # Whoever has the first reference commits the second.
    assert commit_staged(store, [ref]).identities == {ref.identity: "committed"}
    assert live_rows(store) == [1, 2, 3, 7, 9]
    gc_late(store)
    assert orphans(store) == set()


@pytest.mark.parametrize("end", ["committed", "committed, not said", "aborted"])
def test_what_came_to_its_end_while_it_was_brought_up_is_not_staged_again(end: str) -> None:
    store = memory()
    create(store)
    ref = stage(store, [7])
    attempt = _again(store, ref)
    if end == "aborted":
        abort_attempt(store, ref.identity, ref.attempt)
    else:
        breaks = FaultyStore(store, fail_at=1, error=Killed, matches=is_decision) if end != "committed" else store
        with contextlib.suppress(Killed):
            commit_staged(breaks, [ref])
    if end == "aborted":
        with pytest.raises(LanceError, match="was aborted while"):
            finish(store, attempt, [7])
    else:
        done = finish(store, attempt, [7])
        assert commit_staged(store, [done]).identities == {ref.identity: "already_committed"}
    gc_late(store)
    assert live_rows(store) == [1, 2, 3, *[7] * (end != "aborted")]
    assert orphans(store) == set()


def test_an_abort_that_is_refused_leaves_the_table_as_it_was() -> None:
    """Of what was committed by a commit that died before its decision, and of what nobody can know."""
    store = memory()
    create(store)
    staged = stage(store, (7,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=is_decision), [staged])
    with pytest.raises(IncompatibleConflictError, match="was committed as version 2"):
        abort_attempt(store, staged.identity, staged.attempt)
    assert (latest_version(store), len(list_intents(store))) == (2, 1)
