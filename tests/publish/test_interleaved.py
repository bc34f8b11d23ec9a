"""Two actors, every store call of theirs in a random order: commit against abort, gc, commit; finish against gc and finish.

A scheduler lets exactly one actor make exactly one store call at a time, so a seed is a schedule. Whatever it is: no version
refers to a file that is gone, no identity's rows are there twice, and what was said to be committed is there.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.references import referenced_files
from lance_core.errors import LanceError
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from lance_core.publish.model import StagedTransaction
from lance_core.publish.stage import begin_attempt, find_staged
from tests.commit.commit_support import append, create, finish, live_rows, paths, stage

T = TypeVar("T")
SCHEDULES = 40


class Scheduler:
    """Hands the right to make one store call from actor to actor, in an order that the seed decides."""

    def __init__(self, seed: int, names: Sequence[str]) -> None:
        self._random = random.Random(seed)
        self._turn = threading.Condition()
        self._waiting: set[str] = set()
        self._alive = set(names)
        self._next: str | None = None

    def step(self, name: str, action: Callable[[], T]) -> T:
        with self._turn:
            self._waiting.add(name)
            self._choose()
            while self._next != name:
                self._turn.wait()
            self._waiting.discard(name)
            try:
                return action()
            finally:
                self._next = None
                # The others may go on only when this one waits again or has ended, so that a seed is one schedule.

    def _choose(self) -> None:
        if self._waiting and self._next is None and self._waiting == self._alive:
            self._next = self._random.choice(sorted(self._waiting))
            self._turn.notify_all()

    def end(self, name: str) -> None:
        with self._turn:
            self._alive.discard(name)
            self._choose()


class ScheduledStore(WrappedStore):
    def __init__(self, inner: Store, scheduler: Scheduler, name: str) -> None:
        super().__init__(inner)
        self._scheduler = scheduler
        self._name = name

    def _around(self, inner: Store) -> ScheduledStore:
        return ScheduledStore(inner, self._scheduler, self._name)

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        return self._scheduler.step(self._name, action)


def interleave(store: Store, seed: int, *actions: Callable[[Store], object]) -> list[object]:
    """Run the actions at once under one schedule; what each returned, or the error it raised."""
    names = [f"actor {number}" for number in range(len(actions))]
    scheduler = Scheduler(seed, names)
    results: list[object] = [None] * len(actions)

    def run(number: int) -> None:
        try:
            results[number] = actions[number](ScheduledStore(store, scheduler, names[number]))
        except LanceError as error:
            results[number] = error
        finally:
            scheduler.end(names[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), f"seed {seed}: stuck"
    return results


def check(store: Store) -> list[int]:
    """Every version whole; the rows of the newest."""
    there = paths(store)
    for entry in list_versions(store):
        missing = {path for path in referenced_files(load_manifest(store, entry.version)) if not path.endswith("/")} - there
        assert missing == set()
    return live_rows(store)


@pytest.fixture(params=range(SCHEDULES))
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def store() -> Store:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    return store


def test_commit_against_abort(store: Store, seed: int) -> None:
    staged = stage(store, (7,))
    committed, _ = interleave(
        store,
        seed,
        lambda place: commit_staged(place, [staged]),
        lambda place: abort_attempt(place, staged.identity, staged.attempt),
    )
    rows = check(store)
    assert rows == ([1, 2, 3] if isinstance(committed, LanceError) else [1, 2, 3, 7])
    if isinstance(committed, LanceError) and find_staged(store, staged.identity) is not None:
        commit_staged(store, [staged])  # both stepped back
        assert check(store) == [1, 2, 3, 7]


def test_commit_against_commit_and_append(store: Store, seed: int) -> None:
    staged = [stage(store, (value,)) for value in (7, 8, 9)]
    results = interleave(
        store,
        seed,
        lambda place: commit_staged(place, staged[:2]),
        lambda place: commit_staged(place, staged[1:]),
        lambda place: append(place, (5,), read_version=1),
    )
    assert not any(isinstance(item, BaseException) for item in results), results
    assert check(store) == [1, 2, 3, 5, 7, 8, 9]
    done = [uuid for item in results[:2] for uuid, how in item.identities.items() if how == "committed"]  # type: ignore[attr-defined]
    assert sorted(done) == sorted(item.identity for item in staged)


def test_finish_against_gc_of_the_expired(store: Store, seed: int) -> None:
    attempt = begin_attempt(store, identity="job", spec={}, read_version=1, lease_seconds=5)
    finished, _ = interleave(
        store,
        seed,
        lambda place: finish(place, attempt, (7,)),
        lambda place: collect_garbage(place, now=time.time() + 10),
    )
    if isinstance(finished, StagedTransaction):
        assert find_staged(store, "job") == finished
        commit_staged(store, [finished])
        assert check(store) == [1, 2, 3, 7]
    else:
        collect_garbage(store, now=time.time() + 10)
        assert check(store) == [1, 2, 3]
        assert not [path for path in paths(store) if attempt.attempt in path]


def test_commit_against_gc(store: Store, seed: int) -> None:
    staged = stage(store, (7,), lease_seconds=1)
    committed, _ = interleave(
        store,
        seed,
        lambda place: commit_staged(place, [staged]),
        lambda place: collect_garbage(place, now=time.time() + 60),
    )
    assert not isinstance(committed, BaseException), committed
    assert check(store) == [1, 2, 3, 7]


def test_two_attempts_of_one_identity(store: Store, seed: int) -> None:
    attempts = [begin_attempt(store, identity="job", spec={}, read_version=1) for _ in range(2)]
    results = interleave(store, seed, *[lambda place, item=item: finish(place, item, (7,)) for item in attempts])
    assert results[0] == results[1]
    result = results[0]
    assert isinstance(result, StagedTransaction)
    commit_staged(store, [result])
    assert check(store) == [1, 2, 3, 7]
    assert len([path for path in paths(store) if path.startswith("data/")]) == 2


def test_creation_against_creation(seed: int) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    staged = [stage(store, (value,), read_version=0) for value in (7, 8)]
    results = interleave(store, seed, *[lambda place, item=item: commit_staged(place, [item]) for item in staged])
    assert not any(isinstance(item, BaseException) for item in results), results
    assert check(store) == [7, 8]
    assert len(list_versions(store)) == 2


def test_abort_against_gc_and_commit(store: Store, seed: int) -> None:
    staged = stage(store, (7,))
    results = interleave(
        store,
        seed,
        lambda place: commit_staged(place, [staged]),
        lambda place: abort_attempt(place, staged.identity, staged.attempt),
        lambda place: collect_garbage(place),
    )
    rows = check(store)
    assert rows in ([1, 2, 3], [1, 2, 3, 7])
    assert (7 in rows) == (not isinstance(results[0], LanceError))
