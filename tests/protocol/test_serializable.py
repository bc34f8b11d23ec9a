"""Two commit tasks at once, with no pool between them: the rows are those of some serial order."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.publish.collect import collect_garbage
from tests.protocol.protocol_support import (
    Killed,
    add_columns,
    append,
    broken_references,
    commit,
    compact,
    delete,
    hooked,
    ids,
    is_manifest_put,
    merge,
    new_identity,
    orphans,
    refusal,
    replace,
    rows,
    update,
)

DAY = "id >= 1000 and id < 2000"


def _while_first_commits(uri: str, first: str, second: str) -> None:
    """Commit `first`; right before its claim, and again right before its put, `second` is committed by another task."""
    done: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if not done and name.startswith("put") and path.startswith("_lance_core/"):
            done.append(1)
            with hooked(None):
                commit(uri, [second])
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [first]))
    assert done
    commit(uri, [first, second])


def _at_the_put(uri: str, first: str, second: str) -> None:
    done: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if not done and is_manifest_put(name, path):
            done.append(1)
            with hooked(None):
                commit(uri, [second])
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [first]))
    assert done
    commit(uri, [first, second])


@pytest.mark.parametrize("race", [_while_first_commits, _at_the_put], ids=lambda race: race.__name__)
def test_two_replacements_of_one_day_leave_one_of_them(uri: str, race: Callable[[str, str, str], None]) -> None:
    a = replace(uri, DAY, range(1000, 1005), 1)
    b = replace(uri, DAY, range(1000, 1007), 2)
    race(uri, a.identity, b.identity)
    first, second = [(item, 1) for item in range(1000, 1005)], [(item, 2) for item in range(1000, 1007)]
    assert rows(uri, since=1000) in (first, second)


@pytest.mark.parametrize("race", [_while_first_commits, _at_the_put], ids=lambda race: race.__name__)
def test_two_merges_of_one_key_leave_it_once(uri: str, race: Callable[[str, str, str], None]) -> None:
    a, b = merge(uri, [50, 500], 1), merge(uri, [60, 500], 2)
    race(uri, a.identity, b.identity)
    found = [row for row in rows(uri) if row[0] in (50, 60) or row[0] >= 500]
    assert found in ([(50, 1), (60, 2), (500, 1)], [(50, 1), (60, 2), (500, 2)])


def _commit_at(uri: str, identity: str, moment: float) -> None:
    while time.time() < moment:
        pass
    for _ in range(4):
        try:
            commit(uri, [identity])
            return
        except LanceError as error:
            if not error.retryable:
                return


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["day", "key"])
def test_two_commit_processes_at_once_leave_every_row_once(tmp_path: Path, kind: str) -> None:
    context = multiprocessing.get_context("fork")
    doubled = 0
    for trial in range(20):
        uri = str(tmp_path / f"{trial}.lance")
        commit(uri, [append(uri, range(100))])
        if kind == "day":
            refs = [replace(uri, DAY, range(1000, 1005), value).identity for value in (1, 2)]
        else:
            refs = [merge(uri, [50 + value, 500], value).identity for value in (1, 2)]
        moment = time.time() + 0.15
        workers = [context.Process(target=_commit_at, args=(uri, identity, moment)) for identity in refs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == 0
        commit(uri, refs)
        found = ids(uri)
        doubled += len(found) != len(set(found))
    assert not doubled


def test_sixteen_staged_updates_land_though_a_compaction_moved_their_rows(uri: str) -> None:
    for start in range(100, 500, 50):
        commit(uri, [append(uri, range(start, start + 50))])
    refs = [update(uri, {"value": "value + 1"}, f"id = {number * 7}") for number in range(16)]
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100_000)
    commit(uri, refs)
    assert sum(value for _, value in rows(uri)) == 16


def test_the_retry_of_a_killed_commit_goes_on_at_once(uri: str) -> None:
    commit(uri, [append(uri, range(100, 200))])
    identity = new_identity()
    update(uri, {"value": "value + 1"}, "id = 5", identity)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        commit(uri, [identity])
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100_000)
    commit(uri, [identity])
    assert [row for row in rows(uri) if row[1]] == [(5, 1)]


def test_a_compaction_next_to_another_fold_leaves_no_files_behind(uri: str) -> None:
    for start in range(100, 500, 50):
        commit(uri, [append(uri, range(start, start + 50))])
    columns = add_columns(uri, {"twice": "id * 2"})
    compaction, deletion = compact(uri, target_rows_per_fragment=500), delete(uri, "id = 7")
    commit(uri, [columns])
    commit(uri, [compaction, deletion])
    for later in (0, 4000, 3_000_000):
        collect_garbage(resolve_store(uri), now=time.time() + later)
    assert not broken_references(uri)
    assert not orphans(uri)
    assert ids(uri) == [*range(7), *range(8, 500)]
