"""Nothing that a version refers to is ever deleted: by an abort, a zombie, a retry or garbage collection, by any clock."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

import lance
import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import StoreError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import CleanupSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.decisions import decision_path
from lance_core.publish.stage import begin_attempt, finish_attempt
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction
from tests.protocol.protocol_support import (
    HookStore,
    Killed,
    append,
    broken_references,
    commit,
    delete,
    hooked,
    ids,
    is_decision_put,
    is_manifest_put,
    new_identity,
    orphans,
    refusal,
    replace,
    rows,
    rows_at,
)

DAY = "id >= 1000 and id < 2000"


def test_aborting_a_committed_attempt_removes_nothing(uri: str) -> None:
    ref = append(uri, range(1000, 1010))
    commit(uri, [ref])
    refusal(lambda: abort_attempt(resolve_store(uri), ref.identity, ref.attempt))
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1010)]


def test_a_commit_that_finds_its_work_outdated_while_another_lands_it_keeps_the_files(uri: str) -> None:
    identity = new_identity()
    replace(uri, DAY, range(1000, 1005), 1, identity)
    commit(uri, [append(uri, [1500])])
    other: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if name.startswith("put") and path.endswith(".started.json") and not other:
            other.append(1)
            with hooked(None):
                commit(uri, [identity])
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [identity]))
    assert other, "it is executed again"
    commit(uri, [identity])
    assert not broken_references(uri)
    assert rows(uri, since=1000) == [(number, 1) for number in range(1000, 1005)]


def test_a_staging_task_with_a_changed_spec_spares_what_a_commit_lands(uri: str) -> None:
    identity = new_identity()
    append(uri, range(1000, 1005), identity)
    other: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if path.startswith("_lance_core/") and name.startswith("put") and not other:
            other.append(1)
            with hooked(None):
                commit(uri, [identity])
        return action()

    with hooked(hook):
        refusal(lambda: append(uri, range(1000, 1006), identity))
    assert other
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1005)]


def _lance(*arguments: str) -> None:
    found = CliRunner().invoke(cli, list(arguments), catch_exceptions=True)
    if found.exit_code:
        refusal(lambda: _raise(found.exception))


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


def test_aborting_by_hand_what_a_killed_commit_left_removes_nothing_that_landed(uri: str) -> None:
    ref = append(uri, range(1000, 1010))
    dead: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if dead or (name == "delete" and path.endswith(".started.json")):
            dead.append(1)
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        commit(uri, [ref])
    assert commit(uri, [ref]).identities[ref.identity] == "already_committed"
    _lance("staged", "abort", uri, ref.identity)
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1010)]


def test_aborting_by_hand_after_one_failed_delete_removes_nothing_that_landed(uri: str) -> None:
    ref = append(uri, range(1000, 1010))

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if name == "delete" and path.endswith(".started.json"):
            raise StoreError("503")
        return action()

    with hooked(hook):
        commit(uri, [ref])
    _lance("staged", "abort", uri, ref.identity)
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1010)]


def test_a_first_try_that_wakes_up_after_its_work_landed_removes_nothing(uri: str) -> None:
    identity = new_identity()
    stage: list[str] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        found = action()
        if is_decision_put(name, path) and not stage:
            stage.append("asleep")
            with hooked(None):
                append(uri, range(1000, 1010), identity)
                commit(uri, [identity])
        return found

    with hooked(hook):
        refusal(lambda: append(uri, range(1000, 1010), identity))
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1010)]


def test_an_attempt_that_saw_its_abort_does_not_delete_what_a_commit_takes_up(uri: str) -> None:
    identity = new_identity()
    store = resolve_store(uri)
    attempt = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1, lease_seconds=-1)
    borrowed = append(uri, range(1000, 1010))
    transaction = read_transaction_file(store, borrowed.transaction_path)
    assert transaction is not None and isinstance(transaction.operation, Append)
    (fragment,) = transaction.operation.fragments
    name = naming.data_file_name(attempt.attempt)
    store.put(naming.data_path(name), bytes(store.get(naming.data_path(fragment.files[0].path))))
    mine = changed(fragment, files=(changed(fragment.files[0], path=name),))
    abort_attempt(store, borrowed.identity, borrowed.attempt)
    moments = {word: threading.Event() for word in ("marked", "go_gc", "seen", "go_attempt", "at_put", "go_put")}

    def pause(reached: str, go: str) -> None:
        moments[reached].set()
        moments[go].wait(2)

    def in_gc(name: str, path: str, action: Callable[[], Any]) -> Any:
        found = action()
        if is_decision_put(name, path):
            pause("marked", "go_gc")
        return found

    def in_attempt(name: str, path: str, action: Callable[[], Any]) -> Any:
        found = action()
        if name == "get" and path == decision_path(identity, 1):
            pause("seen", "go_attempt")
        return found

    def in_commit(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            pause("at_put", "go_put")
        return action()

    def finish() -> None:
        place = HookStore(store, in_attempt)
        refusal(lambda: finish_attempt(place, attempt, Transaction(1, identity, Append((mine,))), rows=10, bytes=1))

    def publish() -> None:
        with hooked(in_commit):
            refusal(lambda: commit(uri, [identity]))

    gc = threading.Thread(target=lambda: collect_garbage(HookStore(store, in_gc)))
    finishing, publishing = threading.Thread(target=finish), threading.Thread(target=publish)
    for thread, reached in ((gc, "marked"), (finishing, "seen")):
        thread.start()
        moments[reached].wait(0.5)
    moments["go_gc"].set()
    gc.join(5)
    publishing.start()
    moments["at_put"].wait(0.5)
    moments["go_attempt"].set()
    finishing.join(5)
    moments["go_put"].set()
    publishing.join(5)
    assert not broken_references(uri)
    assert ids(uri, since=1000) in ([], [*range(1000, 1010)])


def test_gc_by_a_clock_an_hour_ahead_spares_a_commit_at_work(uri: str) -> None:
    refs = [delete(uri, "id = 1"), delete(uri, "id = 2"), append(uri, range(200, 210))]
    store = resolve_store(uri)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            collect_garbage(store, now=time.time() + 3700)
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, refs))
    assert not broken_references(uri)
    commit(uri, refs)
    assert not broken_references(uri)
    assert ids(uri) == [0, *range(3, 100), *range(200, 210)]


def test_a_changed_staging_task_by_a_clock_an_hour_ahead_spares_a_commit_at_work(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = new_identity()
    append(uri, range(1000, 1010), identity)
    done: list[int] = []
    real = time.time

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path) and not done:
            done.append(1)
            with hooked(None), monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda: real() + 3700)
                refusal(lambda: append(uri, range(1000, 1011), identity))
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [identity]))
    assert not broken_references(uri)
    assert ids(uri, since=1000) in ([], [*range(1000, 1010)])
    refusal(lambda: commit(uri, [identity]))
    assert not broken_references(uri)
    assert ids(uri, since=1000) in ([*range(1000, 1010)], [*range(1000, 1011)])


@pytest.mark.parametrize("cleanup", ["theirs", "ours"])
def test_gc_looks_again_when_a_manifest_vanishes_while_it_reads(uri: str, cleanup: str) -> None:
    ref = append(uri, range(1000, 1005))

    def killed(name: str, path: str, action: Callable[[], Any]) -> Any:
        if name == "delete" and path.endswith(".started.json"):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(killed):
        commit(uri, [ref])
    done: list[int] = []

    def between(name: str, path: str, action: Callable[[], Any]) -> Any:
        if name == "get" and path.startswith("_versions/") and not done:
            done.append(1)
            lance.write_dataset(rows_at([5000]), uri, mode="append")
            if cleanup == "theirs":
                lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
            else:
                run_job(CleanupSpec(uri=uri, retain_versions=1))
        return action()

    collect_garbage(HookStore(resolve_store(uri), between))
    assert not broken_references(uri)
    assert ids(uri, since=1000) == [*range(1000, 1005), 5000]


def test_what_a_zombie_writes_after_it_was_given_up_is_collected_in_the_end(uri: str) -> None:
    store = resolve_store(uri)
    identity = new_identity()
    zombie = begin_attempt(store, identity=identity, spec={"kind": "append"}, read_version=1)
    append(uri, range(1000, 1003), identity)
    store.put(naming.data_path(naming.data_file_name(zombie.attempt)), b"x" * 1000)
    commit(uri, [identity])
    for later in (0, 4000, 30 * 86400):
        collect_garbage(store, now=time.time() + later)
    assert not orphans(uri)
    assert ids(uri, since=1000) == [1000, 1001, 1002]
