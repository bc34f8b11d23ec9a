"""The erasure task: its report, its signature, and how it fails while something still holds the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.erase import LanceErasureOperator
from lance_core.maintenance.erasure import is_signed_by
from tests.airflow.operator_support import FakeTi, ids, make_table

KEY = "a signing key of this test"


def _run(operator: LanceErasureOperator, *, cleared_after: int = 0) -> tuple[Any, dict[str, Any]]:
    """The result, or the error; and what was pushed."""
    pushed: dict[str, Any] = {}
    ti: Any = FakeTi(operator.task_id, "r", cleared_after=cleared_after, retries=operator.retries or 0)
    ti.xcom_push = lambda key, value: pushed.update({key: value})
    try:
        return operator.execute({"ti": ti, "outlet_events": {}}), pushed  # type: ignore[typeddict-item]
    except AirflowFailException as error:
        return error, pushed


def test_the_report_is_signed_and_the_rows_are_gone(tmp_path: Path, connection: Callable[[str, str], None]) -> None:
    connection("erasure_key", json.dumps({"conn_type": "generic", "password": KEY}))
    uri = make_table(tmp_path / "t.lance", 0, 10)
    operator = LanceErasureOperator(
        task_id="forget",
        uri=uri,
        predicate="id = :person",
        predicate_params={"person": 7},
        signing_conn_id="erasure_key",
        delete_unverified=True,
    )
    report, _ = _run(operator)
    assert (report["is_gone"], report["holders"], report["predicate"]) == (True, [], "id = 7")
    assert report["asked"]["task_id"] == "forget"
    assert is_signed_by(json.loads(json.dumps(report)), KEY.encode()), "also after its way through XCom"
    assert KEY not in json.dumps(report)
    assert ids(uri) == [number for number in range(20) if number != 7]
    assert len(lance.dataset(uri).versions()) == 1


def test_a_tag_that_holds_the_rows_fails_the_task_and_is_named(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0, 10)
    lance.dataset(uri).tags.create("kept", 2)
    operator = LanceErasureOperator(task_id="forget", uri=uri, predicate="id = 7")
    error, pushed = _run(operator)
    assert isinstance(error, AirflowFailException)
    assert "version 2 (kept by the tag kept)" in str(error)
    assert pushed["report"]["is_gone"] is False
    lance.dataset(uri).tags.delete("kept")
    report, _ = _run(operator, cleared_after=1)
    assert report["is_gone"] is True


def test_a_key_that_is_none_is_refused_before_anything_is_deleted(
    tmp_path: Path, connection: Callable[[str, str], None]
) -> None:
    connection("empty_key", json.dumps({"conn_type": "generic"}))
    uri = make_table(tmp_path / "t.lance", 0)
    error, _ = _run(LanceErasureOperator(task_id="forget", uri=uri, predicate="id = 7", signing_conn_id="empty_key"))
    assert "has no password" in str(error)
    assert ids(uri) == [*range(10)]
    with pytest.raises(Exception, match="predicate is empty"):
        LanceErasureOperator(task_id="forget", uri=uri, predicate=" ")
