"""The decision log of an identity: numbers, who wins one, the whole state in each, and what is folded stays taken."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from lance_core.commit.manifests import latest_version
from lance_core.errors import CorruptFileError, IncompatibleConflictError, LanceError, StoreError
from lance_core.io.store import Store
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.commit import commit_staged
from lance_core.publish.decisions import (
    CommittedWork,
    DecisionState,
    decide,
    decision_path,
    list_identities,
    look,
    look_many,
    parse_decision_name,
    read_decision,
    say_committed,
)
from lance_core.publish.folding import fold_ledger
from lance_core.publish.intent import Intent, list_intents, put_intent, remove_intent
from lance_core.publish.model import Attempt
from lance_core.publish.stage import begin, begin_attempt
from lance_core.publish.verify import damaged_records, set_aside
from tests.commit.commit_support import create, finish, live_rows, stage
from tests.io.faulty_stores import FaultyStore
from tests.protocol.protocol_support import HookStore, Killed
from tests.publish.publish_support import (
    LatePut,
    at_call,
    decisions,
    gc_late,
    is_decision,
    memory,
    orphans,
    records,
)

IDENTITY = "5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e11"
ONE, TWO, THREE = "01" * 8, "02" * 8, "03" * 8
AT_ONCE = dt.timedelta(0)


def against(attempt: str, by: str = "a test") -> Callable[[DecisionState], DecisionState | None]:
    """Decides against an attempt, once."""
    return lambda state: None if state.is_aborted(attempt) else state.abort(attempt, by=by)


@pytest.fixture
def store() -> Store:
    return memory()


# Numbers


def test_each_decision_is_the_next_number_and_carries_the_whole_state(store: Store) -> None:
    first = stage(store, (7,), identity=IDENTITY)
    decide(store, IDENTITY, against(ONE))
    decide(store, IDENTITY, against(TWO))
    found = decisions(store, IDENTITY)
    assert [(item.number, item.outcome, item.attempt) for item in found] == [
        (1, "finished", first.attempt),
        (2, "aborted", ONE),
        (3, "aborted", TWO),
    ]
    # The abort of another try hides neither what was finished nor the abort before.
    assert found[-1] == look(store, IDENTITY)
    assert (found[-1].finished, {*found[-1].aborted}) == (first, {ONE, TWO})
    assert (found[-1].spec, found[-1].transaction is not None) == ({"kind": "append"}, True)
    commit_staged(store, [first])
    last = look(store, IDENTITY)
    assert (last.number, last.outcome, last.finished, {*last.aborted}) == (4, "committed", None, {ONE, TWO})
    assert (last.is_decided(first.attempt), last.is_decided(ONE), last.is_decided(THREE)) == (True, True, False)
    assert decide(store, IDENTITY, against(ONE)).number == 4, "there was nothing to decide"
    assert list_identities(store) == {IDENTITY: [1, 2, 3, 4]}


@pytest.mark.parametrize("kind", ["same", "other"])
def test_who_loses_a_number_reads_again_before_it_decides(store: Store, kind: str) -> None:
    other = ONE if kind == "same" else TWO
    place = HookStore(store, at_call(1, lambda: decide(store, IDENTITY, against(other, "somebody")), matches=is_decision))
    state = decide(place, IDENTITY, against(ONE, "me"))
    assert dict(state.aborted) == ({ONE: "somebody"} if kind == "same" else {TWO: "somebody", ONE: "me"})
    assert state.number == 1 + (kind == "other")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [StoreError, Killed])
def test_a_put_that_fails_is_settled_by_looking(store: Store, when: str, error: Callable[[str], BaseException]) -> None:
    faulty = FaultyStore(store, fail_at=1, when=when, error=error, matches=is_decision)  # type: ignore[arg-type]
    with contextlib.suppress(Killed):
        assert decide(faulty, IDENTITY, against(ONE)).is_aborted(ONE)
    assert decide(store, IDENTITY, against(ONE)).number == 1
    assert list_identities(store) == {IDENTITY: [1]}


def test_a_store_that_refuses_decisions_is_named(store: Store) -> None:
    faulty = FaultyStore(store, fail_at=1, forever=True, matches=is_decision)
    with pytest.raises(StoreError, match=IDENTITY):
        decide(faulty, IDENTITY, against(ONE))
    assert list_identities(store) == {}


def test_a_put_that_arrives_late_has_lost_its_number(store: Store) -> None:
    """It timed out, and the next try decided; nothing changes when it lands."""
    hook = LatePut(10_000, matches=is_decision)
    late = decide(HookStore(store, hook), IDENTITY, against(ONE))
    assert late.number == 1
    before = look(store, IDENTITY)
    hook.land()
    assert (hook.has_landed, look(store, IDENTITY)) == (False, before)


@pytest.mark.parametrize("name", ["x.json", "a.1.json", "a.00001.json", "a.0000001.json", ".000001.json", "a.000001.tmp"])
def test_files_beside_the_decisions_are_none(store: Store, name: str) -> None:
    assert parse_decision_name(name) is None
    store.put(f"_lance_core/decisions/{name}", b"{")
    assert list_identities(store) == {}


# Records from strangers


@pytest.mark.parametrize(
    "changed",
    [
        {"identity": "another"},
        {"number": 2},
        {"number": None},
        {"finished": {"uri": "/t"}},
        {"committed": {"version": "two"}},
        {"aborted": [ONE]},
        {"transaction": "no base64!"},
        {"transaction": "AAAA"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_damaged_decision_stops_the_commit_and_the_abort_until_it_is_set_aside(
    store: Store, changed: dict[str, Any]
) -> None:
    ref = stage(store, (7,))
    path = decision_path(ref.identity, 1)
    plain = {**json.loads(bytes(store.get(path))), **changed}
    store.put(path, json.dumps(plain).encode())
    for refused in (lambda: commit_staged(store, [ref]), lambda: abort_attempt(store, ref.identity, ref.attempt)):
        with pytest.raises(LanceError, match=r"decision|000001") as caught:
            refused()
        assert "lance staged repair" in f"{caught.value.cure} {caught.value}"
    with pytest.raises(CorruptFileError):
        look(store, ref.identity)
    assert (live_rows(store), latest_version(store), list_intents(store)) == ([1, 2, 3], 1, [])
    gc_late(store)
    assert [item.path for item in damaged_records(store)] == [path]
    assert set_aside(store, [path]) == [f"_lance_core/aside/decisions/{ref.identity}.000001.json"]
    commit_staged(store, [stage(store, (7,), identity=ref.identity)])
    assert live_rows(store) == [1, 2, 3, 7]


def test_many_states_name_the_damaged_one_and_give_the_others(store: Store) -> None:
    refs = [stage(store, (value,)) for value in (7, 8)]
    store.put(decision_path(refs[0].identity, 1), b"{")
    damaged: dict[str, CorruptFileError] = {}
    found = look_many(store, [ref.identity for ref in refs], damaged=damaged)
    assert ([*found], [*damaged]) == ([refs[1].identity], [refs[0].identity])


# Folded


def _folded(store: Store) -> DecisionState:
    """An identity that was staged, aborted, staged again and committed, and is folded."""
    first = stage(store, (7,), identity=IDENTITY)
    abort_attempt(store, IDENTITY, first.attempt)
    commit_staged(store, [stage(store, (8,), identity=IDENTITY)])
    state = look(store, IDENTITY)
    assert state.number == 4
    assert fold_ledger(store, older_than=AT_ONCE).folded == 1
    assert list_identities(store) == {}
    return state


def test_segments_keep_the_highest_number_and_the_state(store: Store) -> None:
    state = _folded(store)
    assert look(store, IDENTITY) == state
    assert say_committed(store, CommittedWork(IDENTITY, 9), by="a test").number == 5
    assert list_identities(store) == {IDENTITY: [5]}
    assert {*look(store, IDENTITY).aborted} == {*state.aborted}


@pytest.mark.parametrize("number", [1, 2, 4])
def test_what_arrives_at_or_below_the_highest_number_is_void(store: Store, number: int) -> None:
    """A put that was sent before the fold, and takes effect behind it."""
    state = _folded(store)
    late = DecisionState(IDENTITY, number, "aborted", ONE, aborted={ONE: "late"})
    store.put(decision_path(IDENTITY, number), json.dumps(dict(late.to_plain())).encode())
    assert look(store, IDENTITY) == state
    assert look_many(store, [IDENTITY])[IDENTITY] == state
    assert decide(store, IDENTITY, against(TWO)).number == 5
    # The next fold takes what counts, and removes what does not.
    fold_ledger(store, older_than=AT_ONCE)
    assert list_identities(store) == {}
    assert {*look(store, IDENTITY).aborted} == {*state.aborted, TWO}


def test_a_try_that_read_before_the_fold_decides_behind_it(store: Store) -> None:
    """It sleeps between its look and its put; the number that it puts is void, so it decides again."""
    abort_attempt(store, IDENTITY, begin_attempt(store, identity=IDENTITY, spec={}, read_version=1).attempt)
    attempt = begin_attempt(store, identity=IDENTITY, spec={}, read_version=1)
    place = HookStore(store, at_call(1, lambda: _fold_whatever(store), matches=is_decision))
    abort_attempt(place, IDENTITY, attempt.attempt)
    assert look(store, IDENTITY).is_aborted(attempt.attempt)


def _fold_whatever(store: Store) -> None:
    """A fold that goes on although an attempt is at work: the worst that a wrong one could do."""
    from lance_core.publish import folding

    index = folding.newest_index(store)
    share = {IDENTITY: look(store, IDENTITY)}
    assert folding._publish(store, index, share) is not None
    folding._remove_plain(store, share)


@pytest.mark.parametrize("busy", ["it waits for its commit", "an intent names it", "an attempt is at work"])
def test_what_is_busy_is_not_folded(store: Store, busy: str) -> None:
    ref = stage(store, (7,), identity=IDENTITY)
    intent = Intent("00ff00ff00ff00ff", attempts={IDENTITY: ref.attempt}, base=1)
    if busy != "it waits for its commit":
        commit_staged(store, [ref])
    if busy == "an intent names it":
        put_intent(store, intent)
    if busy == "an attempt is at work":
        begin(store, Attempt(identity=IDENTITY, spec={}, read_version=2))
    assert fold_ledger(store, older_than=AT_ONCE).folded == 0
    if busy == "an intent names it":
        remove_intent(store, intent)
        assert fold_ledger(store, older_than=AT_ONCE).folded == 1


# Attempts


def test_an_abort_of_one_try_never_hides_what_another_has_finished(store: Store) -> None:
    slow = begin_attempt(store, identity=IDENTITY, spec={"kind": "append"}, read_version=1)
    quick = stage(store, (7,), identity=IDENTITY)
    abort_attempt(store, IDENTITY, slow.attempt)
    assert [entry.state for entry in list_staged(store)] == ["finished"]
    assert latest_version(store) == 1, "an abort of unfinished work is a decision, and no version"
    assert commit_staged(store, [quick]).num_versions == 1
    assert finish(store, slow, (7,)).identity == IDENTITY
    gc_late(store)
    assert (live_rows(store), records(store), orphans(store)) == ([1, 2, 3, 7], set(), set())


def test_who_was_aborted_cannot_finish_although_nothing_else_is_there(store: Store) -> None:
    slow = begin_attempt(store, identity=IDENTITY, spec={"kind": "append"}, read_version=1)
    abort_attempt(store, IDENTITY, slow.attempt)
    with pytest.raises(LanceError, match="aborted while it ran") as caught:
        finish(store, slow, (7,))
    assert caught.value.retryable
    assert look(store, IDENTITY).finished is None


def test_an_abort_says_who_and_a_commit_of_what_it_hit_says_what_is_staged_now(store: Store) -> None:
    old = stage(store, (7,), identity=IDENTITY)
    abort_attempt(store, IDENTITY, old.attempt, by="a person")
    assert dict(look(store, IDENTITY).aborted) == {old.attempt: "a person"}
    new = stage(store, (7,), identity=IDENTITY)
    with pytest.raises(IncompatibleConflictError, match=f"attempt {new.attempt} is staged"):
        commit_staged(store, [old])
    assert commit_staged(store, [new]).rows_added == 1


def test_each_number_can_be_read_by_itself(store: Store) -> None:
    ref = stage(store, (7,))
    found = read_decision(store, ref.identity, 1)
    assert found is not None
    assert (found.finished, found.by) == (ref, ref.attempt)
    assert time.time() - found.decided_at < 600
    assert read_decision(store, ref.identity, 2) is None


def test_a_table_of_another_name_has_its_own() -> None:
    one, other = memory(), memory(empty=True)
    create(other)
    ref = stage(one, (7,))
    assert look(other, ref.identity).number == 0
