"""Cleared tasks, other work under one identity, and spellings of the uri."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lance_core.errors import IncompatibleConflictError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.spec import AppendSpec
from tests.protocol.protocol_support import commit, ids, rows, source

DAY = "id >= 10"


def _append(uri: str, numbers: list[int], identity: str, **more: Any) -> Any:
    return run_job(AppendSpec(uri=uri, source=source(numbers), identity=identity, **more))


def _replace(uri: str, value: int, identity: str, **more: Any) -> Any:
    return run_job(ReplaceWhereSpec(uri=uri, predicate=DAY, source=source([10, 11], value), identity=identity, **more))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    commit(place, [_append(place, [1, 2], "first")])
    return place


def test_a_cleared_replacement_is_published_again_once_for_each_clear(uri: str) -> None:
    commit(uri, [_replace(uri, 1, "day")])
    for value, clear in ((2, "a"), (2, "a"), (3, "b")):
        commit(uri, [_replace(uri, value, "day", asked={"clear": clear})])
        assert rows(uri, since=10) == [(10, value), (11, value)]


def test_a_cleared_append_that_landed_fails_with_the_cure(uri: str) -> None:
    commit(uri, [_append(uri, [10], "load")])
    with pytest.raises(IncompatibleConflictError, match='on_clear="again"'):
        _append(uri, [10], "load", asked={"clear": "a"})
    commit(uri, [_append(uri, [10], "load", asked={"clear": "a"}, on_clear="skip")])
    assert ids(uri, since=10) == [10]
    commit(uri, [_append(uri, [10], "load", asked={"clear": "a"}, on_clear="again")])
    assert ids(uri, since=10) == [10, 10]


def test_a_cleared_append_that_never_landed_is_staged_as_before(uri: str) -> None:
    _append(uri, [10], "load")
    commit(uri, [_append(uri, [10], "load", asked={"clear": "a"})])
    commit(uri, [_append(uri, [10], "load", asked={"clear": "a"})])
    assert ids(uri, since=10) == [10]


def test_a_cleared_task_withdraws_what_its_former_identity_has_staged(uri: str) -> None:
    _append(uri, [10], "load")
    _append(uri, [10], "load", asked={"clear": "a"}, on_clear="again")
    commit(uri)
    assert ids(uri, since=10) == [10]


def test_other_work_names_both_digests_and_both_askers(uri: str) -> None:
    asked = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": 0, "try_number": 1}
    commit(uri, [_append(uri, [10], "load", asked=asked)])
    with pytest.raises(IncompatibleConflictError, match=r"digest [0-9a-f]{64} of d\.t\[0\] of r, try 1, now digest"):
        _append(uri, [11], "load", asked={**asked, "try_number": 2})


def test_two_tasks_with_one_key_and_other_work_are_refused(uri: str) -> None:
    _append(uri, [10], "key", asked={"dag_id": "d", "task_id": "one"})
    with pytest.raises(IncompatibleConflictError, match="with the same identity"):
        _append(uri, [11], "key", asked={"dag_id": "d", "task_id": "other"})
    _append(uri, [12], "key", asked={"dag_id": "d", "task_id": "one"})
    commit(uri, ["key"])
    assert ids(uri, since=10) == [12]


def test_spellings_of_one_uri_have_one_identity() -> None:
    asks = {"dag_id": "d", "run_id": "r", "task_id": "t"}
    assert make_identity("s3a://lake//t", **asks) == make_identity("s3://lake/t", **asks)
    key = {"map_index": 1, "idempotency_key": "orders/2013-01-01"}
    assert make_identity("/t", **asks, **key) == make_identity("/t", dag_id="x", run_id="y", task_id="z", **key)
    assert make_identity("/t", **asks, **key) != make_identity("/t", **asks, **{**key, "map_index": 2})
