"""Delete, update, replace-where and compact operators on real tables, in this process; commits with gates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.specs.edits import CompactSpec, DeleteSpec, UpdateSpec
from tests.airflow.operator_support import execute, ids, make_table

LOCAL: dict[str, Any] = {"execution": "local"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(tmp_path / "t.lance", 0, 10, 20)


def _commit(*staged: Any, **kwargs: Any) -> Any:
    return execute(LanceCommitOperator(task_id="commit", staged=list(staged), **kwargs))


def _day(tmp_path: Path, day: int, start: int) -> dict[str, Any]:
    path = tmp_path / f"{day}-{start}.parquet"
    pq.write_table(pa.table({"id": [start, start + 1], "day": [day, day]}), path)
    return {"format": "parquet", "paths": [str(path)]}


def test_delete_is_done_once(uri: str) -> None:
    operator = LanceDeleteOperator(task_id="forget", uri=uri, predicate="id < 3", **LOCAL)
    first = execute(operator)
    assert execute(operator) == first
    assert (first["operation"], first["num_deleted_rows"]) == ("delete", 3)
    assert len(first) <= 10
    assert _commit(first)["rows_deleted"] == 3
    assert set(_commit(execute(operator))["identities"].values()) == {"already_committed"}
    assert ids(uri) == [*range(3, 30)]


def test_update_is_done_again_when_somebody_compacted(uri: str) -> None:
    operator = LanceUpdateOperator(task_id="mend", uri=uri, updates={"day": "day + 100"}, where="id >= 28", **LOCAL)
    staged = execute(operator)
    lance.dataset(uri).optimize.compact_files()
    with pytest.raises(RetryableConflictError):
        _commit(staged, re_execute=False)
    assert _commit(staged)["re_executed"] == 1
    assert lance.dataset(uri).to_table(filter="day = 102")["id"].to_pylist() == [28, 29]
    assert ids(uri) == [*range(30)]


def test_replace_where_any_number_of_times(uri: str, tmp_path: Path) -> None:
    operator = LanceReplaceWhereOperator(
        task_id="day", uri=uri, predicate="day = 1", source=_day(tmp_path, 1, 500), rows_per_task="5", **LOCAL
    )
    for run_id in ("a", "b", "a"):
        _commit(execute(operator, run_id=run_id))
    assert ids(uri) == [*range(10), *range(20, 30), 500, 501]
    wrong = LanceReplaceWhereOperator(task_id="w", uri=uri, predicate="day = 2", source=_day(tmp_path, 1, 600), **LOCAL)
    with pytest.raises(AirflowFailException, match="row 0 of the source does not satisfy day = 2"):
        execute(wrong)
    assert ids(uri) == [*range(10), *range(20, 30), 500, 501]


def test_compact_reports_stages_and_publishes_in_waves(uri: str) -> None:
    report = execute(LanceCompactOperator(task_id="plan", uri=uri, dry_run=True))
    assert [group["fragments"] for group in report["groups"]] == [[0, 1, 2]]
    staged = execute(LanceCompactOperator(task_id="stage", uri=uri, **LOCAL))
    assert len(lance.dataset(uri).get_fragments()) == 3
    waves = LanceCompactOperator(
        task_id="waves",
        uri=uri,
        target_rows_per_fragment="10",
        materialize_deletions_threshold=0.0,
        groups_per_commit=1,
        **LOCAL,
    )
    lance.dataset(uri).delete("id = 11 or id = 21")
    done = execute(waves)
    assert [item.count_rows() for item in lance.dataset(uri).get_fragments()] == [10, 18]
    assert set(_commit(done)["identities"].values()) == {"already_committed"}
    # Of the group that was staged one fragment is left, and no neighbour to join it with.
    assert set(_commit(staged)["identities"].values()) == {"already_committed"}
    assert [item.count_rows() for item in lance.dataset(uri).get_fragments()] == [10, 18]
    assert ids(uri) == sorted({*range(30)} - {11, 21})


def test_a_gate_fails_the_commit_without_a_retry(uri: str, tmp_path: Path) -> None:
    operator = LanceReplaceWhereOperator(task_id="day", uri=uri, predicate="day = 1", source=_day(tmp_path, 1, 500), **LOCAL)
    staged = execute(operator)
    with pytest.raises(AirflowFailException, match="gate 'a day': 2 rows are added, expected at least 10"):
        _commit(staged, gates=[{"name": "a day", "min_rows": 10}])
    with pytest.raises(AirflowFailException, match="did you mean 'min_rows'"):
        _commit(staged, gates=[{"min_row": 10}])
    assert ids(uri) == [*range(30)]
    _commit(staged, gates=[{"min_rows": 2, "unique": ["id"], "no_rows": "day <> 1", "max_null_rates": {"id": 0}}])
    assert ids(uri) == [*range(10), *range(20, 30), 500, 501]


def test_arguments_become_specs() -> None:
    delete = LanceDeleteOperator(task_id="a", uri="/t", predicate="x = 1", rows_per_task="7", properties={"why": "gdpr"})
    assert delete.make_spec(uri="/t", identity="i") == DeleteSpec(
        uri="/t", identity="i", predicate="x = 1", rows_per_task=7, properties={"why": "gdpr"}
    )
    update = LanceUpdateOperator(task_id="b", uri="/t", updates={"x": "1"})
    assert update.make_spec(uri="/t", identity="i") == UpdateSpec(uri="/t", identity="i", updates={"x": "1"})
    compact = LanceCompactOperator(task_id="c", uri="/t", materialize_deletions_threshold=-1, max_source_bytes="5")
    assert compact.make_spec(uri="/t", identity="i") == CompactSpec(
        uri="/t", identity="i", materialize_deletions_threshold=None, max_source_bytes=5
    )
    with pytest.raises(InputError, match="predicate is empty"):
        LanceDeleteOperator(task_id="d", uri="/t", predicate=" ").make_spec(uri="/t", identity="i")


def test_many_kinds_in_one_transaction_become_one_version(uri: str, tmp_path: Path, run_dag: Callable[..., Any]) -> None:
    shared: dict[str, Any] = {"uri": uri, **LOCAL}
    source = _day(tmp_path, 2, 500)
    gates = [{"max_deleted_rows": 15}, {"max_rows": 3}]
    with (
        DAG("edits", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag,
        LanceTransaction("edit", commit_args={"gates": gates}),
    ):
        LanceDeleteOperator(task_id="forget", predicate="id = {{ 1 + 2 }}", **shared)
        LanceUpdateOperator(task_id="mend", updates={"day": "77"}, where="id = 15", **shared)
        LanceReplaceWhereOperator(task_id="day", predicate="day = 2", source=source, **shared)
    run = run_dag(dag)
    assert run.state == "success"
    result = run.get_task_instance("edit.commit").xcom_pull(task_ids="edit.commit")
    # An update is neither an insert nor a delete, though the format writes it as both.
    counts = (result["num_versions"], result["rows_deleted"], result["rows_inserted"], result["rows_updated"])
    assert counts == (1, 11, 2, 1)
    assert ids(uri) == [*sorted({*range(20)} - {3}), 500, 501]
