"""What a living attempt adopted stays, whoever removes the attempt that wrote it; what is decided already is not adopted."""

from __future__ import annotations

import time
import uuid

import pytest

from lance_core.commit.naming import data_file_name, data_path
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged, read_started, record_path
from lance_core.publish.collect import collect_garbage
from lance_core.publish.model import Attempt
from lance_core.publish.stage import adopt_unfinished, begin
from tests.commit.commit_support import create, paths
from tests.publish.publish_support import LATER

IDENTITY = "5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e11"
YEAR = 365 * 86_400


def _begun(store: Store, *adopts: str) -> Attempt:
    return begin(store, Attempt(identity=IDENTITY, spec={"rows": 1}, read_version=1, adopts=adopts))


def _file_of(store: Store, attempt: Attempt) -> str:
    path = data_path(data_file_name(attempt.attempt))
    store.put(path, b"a part")
    return path


@pytest.fixture
def store() -> Store:
    found = MemoryStore(uuid.uuid4().hex)
    create(found)
    return found


def test_what_a_living_attempt_adopted_stays_until_that_one_goes(store: Store) -> None:
    first = _begun(store)
    part = _file_of(store, first)
    second = adopt_unfinished(store, _begun(store, first.attempt))
    assert second.adopts == (first.attempt,)
    own = _file_of(store, second)
    for _ in range(2):
        assert abort_attempt(store, IDENTITY, first.attempt) == []
        assert collect_garbage(store, now=time.time() + 60).files == ()
    assert {part, own} <= set(paths(store))
    assert read_started(store, IDENTITY, first.attempt) is not None, "it stays on record, for whoever collects it later"
    assert set(abort_attempt(store, IDENTITY, second.attempt)) == {part, own}
    collect_garbage(store, now=time.time() + LATER)
    assert [read_started(store, IDENTITY, item.attempt) for item in (first, second)] == [None, None]


def test_what_a_suspended_writer_writes_behind_its_abort_is_found_by_its_record(store: Store) -> None:
    first = _begun(store)
    early = _file_of(store, first)
    assert abort_attempt(store, IDENTITY, first.attempt) == [early]
    late = _file_of(store, first)
    assert collect_garbage(store).files == (late,)
    late = _file_of(store, first)
    assert collect_garbage(store, now=time.time() + LATER).files == (late,)
    assert read_started(store, IDENTITY, first.attempt) is None, "nobody writes any more"
    assert list_staged(store) == []


def test_an_attempt_that_was_killed_before_it_decided_takes_nothing_along(store: Store) -> None:
    first = _begun(store)
    part = _file_of(store, first)
    second = _begun(store, first.attempt)
    own = _file_of(store, second)
    assert abort_attempt(store, IDENTITY, second.attempt) == [own]
    assert part in paths(store)


def test_what_somebody_else_has_decided_to_remove_is_not_adopted(store: Store) -> None:
    first = _begun(store)
    part = _file_of(store, first)
    second = _begun(store, first.attempt)
    assert abort_attempt(store, IDENTITY, first.attempt) == [], "spared, for the adopter is on record; but decided"
    assert adopt_unfinished(store, second).adopts == ()
    assert abort_attempt(store, IDENTITY, first.attempt) == [part]


def test_a_record_that_cannot_be_read_may_adopt_anything(store: Store) -> None:
    first = _begun(store)
    part = _file_of(store, first)
    second = _begun(store, first.attempt)
    store.put(record_path(IDENTITY, second.attempt), b"{ not json")
    assert abort_attempt(store, IDENTITY, first.attempt) == []
    assert part in paths(store)


def test_a_chain_stays_as_long_as_its_last_attempt(store: Store) -> None:
    first = _begun(store)
    part = _file_of(store, first)
    second = adopt_unfinished(store, _begun(store, first.attempt))
    third = adopt_unfinished(store, _begun(store, second.attempt, *second.adopts))
    assert third.adopts == (second.attempt, first.attempt)
    abort_attempt(store, IDENTITY, second.attempt)
    abort_attempt(store, IDENTITY, first.attempt)
    assert part in paths(store)
    for _ in range(2):
        collect_garbage(store, now=time.time() + YEAR)
    assert part not in paths(store)
