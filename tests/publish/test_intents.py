"""Commits and aborts of several attempts: whoever dies where, each is committed once or not at all, and nothing stays."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.identities import aborts_of, identities_of
from lance_core.commit.manifests import latest_version, list_versions
from lance_core.commit.transactions import load_transaction
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError, StoreError
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit, commit_staged
from lance_core.publish.decisions import look
from lance_core.publish.folding import fold_ledger
from lance_core.publish.history import find_committed, in_doubt, settle_history, settled_version
from lance_core.publish.intent import ABORTS, Intent, extend_intent, list_intents, named_by, put_intent, remove_intent
from lance_core.publish.publisher import CommitRequest
from lance_core.publish.verify import damaged_records, explain, set_aside
from tests.commit.commit_support import append, create, live_rows, paths, stage
from tests.io.faulty_stores import FaultyStore
from tests.protocol.protocol_support import HookStore, Killed, is_manifest_put, watched
from tests.publish.publish_support import (
    Interrupted,
    Key,
    LatePut,
    WideStore,
    at_call,
    at_manifest,
    broken,
    committed_at,
    die,
    gc_late,
    intents,
    is_decision,
    key_of,
    kill_before_manifest,
    memory,
    orphans,
    prune,
    records,
    remove_decisions,
)


@pytest.fixture(params=["memory", "wide", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A table of the rows 1, 2, 3 at version 1."""
    kinds = {"memory": MemoryStore, "wide": WideStore}
    name = f"intents-{tmp_path}"
    found: Store = LocalStore(tmp_path / "t.lance") if request.param == "local" else kinds[request.param](name)
    create(found)
    return found


def assert_clean(store: Store, where: object = "") -> None:
    """Nothing that is over has left anything, after a collection."""
    gc_late(store)
    assert (list_staged(store), records(store), orphans(store), broken(store)) == ([], set(), set(), {}), where


# The record


def test_an_intent_is_put_before_the_version_and_goes_behind_the_last_decision(store: Store) -> None:
    refs = [stage(store, (value,)) for value in range(10, 15)]
    place, calls = watched(store)
    done = commit_staged(place, refs)
    assert (done.version, done.num_versions, done.rows_added) == (2, 1, 5)
    (intent,) = {path for _, path in calls if path.startswith(f"{naming.INTENTS}/") and path.endswith(".json")}
    (version,) = [at for at, call in enumerate(calls) if is_manifest_put(*call)]
    decided = [at for at, call in enumerate(calls) if is_decision(*call)]
    files = [at for at, (name, path) in enumerate(calls) if name == "size" and path.startswith("data/")]
    put = calls.index(("put", intent))
    assert put < min(files) < max(files) < version < min(decided) < max(decided) < calls.index(("delete", intent))
    assert (len(files), len(decided)) == (5, 5)
    assert calls[-1] == ("delete", intent), "until all else is gone it says what is left"
    assert (records(store), live_rows(store)) == (set(), [1, 2, 3, *range(10, 15)])


def test_an_intent_names_its_attempts_and_the_version_before_it(store: Store) -> None:
    append(store, (4,))
    refs = [stage(store, (value,), read_version=1) for value in (7, 8)]
    kill_before_manifest(store, refs)
    (found,) = list_intents(store)
    assert (found.attempts, found.base, found.aborts) == (dict(map(key_of, refs)), 2, False)
    assert found.is_alive(found.since + 60) and not found.is_alive(found.since + 1e6)
    assert extend_intent(store, found, attempts=dict(map(key_of, refs))) is found, "nothing new, nothing written"
    more = extend_intent(store, found, uuids=["u"], attempts={"another": "00" * 8})
    assert list_intents(store) == [more]
    assert ({*more.attempts}, more.base, "u" in more.uuids) == ({refs[0].identity, refs[1].identity, "another"}, 2, True)
    assert named_by([more], ["another", "nobody"], below=3) == {"another": [more]}
    assert named_by([more], ["another"], below=2) == {}, "what it published has a greater number"
    assert named_by([more], ["another"], below=3, but=more.commit) == {}


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"format": 2}', b'{"format": 2, "commit": "another"}'])
def test_a_damaged_intent_stops_nothing_and_is_set_aside(tmp_path: Path, data: bytes) -> None:
    store = LocalStore(tmp_path / "t.lance")
    create(store)
    ref, path = stage(store, (7,)), f"{naming.INTENTS}/00ff00ff00ff00ff.json"
    store.put(path, data)
    assert list_intents(store) == []
    assert [item.path for item in damaged_records(store)] == [path]
    for dry_run in (True, False):
        found = CliRunner().invoke(cli, ["staged", "repair", store.uri, *["--dry-run"] * dry_run])
        assert (found.exit_code, path in found.output, path in paths(store)) == (0, True, dry_run), found.output
    assert bytes(store.get(f"{naming.PRIVATE}/aside/intents/00ff00ff00ff00ff.json")) == data
    commit_staged(store, [ref])
    assert live_rows(store) == [1, 2, 3, 7]


def test_a_cleanup_settles_nothing_while_a_commit_is_unknown(store: Store) -> None:
    mine = stage(store, (7,))
    put_intent(store, Intent("00ff00ff00ff00ff", attempts=dict([key_of(mine)]), base=1))
    for value in (97, 98):
        append(store, (value,))
    prune(store)
    append(store, (99,))
    settle_history(store, [3], newest=4)
    with pytest.raises(CommitStateUnknownError):
        find_committed(store, mine.identity, 1)


def test_what_no_intent_names_is_known_where_the_history_is_gone(store: Store) -> None:
    mine, other = stage(store, (7,)), stage(store, (8,))
    intent = put_intent(store, Intent("00ff00ff00ff00ff", attempts=dict([key_of(mine)]), base=1))
    for value in (97, 98):
        append(store, (value,))
    prune(store)
    assert in_doubt(store, {mine.identity: 1, other.identity: 1}) == {mine.identity: 2}
    assert find_committed(store, other.identity, 1) is None
    with pytest.raises(CommitStateUnknownError):
        find_committed(store, mine.identity, 1)
    request = CommitRequest(refs=(mine, other), partial=True)
    with contextlib.suppress(LanceError):
        assert [*commit(store, request).refused] == [mine.identity]
    remove_intent(store, intent)
    assert in_doubt(store, {mine.identity: 1}) == {}
    assert find_committed(store, mine.identity, 1) is None


@pytest.mark.parametrize("cleanup", ["ours", "of others"])
@pytest.mark.parametrize("base", [1, 4])
def test_an_intent_that_came_behind_a_cleanup(base: int, cleanup: str) -> None:
    """A commit reads the newest version, others append and the history goes; then it puts its intent, and is killed.

    What our cleanup has settled is no doubt; what went without it is one, unless the intent began on a later version.
    """
    store = memory()
    ref = stage(store, (7,))
    for value in (97, 98, 99):
        append(store, (value,))
    if cleanup == "ours":
        settle_history(store, [1, 2, 3], newest=4)
        assert settled_version(store) == 4
    prune(store)
    put_intent(store, Intent("00ff00ff00ff00ff", attempts=dict([key_of(ref)]), base=base))
    if (base, cleanup) == (1, "of others"):
        with pytest.raises(CommitStateUnknownError):
            find_committed(store, ref.identity, ref.read_version)
    else:
        assert find_committed(store, ref.identity, ref.read_version) is None


def test_a_cleanup_settles_what_an_intent_names_before_it_removes_the_versions() -> None:
    store = memory()
    refs = [stage(store, (value,)) for value in (7, 8)]
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=1, error=Killed, matches=is_decision), refs)
    append(store, (99,))
    assert [committed_at(store, ref.identity) for ref in refs] == [None, None]
    settle_history(store, [1, 2], newest=3)
    assert [committed_at(store, ref.identity) for ref in refs] == [2, 2]
    prune(store)
    assert {*commit_staged(store, refs).identities.values()} == {"already_committed"}
    assert_clean(store)


# Commits that are killed


@pytest.mark.parametrize("pruned", [False, True], ids=["history there", "history pruned"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_commit_that_is_killed_at_any_of_its_decisions_is_finished_by_anybody(
    number: int, when: str, pruned: bool
) -> None:
    for finisher in ("the same commit", "a part of it", "gc", "our cleanup", "abort"):
        store = memory()
        refs = [stage(store, (value,)) for value in (7, 8, 9)]
        with contextlib.suppress(Killed):
            commit_staged(
                FaultyStore(store, fail_at=number, when=when, error=Killed, matches=is_decision),  # type: ignore[arg-type]
                refs,
            )
        assert len([ref for ref in refs if committed_at(store, ref.identity)]) == number - (when == "before")
        for value in (97, 98):
            append(store, (value,))
        if pruned:
            prune(store)
        if finisher == "abort":
            with pytest.raises(IncompatibleConflictError, match="was committed"):
                abort_attempt(store, *key_of(refs[-1]))
        elif finisher == "gc":
            gc_late(store)
        elif finisher == "our cleanup":
            run_cleanup(store, plan_cleanup(store, older_than=dt.timedelta(0), retain_versions=1))
        else:
            commit_staged(store, refs[1:] if finisher == "a part of it" else refs)
        again = commit_staged(store, refs)
        assert ({*again.identities.values()}, again.num_versions) == ({"already_committed"}, 0), finisher
        assert live_rows(store) == [1, 2, 3, 7, 8, 9, 97, 98], finisher
        assert_clean(store, finisher)


@pytest.mark.parametrize("error", [StoreError, Killed], ids=["store error", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whichever_call_of_a_commit_of_a_group_fails_each_is_committed_once(
    error: Callable[[str], BaseException], when: str
) -> None:
    number, broke = 0, True
    while broke:
        number += 1
        store = memory()
        refs = [stage(store, (value,)) for value in (7, 8, 9)]
        faulty = FaultyStore(store, fail_at=number, when=when, error=error)  # type: ignore[arg-type]
        with contextlib.suppress(LanceError, Killed):
            commit_staged(faulty, refs)
        broke = faulty.num_calls >= number
        where = faulty.log[min(number, faulty.num_calls) - 1]
        commit_staged(store, refs[:2])
        commit_staged(store, refs)
        assert (live_rows(store), latest_version(store) <= 3) == ([1, 2, 3, 7, 8, 9], True), where
        assert_clean(store, where)
    assert number > 25


@pytest.mark.parametrize("first", [slice(0, 2), slice(0, 4), slice(1, 3)])
@pytest.mark.parametrize("second", [slice(1, 4), slice(0, 4), slice(1, 2)])
def test_overlapping_commits_commit_each_attempt_once_and_leave_nothing(store: Store, first: slice, second: slice) -> None:
    """The second one runs as a whole while the first is about to put its version."""
    refs = [stage(store, (value,)) for value in range(10, 14)]
    place = HookStore(store, at_manifest(1, lambda: commit_staged(store, refs[second])))
    commit_staged(place, refs[first])
    wanted = {ref.identity for ref in (*refs[first], *refs[second])}
    assert live_rows(store) == [1, 2, 3, *(10 + number for number, ref in enumerate(refs) if ref.identity in wanted)]
    commit_staged(store, refs)
    assert live_rows(store) == [1, 2, 3, *range(10, 14)]
    assert_clean(store)


def test_a_commit_beside_a_killed_one_that_shares_a_member_ends_both(store: Store) -> None:
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    kill_before_manifest(store, refs[:2])
    commit_staged(store, refs[1:])
    assert intents(store) == [dict(map(key_of, refs[:2]))], "the first of them is still open"
    commit_staged(store, refs[:1])
    assert live_rows(store) == [1, 2, 3, 7, 8, 9]
    assert_clean(store)


@pytest.mark.parametrize("then", ["nothing", "folded", "decisions removed"])
def test_a_version_that_arrives_late_is_found_or_loses(then: str) -> None:
    """The put of a group's version takes effect at any moment of its commit, or long behind it."""
    landed = set[bool]()
    for delay in (*range(1, 40, 3), 10_000):
        store = memory()
        refs = [stage(store, (value,)) for value in (7, 8)]
        hook = LatePut(delay)
        with contextlib.suppress(LanceError):
            commit_staged(HookStore(store, hook), refs)
        commit_staged(store, refs)
        if then == "folded":
            fold_ledger(store, older_than=dt.timedelta(0))
        if then == "decisions removed":
            remove_decisions(store, refs[0].identity)
        hook.land()
        landed.add(hook.has_landed)
        assert {*commit_staged(store, refs).identities.values()} == {"already_committed"}, delay
        assert (live_rows(store), broken(store)) == ([1, 2, 3, 7, 8], {}), delay
        assert_clean(store, delay)
    assert False in landed


# Aborts


def test_an_abort_of_finished_work_is_a_version_that_changes_no_row(store: Store) -> None:
    ref = stage(store, (7,))
    place, calls = watched(store)
    assert abort_attempt(place, *key_of(ref))
    version = load_transaction(store, 2)
    assert version is not None
    assert (aborts_of(version), identities_of(version)) == ({ref.identity: (ref.attempt,)}, {})
    assert version.operation.name == "ReserveFragments"
    # Intent, version, decision, and only then a file.
    (intent,) = {path for name, path in calls if name == "put" and path.startswith(f"{naming.INTENTS}/")}
    (put,) = [at for at, call in enumerate(calls) if is_manifest_put(*call)]
    (decided,) = [at for at, call in enumerate(calls) if is_decision(*call)]
    first = min(at for at, (name, path) in enumerate(calls) if name == "delete" and path.startswith("data/"))
    assert calls.index(("put", intent)) < put < decided < first
    assert_clean(store)


@pytest.mark.parametrize("first", ["killed commit", "nobody"])
def test_an_aborted_member_does_not_keep_the_others(store: Store, first: str) -> None:
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    if first == "killed commit":
        kill_before_manifest(store, refs)
    assert abort_attempt(store, *key_of(refs[0]))
    for repeated in range(2):
        with pytest.raises(IncompatibleConflictError, match="aborted"):
            commit_staged(store, refs)
        assert abort_attempt(store, *key_of(refs[0])) == [], repeated
    assert latest_version(store) == 2, "one version says it"
    partly = commit(store, CommitRequest(refs=tuple(refs), partial=True))
    assert ([*partly.refused], {*partly.identities.values()}) == ([refs[0].identity], {"committed"})
    assert live_rows(store) == [1, 2, 3, 8, 9]
    assert_clean(store)


def test_a_commit_that_sleeps_before_its_version_is_refused_when_one_of_its_group_was_aborted(store: Store) -> None:
    refs = [stage(store, (value,)) for value in (7, 8, 9)]
    place = HookStore(store, at_manifest(1, lambda: abort_attempt(store, *key_of(refs[1]))))
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(place, refs)
    assert (live_rows(store), latest_version(store)) == ([1, 2, 3], 2)
    commit_staged(store, [refs[0], refs[2]])
    assert (live_rows(store), broken(store)) == ([1, 2, 3, 7, 9], {})
    assert_clean(store)


@pytest.mark.parametrize("races", [False, True], ids=["by itself", "beside another writer"])
@pytest.mark.parametrize("then", ["goes on", "dies"])
def test_an_abort_at_any_call_of_a_commit_of_a_group_loses_and_doubles_nothing(then: str, races: bool) -> None:
    number, outcomes = 0, set[bool]()
    while True:
        number += 1
        store = memory()
        refs = [stage(store, (value,)) for value in (7, 8, 9)]
        removed: list[str] = []

        def abort(store: Store = store, key: Key = key_of(refs[0]), removed: list[str] = removed) -> None:
            with contextlib.suppress(IncompatibleConflictError):  # it was committed
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
        assert_clean(store, number)
        assert live_rows(store) == rows, number
        outcomes.add(bool(removed))
    assert outcomes == {False, True}
    assert number > 25


@pytest.mark.parametrize("then", ["again", "commit", "commit and again", "gc"])
def test_an_abort_that_is_killed_at_any_call_is_finished_or_undone_by_a_commit(then: str) -> None:
    """Also between its version and its decision. Whoever comes first behind it decides, and all agree."""
    for number in itertools.count(1):
        store = memory()
        ref = stage(store, (7,))
        calls = itertools.count(1)

        def hook(name: str, path: str, action: Callable[[], Any], number: int = number, calls: Any = calls) -> Any:
            if next(calls) == number:
                raise Killed
            return action()

        try:
            abort_attempt(HookStore(store, hook), *key_of(ref))
            break
        except Killed:
            pass
        is_said = latest_version(store) == 2
        if "commit" in then:
            try:
                commit_staged(store, [ref])
            except IncompatibleConflictError:
                assert is_said, "a decision came behind the version"
        if then == "gc":
            gc_late(store)
        if "again" in then or then == "gc":
            with contextlib.suppress(IncompatibleConflictError):
                abort_attempt(store, *key_of(ref))
        state = look(store, ref.identity)
        rows = live_rows(store)
        assert (7 in rows) == (state.committed is not None), number
        if state.committed is None:
            abort_attempt(store, *key_of(ref))
        assert_clean(store, number)
        assert live_rows(store) == rows
    assert number > 12


def test_an_abort_whose_version_was_pruned_before_it_decided_is_no_way_to_publish(store: Store) -> None:
    """It sleeps behind its version; others go on and prune; a commit finds its intent, and does not know."""
    ref = stage(store, (7,))
    with contextlib.suppress(Killed):
        abort_attempt(HookStore(store, at_call(1, die, matches=is_decision)), *key_of(ref))
    (intent,) = list_intents(store)
    assert (intent.outcome, intent.base) == (ABORTS, 1)
    append(store, (99,))
    prune(store)
    with pytest.raises(LanceError):
        commit_staged(store, [ref])
    assert live_rows(store) == [1, 2, 3, 99]
    abort_attempt(store, *key_of(ref))
    assert live_rows(store) == [1, 2, 3, 99]
    assert_clean(store)


def test_an_abort_of_what_would_create_the_table_needs_no_version() -> None:
    store = memory(empty=True)
    refs = [stage(store, (value,), read_version=0) for value in (7, 8)]
    assert abort_attempt(store, *key_of(refs[0]))
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(store, refs)
    commit_staged(store, refs[1:])
    assert (live_rows(store), latest_version(store)) == ([8], 1)
    assert_clean(store)


def test_a_creation_whose_abort_was_begun_is_not_published() -> None:
    """The abort has put its intent and sleeps: the commit decides for it."""
    store = memory(empty=True)
    ref = stage(store, (7,), read_version=0)
    with contextlib.suppress(Killed):
        abort_attempt(HookStore(store, at_call(1, die, matches=is_decision)), *key_of(ref))
    assert [item.aborts for item in list_intents(store)] == [True]
    with pytest.raises(IncompatibleConflictError, match="was aborted"):
        commit_staged(store, [ref])
    assert list_versions(store) == []
    gc_late(store)
    assert records(store) == set()


# Garbage collection


@pytest.mark.parametrize("end", ["committed", "aborted", "one of each"])
def test_gc_keeps_an_intent_until_each_attempt_is_decided(store: Store, end: str) -> None:
    refs = [stage(store, (value,)) for value in (7, 8)]
    kill_before_manifest(store, refs)
    append(store, (99,))
    both = dict(map(key_of, refs))
    gc_late(store)
    assert both in intents(store), "both are staged"
    if end == "aborted":
        abort_attempt(store, *key_of(refs[0]))
    else:
        commit_staged(store, refs[:1])
    gc_late(store)
    assert both in intents(store), "one is staged"
    if end == "committed":
        commit_staged(store, refs[1:])
    else:
        abort_attempt(store, *key_of(refs[1]))
    assert live_rows(store) == [1, 2, 3, *([7] if end != "aborted" else []), *([8] if end == "committed" else []), 99]
    assert_clean(store)


def test_gc_keeps_what_says_that_a_sibling_is_in_doubt(store: Store) -> None:
    refs = [stage(store, (value,)) for value in (7, 8)]
    kill_before_manifest(store, refs)
    for value in (97, 98, 99):
        append(store, (value,))
    prune(store)
    for _ in range(2):
        with pytest.raises(CommitStateUnknownError):
            find_committed(store, refs[0].identity, 1)
        gc_late(store)
        assert intents(store) == [dict(map(key_of, refs))]
    for ref in refs:  # a person says how it is
        abort_attempt(store, *key_of(ref), certain=True)
    assert_clean(store)


# Told to a person


def _said(store: Store, identity: str) -> list[str]:
    return [f"{line['what']}: {line['says']}" for line in explain(store, identity)]


def test_explain_tells_the_story_of_an_identity(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t.lance")
    create(store)
    first = stage(store, (7,))
    identity = first.identity
    abort_attempt(store, identity, first.attempt, by="a person")
    second = stage(store, (7,), identity=identity)
    kill_before_manifest(store, [second])
    said = _said(store, identity)
    assert said[0] == "attempt: began on this version"
    assert said[1:4] == [
        f"decision 1: finished by {first.attempt}",
        "decision 2: aborted by a person",
        f"decision 3: finished by {second.attempt}",
    ]
    assert said[4].startswith("intent ") and "a commit had begun" in said[4]
    assert said[-1] == "now: it waits for its commit: commit again, or abort it"
    for value in (97, 98):
        append(store, (value,))
    prune(store)
    assert "unknown: the history of version" in _said(store, identity)[-1]
    assert "lance staged settle" in _said(store, identity)[-1]
    found = CliRunner().invoke(cli, ["staged", "explain", store.uri, identity])
    assert found.exit_code == 0, found.output
    assert "decision 3" in found.output


def test_explain_speaks_of_what_was_committed_folded_or_never_there() -> None:
    store = memory()
    assert _said(store, "nobody") == ["now: nothing is known of it"]
    ref = stage(store, (7,))
    commit_staged(store, [ref])
    assert _said(store, ref.identity)[-1] == "now: it is committed; committing it again adds nothing"
    fold_ledger(store, older_than=dt.timedelta(0))
    said = _said(store, ref.identity)
    assert said[0] == "decision 2: committed, folded into a segment"
    assert said[-1] == "now: it is committed; committing it again adds nothing"
    other = stage(store, (8,))
    abort_attempt(store, *key_of(other))
    assert _said(store, other.identity)[-1] == "now: nothing waits for a commit"


def test_a_collection_shows_what_it_would_do_and_does_not(store: Store) -> None:
    refs = [stage(store, (value,)) for value in (7, 8)]
    with contextlib.suppress(Killed):
        commit_staged(FaultyStore(store, fail_at=2, error=Killed, matches=is_decision), refs)
    before = records(store)
    report = collect_garbage(store, dry_run=True)
    assert records(store) == before
    assert {*report.files} <= paths(store)
    assert {*report.files} == {*collect_garbage(store).files}
    assert_clean(store)


def test_records_that_are_set_aside_are_in_nobodys_way(store: Store) -> None:
    ref = stage(store, (7,))
    intent = put_intent(store, Intent("00ff00ff00ff00ff", attempts=dict([key_of(ref)]), base=1))
    assert set_aside(store, [intent.path]) == [f"{naming.PRIVATE}/aside/intents/00ff00ff00ff00ff.json"]
    assert list_intents(store) == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_commit_without_memory_at_any_call_is_known_or_in_doubt_where_others_prune(count: int, when: str) -> None:
    """What is no error of the store says nothing about what was put: the intent stays until each has its decision."""
    number = 0
    while True:
        number += 1
        inner = MemoryStore(f"shortage-{count}-{when}-{number}")
        create(inner)
        refs = [stage(inner, (value,)) for value in range(10, 10 + count)]
        faulty = FaultyStore(inner, fail_at=number, when=when, error=MemoryError)
        with contextlib.suppress(MemoryError, LanceError):
            commit_staged(faulty, refs)
        for value in (97, 98):
            append(inner, (value,))
        prune(inner)
        rows = live_rows(inner)
        for value, ref in enumerate(refs, start=10):
            with contextlib.suppress(CommitStateUnknownError):
                found = find_committed(inner, ref.identity, 1)
                assert (found is not None) == (value in rows), (number, faulty.log[number - 1], value)
        if faulty.num_calls < number:
            break
    assert number > 5
