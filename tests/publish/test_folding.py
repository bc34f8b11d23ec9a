"""Folded decisions: a look-up finds them on every store, whatever was killed, run twice or forgotten in between."""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench.object_client import object_server
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import CorruptFileError, RetryableConflictError, StoreError
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.publish import folding, segments
from lance_core.publish.decisions import (
    COMMITTED,
    CommittedWork,
    DecisionState,
    decision_path,
    list_identities,
    look,
    look_many,
    say_committed,
)
from lance_core.publish.folding import fold_again, fold_ledger
from lance_core.publish.history import LogSearch, find_committed, known_commit, search
from lance_core.publish.segments import FOLDED, HINT_PATH, decode_index, encode_index, index_path, newest_index
from lance_core.publish.table_id import table_id_of
from lance_core.publish.verify import forget, list_ledger, set_aside, void_records
from tests.commit.commit_support import append, create

T = TypeVar("T")

_AT_ONCE = dt.timedelta(0)
_NAMES = [f"{number * 7919 % 97:02d}-job" for number in range(24)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of three records, segments of two blocks: a few records are what a million are otherwise."""
    monkeypatch.setattr(segments, "BLOCK_RECORDS", 3)
    monkeypatch.setattr(folding, "SEGMENT_BLOCKS", 2)


def _table(store: Store | None = None) -> Store:
    place = MemoryStore(f"folding-{uuid.uuid4().hex}") if store is None else store
    create(place)
    return place


def _say(store: Store, names: Sequence[str], *, attempt: str = "") -> None:
    for name in names:
        say_committed(store, CommittedWork(name, 1, attempt or f"of {name}", digest="d" * 64), by="a test")


def _answers(store: Store, names: Sequence[str] = _NAMES) -> dict[str, str]:
    found = [state.committed for state in look_many(store, names).values()]
    return {item.identity: item.attempt for item in found if item is not None}


def _work_of(store: Store, name: str) -> CommittedWork | None:
    return look(store, name).committed


@pytest.fixture(scope="module")
def server_options() -> Iterator[dict[str, str]]:
    with object_server() as server:
        yield dict(server.options)


@pytest.fixture(params=["memory", "local", "objects", "external"])
def store(request: pytest.FixtureRequest, tmp_path: Path, server_options: dict[str, str]) -> Store:
    uris = {
        "local": str(tmp_path / "t"),
        "objects": f"s3://b{uuid.uuid4().hex}/t",
        "external": str(tmp_path / "e"),
    }
    if request.param == "memory":
        return _table()
    if request.param == "external":
        return _table(resolve_store(uris["external"], {"manifest_store_url": f"sqlite:///{tmp_path}/register.db"}))
    return _table(resolve_store(uris[request.param], server_options if request.param == "objects" else None))


def test_what_was_folded_is_found_on_every_store(store: Store, small: None) -> None:
    _say(store, _NAMES[:16])
    expected = _answers(store)
    done = fold_ledger(store, older_than=_AT_ONCE)
    assert (done.folded, done.removed, done.total, done.generation) == (16, 16, 16, 1)
    assert list_identities(store) == {}
    assert _answers(store) == expected == {name: f"of {name}" for name in _NAMES[:16]}
    _say(store, _NAMES[16:])
    assert fold_ledger(store, older_than=_AT_ONCE).total == len(_NAMES)
    assert [item.identity for item in list_ledger(store)] == sorted(_NAMES)
    assert void_records(store) == []
    whole = known_commit(store, look(store, _NAMES[3]))
    assert whole is not None
    assert (whole.version, whole.attempt, whole.digest) == (1, f"of {_NAMES[3]}", "d" * 64)
    assert _work_of(store, "nobody") is None
    # Nothing is left of the generations before but their indices.
    index = newest_index(store)
    assert index is not None
    names = {item.name for item in index.segments} | {"00000001.json", "00000002.json", "_newest.json"}
    assert set(store.list_names(f"{FOLDED}/")) == names


def test_only_what_is_old_and_can_be_read_is_folded() -> None:
    store = _table()
    _say(store, _NAMES[:4])
    say_committed(store, CommittedWork("void", 9, transaction="of another table"), by="a test")
    store.put(decision_path("damaged", 1), b"{")
    assert fold_ledger(store).folded == 0
    assert not store.list_names(f"{FOLDED}/")
    assert fold_ledger(store, older_than=_AT_ONCE).folded == 5
    assert [*list_identities(store)] == ["damaged"]
    assert [item.reason for item in void_records(store) if item.path.endswith("void.000001.json")]
    assert known_commit(store, look(store, "void")) is None
    assert fold_ledger(store, older_than=_AT_ONCE).generation == 1, "there was nothing to fold"


def test_a_commit_finds_folded_work_when_the_history_is_gone_and_when_it_is_there() -> None:
    store = _table()
    append(store, (4,))
    say_committed(store, CommittedWork("old", 1, "a" * 16), by="a test")
    fold_ledger(store, older_than=_AT_ONCE)
    assert find_committed(store, "old", 1) == 1, "the log since its base is whole, and says nothing"
    run_cleanup(store, plan_cleanup(store, retain_versions=1))
    assert search(store, LogSearch({"old": 0, "new": 2})).versions == {"old": 1}


class Killed(BaseException):
    """The process dies here."""


class _Hooked(WrappedStore):
    """Calls `hook(number)` before each call."""

    def __init__(self, inner: Store, hook: Callable[[int], object]) -> None:
        super().__init__(inner)
        self._hook = hook
        self.num_calls = 0

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        self.num_calls += 1
        self._hook(self.num_calls)
        return action()


def _dies_at(number: int) -> Callable[[int], None]:
    def hook(call: int) -> None:
        if call == number:
            raise Killed

    return hook


def _two_generations() -> Store:
    store = _table()
    _say(store, _NAMES[:9])
    fold_ledger(store, older_than=_AT_ONCE)
    _say(store, _NAMES[9:18])
    return store


def test_a_fold_that_is_killed_at_any_call_loses_nothing_and_the_next_one_ends_it(small: None) -> None:
    number = died = 0
    while died == number:
        store, number = _two_generations(), number + 1
        expected = _answers(store)
        try:
            fold_ledger(_Hooked(store, _dies_at(number)), older_than=_AT_ONCE)
        except Killed:
            died += 1
        assert _answers(store) == expected, number
        assert fold_ledger(store, older_than=_AT_ONCE).total == 18
        assert (_answers(store), list_identities(store)) == (expected, {})
        index = newest_index(store)
        assert index is not None
        left = {name for name in store.list_names(f"{FOLDED}/") if name.endswith(".seg")}
        assert left == {item.name for item in index.segments}, number
    assert died > 20


@pytest.mark.parametrize("other", ["fold", "forget", "land", "look"])
def test_whatever_happens_between_two_calls_of_a_fold_nothing_is_lost(other: str, small: None) -> None:
    number = happened = 0
    while happened == number:
        store, number = _two_generations(), number + 1
        expected = _answers(store)
        if other == "forget":
            del expected[_NAMES[2]], expected[_NAMES[11]]
        if other == "land":
            expected.update(dict.fromkeys(_NAMES[18:], "late"))

        def meanwhile(call: int, number: int = number, store: Store = store, expected: dict[str, str] = expected) -> None:
            nonlocal happened
            if other == "look":
                assert _answers(store) == expected, call
            elif call == number:
                happened += 1
                if other == "fold":
                    fold_ledger(store, older_than=_AT_ONCE)
                elif other == "forget":
                    forget(store, _NAMES[2])
                    forget(store, _NAMES[11])
                else:
                    _say(store, _NAMES[18:], attempt="late")

        fold_ledger(_Hooked(store, meanwhile), older_than=_AT_ONCE)
        if other == "look":
            return
        if happened == number:
            assert _answers(store) == expected, number
    assert happened > 20


def test_an_old_hint_and_an_old_index_mislead_nobody(small: None) -> None:
    store = _two_generations()
    old, expected = bytes(store.get(HINT_PATH)), _answers(store)
    fold_ledger(store, older_than=_AT_ONCE)
    store.put(HINT_PATH, old)  # a put that was abandoned takes effect now
    assert _answers(store) == expected
    store.put(HINT_PATH, b"damaged")
    assert _answers(store) == expected
    fold_ledger(store, older_than=_AT_ONCE)
    assert decode_index(bytes(store.get(HINT_PATH)), where="").number == 2


class _Unanswered(WrappedStore):
    """The put of an index gets no answer; it may have happened."""

    def __init__(self, inner: Store, *, lands: bool) -> None:
        super().__init__(inner)
        self._lands = lands

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        if name == "put_if_absent" and path.startswith(FOLDED):
            if self._lands:
                action()
            raise StoreError("timed out")
        return action()


@pytest.mark.parametrize("lands", [False, True])
def test_a_put_without_an_answer_is_settled_by_looking(lands: bool, small: None) -> None:
    store = _two_generations()
    expected = _answers(store)
    if lands:
        assert fold_ledger(_Unanswered(store, lands=True), older_than=_AT_ONCE).generation == 2
    else:
        with pytest.raises(StoreError):
            fold_ledger(_Unanswered(store, lands=False), older_than=_AT_ONCE)
    assert _answers(store) == expected
    assert fold_ledger(store, older_than=_AT_ONCE).generation == 2
    assert _answers(store) == expected


class _AlwaysLate(WrappedStore):
    """Somebody else makes each generation right before."""

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        if name == "put_if_absent" and path.startswith(FOLDED):
            index = newest_index(self.inner)
            assert index is not None
            self.inner.put(path, encode_index(segments.LedgerIndex(index.number + 1, index.count, index.segments)))
        return action()


def test_somebody_who_always_wins_is_named() -> None:
    with pytest.raises(RetryableConflictError, match="at the same time"):
        fold_ledger(_AlwaysLate(_two_generations()), older_than=_AT_ONCE)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("land"), st.integers(0, 23), st.integers(0, 3)),
        st.tuples(st.just("forget"), st.integers(0, 23), st.just(0)),
        st.tuples(st.just("fold"), st.just(0), st.just(0)),
        st.tuples(st.just("killed fold"), st.integers(1, 60), st.just(0)),
        st.tuples(st.just("old hint"), st.just(0), st.just(0)),
    ),
    max_size=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    steps=[
        ("land", 0, 3),
        ("land", 7, 2),
        ("fold", 0, 0),
        ("forget", 0, 0),
        ("land", 3, 3),
        ("killed fold", 23, 0),
        ("old hint", 0, 0),
    ]
)
@given(steps=_STEPS)
def test_any_history_gives_the_answers_of_a_dictionary(steps: list[tuple[str, int, int]], small: None) -> None:
    store = _table()
    expected: dict[str, str] = {}
    hints: list[bytes] = []
    for what, number, extra in steps:
        if what == "land":
            for name in _NAMES[number : number + extra + 1]:
                if name not in expected:
                    _say(store, [name])
                    expected[name] = f"of {name}"
        elif what == "forget":
            moved = forget(store, _NAMES[number])
            assert bool(moved) == (_NAMES[number] in expected)
            expected.pop(_NAMES[number], None)
        elif what == "fold":
            fold_ledger(store, older_than=_AT_ONCE)
            assert list_identities(store) == {}
        elif what == "killed fold":
            with contextlib.suppress(Killed):
                fold_ledger(_Hooked(store, _dies_at(number)), older_than=_AT_ONCE)
        elif hints:
            store.put(HINT_PATH, hints[0])
        if HINT_PATH.rpartition("/")[2] in store.list_names(f"{FOLDED}/"):
            hints.append(bytes(store.get(HINT_PATH)))
        assert _answers(store) == expected
        assert {item.identity: item.attempt for item in list_ledger(store)} == expected


@pytest.mark.parametrize(
    "further", [("19-job", "54-job", "81-job"), ("05-job", "99-job"), ("00-job",), ("62-job", "95-job")]
)
@pytest.mark.parametrize("forgotten", [None, "00-job", "89-job"])
def test_a_fold_is_killed_at_every_step_and_an_older_hint_comes_back(
    forgotten: str | None, further: tuple[str, ...], small: None
) -> None:
    """A put of the hint takes effect late; then look-ups meet one generation first and an older one when they look again."""
    first = ("00-job", "11-job", "27-job", "46-job", "62-job", "73-job", "89-job")
    for number in range(1, 60):
        store, hints = _table(), list[bytes]()
        _say(store, first)
        fold_ledger(store, older_than=_AT_ONCE)
        hints.append(bytes(store.get(HINT_PATH)))
        if forgotten is not None:
            forget(store, forgotten)
            hints.append(bytes(store.get(HINT_PATH)))
        _say(store, further)
        expected = {name: f"of {name}" for name in {*first, *further} - ({forgotten} - {*further})}
        hook = _Hooked(store, _dies_at(number))
        is_killed = False
        try:
            fold_ledger(hook, older_than=_AT_ONCE)
        except Killed:
            is_killed = True
        for hint in hints:
            store.put(HINT_PATH, hint)
            assert _answers(store, sorted({*first, *further})) == expected, (number, hints.index(hint))
            assert {name: _work_of(store, name) is not None for name in expected} == dict.fromkeys(expected, True)
        if not is_killed:
            return
    raise AssertionError("a fold has more steps than were tried")


def test_a_forgotten_record_is_kept_aside(small: None) -> None:
    store = _two_generations()
    moved = forget(store, _NAMES[0])
    assert moved == [f"_lance_core/aside/decisions/{_NAMES[0]}.000001.json"]
    assert b'"attempt":"of ' in bytes(store.get(moved[0]))
    assert _work_of(store, _NAMES[0]) is None
    assert forget(store, "nobody") == []


def test_folded_records_of_a_table_that_was_here_before_are_void(tmp_path: Path) -> None:
    store = _table(LocalStore(tmp_path / "t"))
    append(store, (4,))
    say_committed(store, CommittedWork("mine", 2, "a" * 16, table_id=table_id_of(store)), by="a test")
    path = decision_path("mine", 1)
    assert void_records(store) == []
    fold_ledger(store, older_than=_AT_ONCE)
    for entry in [*store.list("_versions/")]:
        store.delete(entry.path)
    create(store)  # made again, with one version
    assert [item.path for item in void_records(store)] == [path]
    assert known_commit(store, look(store, "mine")) is None
    set_aside(store, [path])
    assert void_records(store) == []
    assert _work_of(store, "mine") is None


@pytest.mark.parametrize("damage", ["flipped", "short", "gone"])
def test_a_damaged_segment_is_named_and_the_rest_stays(damage: str, small: None) -> None:
    store = _two_generations()
    fold_ledger(store, older_than=_AT_ONCE)
    index = newest_index(store)
    assert index is not None
    victim = index.segments[0]
    data = bytearray(store.get(victim.path))
    data[5] ^= 0xFF
    if damage == "gone":
        store.delete(victim.path)
    else:
        store.put(victim.path, bytes(data) if damage == "flipped" else bytes(data[:-3]))
    append(store, (5,))
    run_cleanup(store, plan_cleanup(store, retain_versions=1))  # the log does not know, either
    hit, spared = sorted(_NAMES[:18])[0], sorted(_NAMES[:18])[-1]
    if damage != "short":
        with pytest.raises(StoreError if damage == "gone" else CorruptFileError, match="lance ledger repair"):
            _work_of(store, hit)
        if damage == "flipped":
            found = search(store, LogSearch({hit: 0, spared: 0}))
            assert (found.versions, [*found.unknown]) == ({spared: 1}, [hit])
    assert _work_of(store, spared) is not None
    bad = void_records(store)
    assert [item.path for item in bad] == [victim.path]
    moved = set_aside(store, [item.path for item in bad])
    assert len(moved) == (0 if damage == "gone" else 1)
    assert void_records(store) == []
    assert _work_of(store, hit) is None
    assert _work_of(store, spared) is not None


def test_an_index_that_contradicts_itself_is_refused() -> None:
    store = _two_generations()
    index = newest_index(store)
    assert index is not None
    good = encode_index(index)
    for old, new in (
        (index.segments[0].name.encode(), b"../../data/x.seg"),
        (b'"firsts":[""', b'"firsts":["zz"'),
        (b'"ends":[', b'"ends":[0,'),
    ):
        with pytest.raises(CorruptFileError):
            decode_index(good.replace(old, new), where="here")
    assert decode_index(good, where="here") == index
    assert index_path(7) == "_lance_core/segments/00000007.json"


def test_a_cleanup_folds_again_only_what_somebody_has_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_WORTH", 5)
    monkeypatch.setattr(folding.time, "time", lambda: 4e9)
    store = _table()
    _say(store, _NAMES[:9])
    now = 4e9 + 31 * 24 * 3600
    assert fold_again(store, now=now) is None
    fold_ledger(store, older_than=_AT_ONCE, now=4e9 + 1)
    _say(store, _NAMES[9:12])
    assert fold_again(store, now=now) is None
    _say(store, _NAMES[12:])
    done = fold_again(store, now=now + 1e9)
    assert done is not None
    assert done.total == len(_NAMES)


def _work(name: str) -> CommittedWork:
    asked = {"dag_id": "d", "run_id": name[:8]}
    return CommittedWork(name, 1, name[:16], str(uuid.uuid4()), "d" * 64, asked=asked)


@pytest.mark.parametrize("many", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_requests_of_a_look_up_and_a_listing(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000 records in blocks of 20 the index is that of a million."""
    monkeypatch.setattr(segments, "BLOCK_RECORDS", 1000 * many // 1_000_000)
    with object_server() as server:
        store = _table(resolve_store(f"s3://b{uuid.uuid4().hex}/t", server.options))
        names = [str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))) for number in range(many)]
        share = {name: DecisionState(name, 2, COMMITTED, name[:16], committed=_work(name)) for name in names}
        made = folding._publish(store, None, share)
        assert made is not None
        assert sum(len(item.firsts) for item in made.segments) == 1000
        first = server.traffic_of(lambda: _work_of(store, names[5]), latency_ms=0)
        with server.watch() as again:
            assert _work_of(store, names[-1]) is not None
        with server.watch() as absent:
            assert _work_of(store, "nobody") is None
        listing = server.traffic_of(lambda: list_ledger(store), latency_ms=0)
    # Behind a block: the number above it, and the block once more, lest that number was folded in between.
    assert (first.requests, again.requests, absent.requests) == (5, 4, 2), "the index once for a process"
    assert again.num_bytes < 1 << 20
    assert listing.requests <= 12
