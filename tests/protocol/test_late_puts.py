"""A manifest put that times out and lands later; a put into a number that was pruned meanwhile."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import lance
import pytest

from lance_core.errors import LanceError, StoreError
from lance_core.publish.model import StagedTransaction
from tests.protocol.protocol_support import (
    append,
    broken_references,
    commit,
    delete,
    hooked,
    ids,
    is_manifest_put,
    new_identity,
    refusal,
    rows_at,
    update,
)

Refs = Sequence[StagedTransaction]


def test_a_put_that_lands_between_the_look_and_the_second_put_keeps_its_files(uri: str) -> None:
    first, second = delete(uri, "id = 1"), delete(uri, "id = 2")
    commit(uri, [first])
    puts: list[Callable[[], Any]] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            puts.append(action)
            if len(puts) == 1:
                raise StoreError("timed out")
            if len(puts) == 2:
                puts[0]()
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [second]))
    commit(uri, [second])
    assert not broken_references(uri)
    assert ids(uri) == [0, *range(3, 100)]


def _delayed(uri: str, refs: Refs, *, delay: int, during: Refs = ()) -> dict[int, set[str]]:
    """Commit with a put that times out and lands `delay` store calls later; then once more without faults."""
    target = 2 if during else 1
    calls, puts = 0, 0
    late: list[tuple[int, Callable[[], Any]]] = []

    def land() -> None:
        for _, action in late[:]:
            late.clear()
            refusal_of_put(action)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        nonlocal calls, puts
        calls += 1
        if late and calls >= late[0][0]:
            land()
        if is_manifest_put(name, path):
            puts += 1
            if during and puts == 1:
                with hooked(None):
                    commit(uri, during)
            if puts == target:
                late.append((calls + delay, action))
                raise StoreError("timed out")
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, refs))
    land()
    commit(uri, refs)
    return broken_references(uri)


def refusal_of_put(action: Callable[[], Any]) -> None:
    try:
        action()
    except LanceError:
        return


def _one_delete(uri: str, delay: int) -> tuple[Any, list[int]]:
    mine, other = delete(uri, "id = 1"), delete(uri, "id = 2")
    commit(uri, [other])
    return _delayed(uri, [mine], delay=delay), [0, *range(3, 100)]


def _one_update(uri: str, delay: int) -> tuple[Any, list[int]]:
    mine, other = update(uri, {"value": "1"}, "id = 1"), delete(uri, "id = 2")
    commit(uri, [other])
    return _delayed(uri, [mine], delay=delay), [0, 1, *range(3, 100)]


def _fold(uri: str, delay: int) -> tuple[Any, list[int]]:
    refs = [delete(uri, "id = 1"), update(uri, {"value": "1"}, "id = 5"), append(uri, [500])]
    during = [delete(uri, "id = 2")]
    return _delayed(uri, refs, delay=delay, during=during), [0, *range(3, 100), 500]


def _one_append(uri: str, delay: int) -> tuple[Any, list[int]]:
    mine, other = append(uri, [500]), append(uri, [400])
    commit(uri, [other])
    return _delayed(uri, [mine], delay=delay), [*range(100), 400, 500]


_WINDOW = [3, 5, 8]


@pytest.mark.parametrize("delay", [1, *_WINDOW, 9])
@pytest.mark.parametrize("case", [_one_delete, _one_update, _fold], ids=lambda case: case.__name__)
def test_a_late_put_at_any_moment_leaves_exact_rows(uri: str, case: Callable[[str, int], Any], delay: int) -> None:
    broken, expected = case(uri, delay)
    assert not broken
    assert ids(uri) == expected


@pytest.mark.parametrize("delay", [1, 3, 5, 8])
def test_a_late_put_of_an_append_at_any_moment_leaves_exact_rows(uri: str, delay: int) -> None:
    broken, expected = _one_append(uri, delay)
    assert not broken
    assert ids(uri) == expected


def test_a_put_into_a_pruned_number_is_not_taken_for_a_landing(uri: str) -> None:
    identity = new_identity()
    append(uri, range(1000, 1005), identity)
    paused: list[int] = []

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path) and not paused:
            paused.append(1)
            for number in range(3):
                lance.write_dataset(rows_at([2000 + number]), uri, mode="append")
            lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
        return action()

    with hooked(hook):
        refused = refusal(lambda: commit(uri, [identity]))
    if refused is not None:
        refused = refusal(lambda: commit(uri, [identity]))
    if refused is not None:
        # The history since it was planned is gone: its staging task plans it again.
        append(uri, range(1000, 1005), identity)
        commit(uri, [identity])
    assert ids(uri, since=1000) == [*range(1000, 1005), 2000, 2001, 2002]
