"""The official library acts between any two store calls of a commit: it appends, deletes, compacts, prunes, restores.

A commit of one staged piece of work is stopped before each of its store calls in turn. There the official library acts on
the same table, and the commit goes on. Afterwards the commit is made again, as an orchestrator does, and where it is refused
the work is staged again, as the refusal says. In the end both libraries read the rows of a serial order of the two, every
version has all of its files, and garbage collection leaves none that no version names.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_core
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError
from lance_core.io.resolve import resolve_store
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.model import StagedTransaction
from tests.protocol.protocol_support import (
    append,
    broken_references,
    commit,
    delete,
    hooked,
    merge,
    new_identity,
    orphans,
    refusal,
    rows,
    rows_at,
)

Rows = dict[int, int]
_FIRST: Rows = dict.fromkeys(range(10), 0)
_BEFORE: Rows = dict.fromkeys(range(20), 0)
_DAY = 24 * 3600.0


@dataclass(frozen=True)
class StagedWork:
    """What is staged, and what it makes of the rows."""

    stage: Callable[[str, str], StagedTransaction]
    change: Callable[[Rows], Rows]


@dataclass(frozen=True)
class OfficialAct:
    """What the official library does, and what that makes of the rows."""

    act: Callable[[str], object]
    change: Callable[[Rows], Rows] = field(default=lambda found: found)


def _appended(found: Rows) -> Rows:
    return found | {200: 0, 201: 0}


def _without(number: int) -> Callable[[Rows], Rows]:
    return lambda found: {key: value for key, value in found.items() if key != number}


def _append(uri: str) -> None:
    lance.write_dataset(rows_at([200, 201]), uri, mode="append")


def _compact(uri: str) -> None:
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=1000)


def _prune(uri: str) -> None:
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))


def _restore(uri: str) -> None:
    lance.dataset(uri, version=1).restore()  # type: ignore[no-untyped-call]


def _in_turn(*acts: Callable[[str], object]) -> Callable[[str], object]:
    return lambda uri: [act(uri) for act in acts]


WORKS = {
    "append": StagedWork(lambda uri, name: append(uri, [100, 101], name), lambda found: found | {100: 0, 101: 0}),
    "delete": StagedWork(lambda uri, name: delete(uri, "id = 3", name), _without(3)),
    "merge": StagedWork(lambda uri, name: merge(uri, [4, 100], 1, name), lambda found: found | {4: 1, 100: 1}),
}
ACTS = {
    "append": OfficialAct(_append, _appended),
    "delete": OfficialAct(lambda uri: lance.dataset(uri).delete("id = 5"), _without(5)),
    "delete the same row": OfficialAct(lambda uri: lance.dataset(uri).delete("id = 3"), _without(3)),
    "compact": OfficialAct(_compact),
    "prune": OfficialAct(_prune),
    "append and prune": OfficialAct(_in_turn(_append, _prune), _appended),
    "compact and prune": OfficialAct(_in_turn(_compact, _prune)),
    "restore": OfficialAct(_restore, lambda found: dict(_FIRST)),
}


@dataclass
class _Stop:
    """Calls the act before the store call with this number; counts the calls."""

    number: int
    act: Callable[[], object]
    calls: int = 0

    def __call__(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self.number:
            with hooked(None):
                self.act()
        return action()


def _begin(uri: str) -> None:
    for ids in (range(10), range(10, 20)):
        commit(uri, [append(uri, ids)])


def _num_calls(folder: Path, work: StagedWork) -> int:
    uri = str(folder / "counted.lance")
    _begin(uri)
    ref, stop = work.stage(uri, new_identity()), _Stop(0, lambda: None)
    with hooked(stop):
        commit(uri, [ref])
    return stop.calls


def _settled(uri: str, work: StagedWork, identity: str) -> bool | None:
    """The commit again, and the cure of what it refuses; None: nobody can know whether it has landed."""
    for number in range(3):
        if number == 2:
            _abort(uri, identity)
        if number and refusal(lambda: work.stage(uri, identity)) is not None:
            continue
        refused = refusal(lambda: commit(uri, [identity]))
        if refused is None:
            return True
        if isinstance(refused, CommitStateUnknownError):
            return None
    return False


def _abort(uri: str, identity: str) -> None:
    """`lance staged abort`: what is staged cannot land any more, for example behind a restore."""
    store = resolve_store(uri)
    for entry in list_staged(store, identity=identity):
        abort_attempt(store, entry.identity, entry.attempt)


def _check(uri: str, work: StagedWork, act: OfficialAct, number: int) -> None:
    _begin(uri)
    identity, stop = new_identity(), _Stop(number, lambda: act.act(uri))
    work.stage(uri, identity)
    landed: bool | None = False
    with hooked(stop):
        try:
            landed = identity in commit(uri, [identity]).identities
        except LanceError as error:
            assert error.cure or error.retryable, f"no cure: {error!r}"
    assert stop.calls >= number, "the commit has fewer calls"
    again = _settled(uri, work, identity)
    assert again is not False or not landed, "reported as landed, and then refused for good"
    landed = True if landed else again
    found = dict(rows(uri))
    ours = lance_core.dataset(uri).to_table(columns=["id", "value"])
    assert dict(zip(ours["id"].to_pylist(), ours["value"].to_pylist(), strict=True)) == found
    assert len(found) == lance.dataset(uri).count_rows() == ours.num_rows
    allowed = [] if landed is False else [_after(order) for order in permutations((work.change, act.change))]
    allowed += [act.change(_BEFORE)] if not landed else []
    assert found in allowed, f"landed: {landed}"
    _check_files(uri)


def _after(changes: tuple[Callable[[Rows], Rows], ...]) -> Rows:
    found = dict(_BEFORE)
    for change in changes:
        found = change(found)
    return found


def _check_files(uri: str) -> None:
    assert not broken_references(uri)
    for version in lance.dataset(uri).versions():
        lance.dataset(uri, version=version["version"]).to_table()
    for later in (0.0, 40 * _DAY):
        collect_garbage(resolve_store(uri), now=time.time() + later)
    assert not broken_references(uri)
    assert not orphans(uri)


def _numbers(calls: int, step: int) -> Iterator[int]:
    yield from range(1, calls + 1, step)


@pytest.mark.parametrize("work", WORKS)
def test_the_official_library_appends_and_prunes_between_some_calls_of_a_commit(tmp_path: Path, work: str) -> None:
    for number in _numbers(_num_calls(tmp_path, WORKS[work]), 5):
        _check(str(tmp_path / f"{number}.lance"), WORKS[work], ACTS["append and prune"], number)


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("work", WORKS)
def test_the_official_library_acts_between_any_two_calls_of_a_commit(tmp_path: Path, work: str, act: str) -> None:
    for number in _numbers(_num_calls(tmp_path, WORKS[work]), 1):
        _check(str(tmp_path / f"{number}.lance"), WORKS[work], ACTS[act], number)


@pytest.mark.parametrize("work", WORKS)
def test_what_is_refused_behind_a_restore_names_the_way_out(tmp_path: Path, work: str) -> None:
    uri, identity = str(tmp_path / "t.lance"), new_identity()
    _begin(uri)
    WORKS[work].stage(uri, identity)
    _restore(uri)
    refused = refusal(lambda: commit(uri, [identity]))
    assert isinstance(refused, IncompatibleConflictError)
    assert "lance staged abort" in refused.cure
    _abort(uri, identity)
    WORKS[work].stage(uri, identity)
    assert identity in commit(uri, [identity]).identities
