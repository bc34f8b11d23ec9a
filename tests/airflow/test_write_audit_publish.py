"""Write, audit, publish: readers of the main line see all of a branch at once, or nothing of it."""

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

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.branch import LanceBranchOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.publish_branch import LancePublishBranchOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from lance_core.errors import InputError
from tests.airflow.operator_support import execute, ids, make_table

RunDag = Callable[..., Any]


def _group(tmp_path: Path, dag_id: str, *, unique: bool, **more: Any) -> tuple[DAG, str]:
    uri = make_table(tmp_path / "t.lance", 0, 10)
    pq.write_table(
        pa.table({"id": [100] * (1 if unique else 2), "day": [7] * (1 if unique else 2)}), tmp_path / "new.parquet"
    )
    with DAG(dag_id, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        checks = [{"name": "each id once", "unique": ["id"]}]
        outlets = [create_asset(uri=uri)]
        group = LanceWriteAuditPublish("day", uri=uri, checks=checks, outlets=outlets, execution="local", **more)
        with group:
            append = LanceAppendOperator(
                task_id="load", uri=group.branch_uri, source=str(tmp_path / "new.parquet"), execution="local"
            )
            append >> LanceDeleteOperator(task_id="drop", uri=group.branch_uri, predicate="id < 5", execution="local")
        LanceBranchOperator(task_id="after", uri=uri, branch="after").set_upstream(group)
    return dag, uri


def _states(run: Any) -> dict[str, str]:
    return {ti.task_id: str(ti.state) for ti in run.get_task_instances()}


def test_the_branch_becomes_one_version(tmp_path: Path, run_dag: RunDag) -> None:
    dag, uri = _group(tmp_path, "wap_good", unique=True)
    run = run_dag(dag)
    assert set(_states(run).values()) == {"success"}, _states(run)
    assert run.state == "success"
    assert ids(uri) == [*range(5, 20), 100]
    result = run.get_task_instance("day.publish").xcom_pull(task_ids="day.publish")
    assert (result["version"], result["num_versions"], result["rows_inserted"], result["rows_deleted"]) == (3, 1, 1, 5)
    assert list(lance.dataset(uri).branches.list()) == ["after"]


def test_the_first_run_makes_the_table(tmp_path: Path, run_dag: RunDag) -> None:
    """A day that fails its checks leaves a table without rows, which the next day fills."""
    uri, source = tmp_path / "t.lance", tmp_path / "new.parquet"
    checks = [{"name": "each id once", "unique": ["id"]}]
    for number, ids_read in enumerate(([100, 100], [100, 101], [102])):
        pq.write_table(pa.table({"id": ids_read}), source)
        with (
            DAG(f"wap_first_{number}", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag,
            LanceWriteAuditPublish("day", uri=uri, checks=checks, schema="id BIGINT", execution="local") as group,
        ):
            LanceAppendOperator(task_id="load", uri=group.branch_uri, source=str(source), execution="local")
        assert run_dag(dag).state == ("success" if number else "failed")
        assert lance.dataset(uri).to_table()["id"].to_pylist() == [[], [100, 101], [100, 101, 102]][number]


@pytest.mark.parametrize("checks", [[], [{"name": "each id once", "unique": ["id"]}]], ids=["unchecked", "checked"])
def test_a_skipped_task_keeps_back_nothing_of_the_others(tmp_path: Path, run_dag: RunDag, checks: list[Any]) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    pq.write_table(pa.table({"id": [100], "day": [7]}), tmp_path / "new.parquet")
    with (
        DAG(f"wap_skip_{len(checks)}", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag,
        LanceWriteAuditPublish("day", uri=uri, checks=checks, execution="local") as group,
    ):
        shared: dict[str, Any] = {"uri": group.branch_uri, "execution": "local", "on_missing": "skip"}
        LanceAppendOperator(task_id="there", source=str(tmp_path / "new.parquet"), **shared)
        LanceAppendOperator(task_id="late", source=str(tmp_path / "late.parquet"), **shared)
    run = run_dag(dag)
    assert run.state == "success"
    assert {name for name, state in _states(run).items() if state != "success"} == {"day.late"}
    assert ids(uri) == [*range(10), 100]


@pytest.mark.parametrize("on_failure", ["discard", "keep"])
def test_a_check_that_fails_publishes_nothing(tmp_path: Path, run_dag: RunDag, on_failure: str) -> None:
    dag, uri = _group(tmp_path, f"wap_bad_{on_failure}", unique=False, on_failure=on_failure)
    run = run_dag(dag)
    states = _states(run)
    assert run.state == "failed"
    assert (states["day.audit"], states["day.publish"], states["after"]) == ("failed", "upstream_failed", "upstream_failed")
    assert ids(uri) == [*range(20)]
    assert lance.dataset(uri).version == 2
    assert bool(lance.dataset(uri).branches.list()) == (on_failure == "keep")


def test_a_cleared_run_begins_its_branch_anew(tmp_path: Path) -> None:
    """What the writes had left on the branch went with it, so a cleared append does not meet its own rows."""
    uri = make_table(tmp_path / "t.lance", 0)
    source = str(tmp_path / "new.parquet")
    pq.write_table(pa.table({"id": [100], "day": [7]}), source)
    begin = LanceBranchOperator(task_id="begin", uri=uri, branch="audit", action="renew", on_clear="again")
    append = LanceAppendOperator(task_id="load", uri=f"{uri}/tree/audit", source=source, execution="local")
    publish = LancePublishBranchOperator(task_id="publish", uri=uri, branch="audit", execution="local")
    for cleared_after in (0, 1):
        execute(begin, cleared_after=cleared_after)
        execute(begin, cleared_after=cleared_after)  # a retry keeps what is there
        execute(append, publishes=True, cleared_after=cleared_after)
    execute(publish, publishes=True, cleared_after=1)
    execute(publish, publishes=True, cleared_after=1)
    assert ids(uri) == [*range(10), 100]


def test_a_group_that_writes_nothing_is_refused(tmp_path: Path) -> None:
    with (
        DAG("wap_empty", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)),
        pytest.raises(InputError, match="no task writes to the branch"),
        LanceWriteAuditPublish("day", uri=str(tmp_path / "t.lance")),
    ):
        pass
