"""Staged work that waits too long for its commit is aborted where the caller bounds it, named, and pins nothing any more."""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lance_core.commit.manifests import list_versions, version_numbers
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import IncompatibleConflictError, LanceError
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from lance_core.publish.stage import begin_attempt
from tests.commit.commit_support import append, create, finish, live_rows, paths, stage
from tests.protocol.protocol_support import HookStore, Killed, is_manifest_put

DAY = 86_400.0


@pytest.fixture
def store() -> Store:
    found = MemoryStore(uuid.uuid4().hex)
    create(found)
    return found


def _cleaned(store: Store) -> list[int]:
    """Versions left by a cleanup that keeps the newest one only."""
    run_cleanup(store, plan_cleanup(store, older_than=timedelta(0), retain_versions=1))
    return sorted(version_numbers(store))


def test_a_forgotten_write_pins_versions_until_it_is_abandoned(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    forgotten = stage(store, (7,))
    for value in range(3):
        append(store, (10 + value,))
    files, later = paths(store), time.time() + 8 * DAY
    assert _cleaned(store) == [1, 2, 3, 4]
    assert collect_garbage(store, now=later).abandoned == (), "off by default"
    assert collect_garbage(store, abandon_after=7 * DAY).abandoned == (), "not old enough"

    report = collect_garbage(store, now=later, abandon_after=7 * DAY, dry_run=True)
    assert report.abandoned == (forgotten.identity,)
    assert files <= paths(store)
    assert "would be aborted" in caplog.text
    caplog.clear()

    assert collect_garbage(store, now=later, abandon_after=7 * DAY).files == report.files
    (said,) = [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]
    assert f"append of {forgotten.identity}, 1 rows planned on version 1" in said
    assert "had waited for its commit for 192.0 hours and was aborted" in said
    assert list_staged(store) == []
    assert _cleaned(store) == [5], "the version of the abort"
    with pytest.raises(IncompatibleConflictError):
        commit_staged(store, [forgotten])
    assert live_rows(store) == [1, 2, 3, 10, 11, 12]


def test_what_runs_was_committed_or_is_young_is_not_abandoned(store: Store) -> None:
    running = begin_attempt(store, identity="running", spec={}, read_version=1, lease_seconds=100 * DAY)
    done, young = stage(store, (7,)), stage(store, (8,))
    commit_staged(store, [done])
    report = collect_garbage(store, now=time.time() + 6 * DAY, abandon_after=7 * DAY)
    assert report.abandoned == ()
    assert {entry.identity for entry in list_staged(store)} == {"running", young.identity}
    collect_garbage(store, now=time.time() + 8 * DAY, abandon_after=7 * DAY)
    assert {entry.identity for entry in list_staged(store)} == {"running"}
    finish(store, running, (9,))
    assert live_rows(store) == [1, 2, 3, 7]


def test_work_of_which_nobody_knows_whether_it_was_committed_is_named_and_stays(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    doubtful = stage(store, (7,))

    def dies(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed):
        commit_staged(HookStore(store, dies), [doubtful])
    for value in range(3):
        append(store, (10 + value,))
    for entry in list_versions(store)[:-1]:  # as others clean up: waiting work pins nothing for them
        store.delete(entry.path)

    files, later = paths(store), time.time() + 8 * DAY
    report = collect_garbage(store, now=later, abandon_after=7 * DAY)
    assert (report.unknown, report.abandoned, report.files) == ((doubtful.identity,), (), ())
    assert paths(store) == files
    assert f"unknown whether {doubtful.identity} was committed" in caplog.text
    assert "lance staged abort --certain" in caplog.text

    abort_attempt(store, doubtful.identity, doubtful.attempt, certain=True)
    assert collect_garbage(store, now=later, abandon_after=7 * DAY).unknown == ()
    assert list_staged(store) == []
    assert live_rows(store) == [1, 2, 3, 10, 11, 12]


def test_a_commit_beside_the_abandoning_lands_whole_or_not_at_all() -> None:
    outcomes = [_commit_with_abandoning_before(number) for number in range(_NUM_CALLS)]
    assert outcomes[0] is False
    assert outcomes[-1] is True


_NUM_CALLS = 60
"""More than a commit of one makes on a table that has moved."""


def _commit_with_abandoning_before(number: int) -> bool:
    """Whether it was committed, where it is abandoned before the commit's call of that number."""
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    forgotten = stage(store, (7,))
    append(store, (8,))
    calls = itertools.count()

    def beside(name: str, path: str, action: Callable[[], Any]) -> Any:
        if next(calls) == number:
            collect_garbage(store, now=time.time() + 8 * DAY, abandon_after=7 * DAY)
        return action()

    try:
        commit_staged(HookStore(store, beside), [forgotten])
        is_committed = True
    except LanceError:
        is_committed = False
    collect_garbage(store, now=time.time() + 8 * DAY, abandon_after=7 * DAY)
    assert live_rows(store) == ([1, 2, 3, 7, 8] if is_committed else [1, 2, 3, 8])
    assert list_staged(store) == []
    return is_committed
