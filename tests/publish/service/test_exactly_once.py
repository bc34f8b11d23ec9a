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
from lance_core.commit.references import referenced_files
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import (
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
)
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry import landings
from lance_core.publish.registry.attempts import finished_path, list_staged
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.history import record_history
from lance_core.publish.registry.landings import find_landed
from lance_core.publish.registry.ledger import record_landed, recorded_version
from lance_core.publish.service.commit_staged import commit_staged
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.garbage import collect_garbage
from lance_core.publish.staging.staged import begin_attempt, find_staged
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import CONTENT, append, create, finish, group_records, live_rows, paths, stage
from tests.io.faulty_stores import FaultyStore

LATER = 10 * 24 * 3600.0


class Killed(BaseException):
    """A process that dies: nothing of ours may catch it."""


def load_one(store: Store, ref: StagedTransaction) -> Transaction:
    transaction = read_transaction_file(store, ref.transaction_path)
    assert transaction is not None
    return transaction


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex)


def orphans(store: Store) -> set[str]:
    """Data, deletion and transaction files no version refers to, records of attempts and claims, unfinished writes."""
    referenced = {path for entry in list_versions(store) for path in referenced_files(load_manifest(store, entry.version))}
    keep = ("_versions/", "_lance_core/ledger/")
    left = {path for path in paths(store) if not path.startswith(keep) and path not in referenced}
    return left - group_records(store)


def stage_and_commit(store: Store, identity: str) -> None:
    """What an orchestrator runs, and runs again after any failure."""
    from lance_core.publish.registry.attempts import read_finished

    if recorded_version(store, identity) is not None:
        return
    staged = read_finished(store, identity)
    if staged is None or find_landed(store, identity, staged.read_version) is None:
        staged = find_staged(store, identity) or stage(store, (7, 8), identity=identity)
    commit_staged(store, [staged])


def gc_late(store: Store) -> None:
    import time

    collect_garbage(store, now=time.time() + LATER)


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
    """Kill at each call, then lose all old versions, then retry: landed, refused or committed, but never twice."""
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


def prune(store: Store) -> None:
    """What a cleanup of others does: all versions but the newest go, and their transactions."""
    newest = latest_version(store)
    kept = set(referenced_files(load_manifest(store)))
    for entry in list_versions(store):
        if entry.version != newest:
            for path in referenced_files(load_manifest(store, entry.version)):
                if path.startswith("_transactions/") and path not in kept:
                    store.delete(path)
            store.delete(entry.path)


def test_our_cleanup_keeps_the_ledger_complete() -> None:
    store = memory()
    create(store)
    staged = stage(store, (7,))
    waiting = stage(store, (8,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=_is_ledger_write), [staged])
    assert recorded_version(store, staged.identity) is None
    append(store, (9,))
    record_history(store, [entry.version for entry in list_versions(store)][:-1])
    prune(store)
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_landed"}
    assert find_landed(store, waiting.identity, waiting.read_version) is None


def _is_ledger_write(name: str, path: str) -> bool:
    return name == "put_if_absent" and path.startswith("_lance_core/ledger/")


def test_committing_twice_adds_nothing() -> None:
    store = memory()
    create(store)
    staged = [stage(store, (7,)), stage(store, (8, 9))]
    first = commit_staged(store, staged)
    assert (first.version, first.num_versions, first.rows_added, first.fragments_added) == (2, 1, 3, 2)
    assert set(first.identities.values()) == {"landed"}
    again = commit_staged(store, staged)
    assert (again.version, again.num_versions, again.rows_added) == (2, 0, 0)
    assert set(again.identities.values()) == {"already_landed"}
    assert live_rows(store) == [1, 2, 3, 7, 8, 9]
    assert list_claims(store) == []
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
        staged[0].identity: "already_landed",
        staged[1].identity: "already_landed",
        extra.identity: "landed",
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
    with pytest.raises(RetryableConflictError, match="withdrawn while"):
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
    assert paths(store) == kept | {"_lance_core/fences/1.json"}  # no commit may decide by the group from now on
    assert abort_attempt(store, staged.identity, staged.attempt) == []
    with pytest.raises(IncompatibleConflictError, match="withdrawn"):
        commit_staged(store, [staged])
    abort_attempt(store, other.identity, other.attempt)
    assert paths(store) - group_records(store) == before


def test_abort_refuses_what_landed() -> None:
    store = memory()
    create(store)
    staged = stage(store, (7,))
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=_is_ledger_write), [staged])
    with pytest.raises(IncompatibleConflictError, match="has landed"):
        abort_attempt(store, staged.identity, staged.attempt)
    commit_staged(store, [staged])
    assert live_rows(store) == [1, 2, 3, 7]
    finished = stage(store, (8,))
    commit_staged(FaultyStore(store, fail_at=1, matches=lambda name, path: name == "delete"), [finished])
    with pytest.raises(IncompatibleConflictError, match="has landed"):
        abort_attempt(store, finished.identity, finished.attempt)


def test_a_restaged_spec_replaces_the_old_one() -> None:
    store = memory()
    create(store)
    old = stage(store, (7,), identity="job-1", spec={"sql": "wrong"})
    assert find_staged(store, "job-1", spec={"sql": "right"}) is None
    new = stage(store, (8,), identity="job-1", spec={"sql": "right"})
    assert find_staged(store, "job-1", spec={"sql": "right"}) == new
    with pytest.raises(IncompatibleConflictError, match="withdrawn"):
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
    landed = stage(store, (6,))
    commit_staged(store, [landed])
    staged = stage(store, (7,))
    before = {path for path in paths(store) if path.startswith("_lance_core/")}
    append(store, (9,))
    lance.dataset(store.uri).cleanup_old_versions(older_than=timedelta(0))
    assert {path for path in paths(store) if path.startswith("_lance_core/")} == before
    assert find_staged(store, staged.identity) == staged
    lance.dataset(store.uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert {path for path in paths(store) if path.startswith("_lance_core/")} == before
    assert commit_staged(store, [landed]).num_versions == 0


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

    def is_publication(name: str, path: str) -> bool:
        return name == "put_if_absent" and path.startswith("_versions/")

    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, when=when, error=Killed, matches=is_publication), [staged])
    append(store, (9,))
    append(store, (10,))
    prune(store)
    return staged


def test_what_the_newest_version_refers_to_has_landed() -> None:
    store = memory()
    staged = _killed_at_publication(store, when="after")
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_landed"}
    assert recorded_version(store, staged.identity) == latest_version(store)
    gc_late(store)
    assert (live_rows(store), orphans(store)) == ([1, 2, 3, 7, 9, 10], set())


@pytest.mark.parametrize("landed", [True, False])
def test_a_person_settles_what_nobody_can_know(landed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed around the publication, history pruned: refused, until somebody looks and says."""
    store = memory()
    # As if a compaction had rewritten its rows meanwhile: no file of the attempt is in use any more.
    monkeypatch.setattr(landings, "_in_use", lambda store, identities: {})
    staged = _killed_at_publication(store, when="after" if landed else "before")
    for refused in (
        lambda: commit_staged(store, [staged]),
        lambda: find_landed(store, staged.identity, staged.read_version),
        lambda: abort_attempt(store, staged.identity, staged.attempt),
    ):
        with pytest.raises(CommitStateUnknownError):
            refused()
    gc_late(store)
    with pytest.raises(CommitStateUnknownError):
        commit_staged(store, [staged])
    if landed:
        record_landed(store, staged.identity, version=2, transaction="settled by hand")
        assert commit_staged(store, [staged]).identities == {staged.identity: "already_landed"}
    else:
        expire_claims(store)
        abort_attempt(store, staged.identity, staged.attempt, certain=True)
        commit_staged(store, [stage(store, (7,), identity=staged.identity)])
    gc_late(store)
    assert live_rows(store) == [1, 2, 3, 7, 9, 10]
    assert list_claims(store) == []


def expire_claims(store: Store) -> None:
    from dataclasses import asdict, replace

    from lance_core.publish.records import write_record

    for claim in list_claims(store):
        write_record(store, claim.path, asdict(replace(claim, since=0.0)))


def test_only_an_attempt_that_saw_a_silent_ledger_skips_it_later() -> None:
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    first = stage(store, [7], identity=identity)
    assert first.later_only
    commit_staged(store, [first])
    assert not stage(store, [7], identity=identity, read_version=2).later_only  # it is in the ledger
    damaged = str(uuid.uuid4())
    store.put(f"_lance_core/ledger/{damaged}.json", b"{")
    assert not stage(store, [8], identity=damaged).later_only


def test_an_attempt_that_began_before_the_landing_of_another_is_found_in_the_log() -> None:
    """Try 1 begins and sleeps; try 2 is staged, lands and is cleared; try 1 finishes, for nothing is staged any more."""
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    sleeping = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    assert sleeping.later_only
    commit_staged(store, [stage(store, [7], identity=identity)])
    append(store, [9])
    late = finish(store, sleeping, [7])
    assert commit_staged(store, [late]).identities == {identity: "already_landed"}
    assert live_rows(store) == [1, 2, 3, 7, 9]


@pytest.mark.parametrize("gone", [[2], [1, 2], [2, 3]])
def test_the_ledger_is_asked_where_the_log_since_the_read_version_has_a_gap(gone: list[int]) -> None:
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
    assert late.later_only
    assert commit_staged(store, [late]).identities == {identity: "already_landed"}
    assert live_rows(store) == [1, 2, 3, 7, 9, 10]


@pytest.mark.parametrize("read_before", [False, True])
def test_what_is_in_no_version_is_found_in_the_ledger(read_before: bool) -> None:
    """Try 1 begins; try 2 finds nothing to do; the record of try 1's finished work is put late, when its files are gone."""
    store = memory()
    create(store)
    identity = str(uuid.uuid4())
    sleeping = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    late = finish(store, sleeping, [7])
    assert late.later_only
    transaction = load_one(store, late)
    record = store.get(finished_path(identity))
    abort_attempt(store, identity, late.attempt)
    record_landed(store, identity, version=1, transaction="")
    store.put(finished_path(identity), record)
    known = {late: transaction} if read_before else {}
    assert commit_staged(store, [late], known=known).identities == {identity: "already_landed"}
    assert live_rows(store) == [1, 2, 3]


def test_a_void_record_of_the_ledger_is_no_landing_of_lost_work() -> None:
    store = memory()
    create(store)
    ref = stage(store, [7])
    abort_attempt(store, ref.identity, ref.attempt)
    record_landed(store, ref.identity, version=9, transaction="")  # of a table that was here before
    with pytest.raises(IncompatibleConflictError, match="was withdrawn"):
        commit_staged(store, [ref])


def test_work_that_is_brought_up_to_a_newer_version_asks_the_ledger_again() -> None:
    store = memory()
    create(store)
    ref = stage(store, [7])
    attempt = begin_attempt(
        store, identity=ref.identity, spec={}, read_version=1, adopts=ref.writers, instead_of=ref.attempt
    )
    assert (attempt.later_only, attempt.adopts) == (False, (ref.attempt,))
