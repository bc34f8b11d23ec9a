"""A DAG run that is deleted and created again, and a clear that its numbers hide, are a clear: `on_clear` decides."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator, missing_references
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from lance_core.jobs import api
from tests.airflow.operator_support import execute, ids, make_table

FIRST, SECOND = datetime(2026, 3, 1, tzinfo=timezone.utc), datetime(2026, 3, 2, tzinfo=timezone.utc)


def _source(tmp_path: Path, start: int) -> dict[str, Any]:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": list(range(start, start + 10)), "day": [10] * 10}), path)
    return {"format": "parquet", "paths": [str(path)]}


def _operator(kind: str, uri: str, source: Any, **arguments: Any) -> Any:
    shared: dict[str, Any] = {"task_id": "t", "uri": uri, "source": source, "execution": "local", "retries": 2, **arguments}
    if kind == "append":
        return LanceAppendOperator(**shared)
    if kind == "overwrite":
        return LanceOverwriteOperator(**shared)
    return LanceReplaceWhereOperator(predicate="day = 10", **shared)


def _outcome(result: dict[str, Any]) -> str:
    (outcome,) = result["identities"].values()
    return str(outcome)


@pytest.mark.parametrize("kind", ["append", "overwrite", "replace_where"])
def test_a_run_that_was_created_again_publishes_its_new_content_once(tmp_path: Path, kind: str) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator(kind, uri, _source(tmp_path, 100), on_clear="again")
    execute(operator, publishes=True, began=FIRST)
    _source(tmp_path, 200)
    assert _outcome(execute(operator, publishes=True, began=FIRST)) == "already_committed", "an automatic retry"
    again = execute(operator, publishes=True, began=SECOND)
    assert (_outcome(again), again["rows_added"]) == ("committed", 10)
    retried = execute(operator, publishes=True, began=SECOND)
    assert (_outcome(retried), retried["version"]) == ("already_committed", again["version"])
    kept = list(range(10)) if kind != "overwrite" else []
    assert ids(uri) == [*kept, *(range(100, 110) if kind == "append" else ()), *range(200, 210)]


def test_by_default_an_append_of_a_run_that_was_created_again_is_refused_by_name(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100))
    execute(operator, publishes=True, began=FIRST)
    with pytest.raises(AirflowFailException, match="deleted and created again"):
        execute(operator, publishes=True, began=SECOND)
    operator.on_clear = "skip"
    assert _outcome(execute(operator, publishes=True, began=SECOND)) == "already_committed"


def test_what_the_former_run_staged_is_not_published_for_the_new_one(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100))
    execute(operator, began=FIRST)
    _source(tmp_path, 200)
    reference = execute(operator, began=SECOND)
    api.commit(uri, [reference], options={}, max_attempts=None)
    assert ids(uri) == [*range(10), *range(200, 210)]


def test_tasks_of_the_run_that_were_cleared_do_not_make_a_retry_a_clear(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100), on_clear="again")
    execute(operator, publishes=True, began=FIRST)
    retried = execute(operator, publishes=True, began=SECOND, clear_number=1)
    assert _outcome(retried) == "already_committed", "the run began once more because another task of it was cleared"


def test_a_key_that_another_run_has_used_is_no_clear(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100), idempotency_key="orders/1")
    execute(operator, publishes=True, began=FIRST)
    assert _outcome(execute(operator, publishes=True, began=SECOND, run_id="other")) == "already_committed"
    assert ids(uri) == [*range(10), *range(100, 110)]


def test_a_clear_followed_by_raised_retries_is_a_clear(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100), on_clear="again")
    execute(operator, publishes=True)
    raised = _operator("append", uri, _source(tmp_path, 200), on_clear="again", retries=9)
    assert _outcome(execute(raised, publishes=True, max_tries=2)) == "already_committed", "raised, and not cleared"
    cleared = execute(raised, publishes=True, max_tries=3)
    assert _outcome(cleared) == "committed"
    assert _outcome(execute(raised, publishes=True, max_tries=3)) == "already_committed"
    assert ids(uri) == [*range(10), *range(100, 110), *range(200, 210)]


def test_a_commit_names_the_members_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    reference = execute(_operator("append", uri, _source(tmp_path, 100)))
    commit = LanceCommitOperator(task_id="commit", staged=[None, [reference, None]])
    execute(commit, publishes=True)
    said = capsys.readouterr().out
    assert "2 of 3 staged references are None" in said
    assert "staged[0], staged[1][1]" in said
    assert ids(uri) == [*range(10), *range(100, 110)]


def test_complete_members_are_not_named() -> None:
    assert list(missing_references([{"uri": "t"}, [{"uri": "t"}]])) == []
    assert list(missing_references(None)) == ["staged"]


def test_a_landing_that_is_old_is_not_told_as_the_version_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _operator("append", uri, _source(tmp_path, 100))
    first = execute(operator, publishes=True)
    other = LanceAppendOperator(task_id="u", uri=uri, source=_source(tmp_path, 300), execution="local")
    execute(other, publishes=True)
    _source(tmp_path, 100)
    capsys.readouterr()
    execute(operator, publishes=True)
    said = capsys.readouterr().out
    assert f"is at version {first['version']}" not in said
    assert f"were committed earlier, by version {first['version']}" in said
