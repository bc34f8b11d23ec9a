"""One DAG of every operator, sensor, group and decorator, in the worker's process, on Airflow 2.11 to 3.3.

`LANCE_MATRIX_PLACE` is a folder for its tables, and the base uri of the connection `lance_default`; the run's
configuration is `CONF`. The task `compare` compares the rows with those that the steps must leave.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, chain, task

from airflow_lance.assets import create_asset
from airflow_lance.decorators.column import lance_column_task
from airflow_lance.decorators.lance import lance_task
from airflow_lance.maintenance.actions import LanceActionOperator
from airflow_lance.maintenance.group import LanceMaintenance
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.alter_columns import LanceAlterColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.branch import LanceBranchOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.clone import LanceCloneOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.describe import LanceDescribeOperator
from airflow_lance.operators.drop_columns import LanceDropColumnsOperator
from airflow_lance.operators.drop_index import LanceDropIndexOperator
from airflow_lance.operators.drop_table import LanceDropTableOperator
from airflow_lance.operators.erase import LanceErasureOperator
from airflow_lance.operators.garbage import LanceGarbageOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.merge_column_files import LanceMergeColumnFilesOperator
from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator
from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.rename_column import LanceRenameColumnOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.switch_column import LanceSwitchColumn, LanceSwitchColumnOperator
from airflow_lance.operators.table_config import LanceTableConfigOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.operators.undeclare_columns import LanceUndeclareColumnsOperator
from airflow_lance.operators.update import LanceUpdateOperator
from airflow_lance.operators.validate import LanceValidateOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from airflow_lance.sensors.health import LanceFragmentHealthSensor
from airflow_lance.sensors.index import LanceIndexCoverageSensor
from airflow_lance.sensors.partitions import LancePartitionsSensor
from airflow_lance.sensors.rows import LanceRowsSensor
from airflow_lance.sensors.staged import LanceStagedSensor
from airflow_lance.sensors.tag import LanceTagSensor
from airflow_lance.sensors.version import LanceVersionSensor
from lance_core.maintenance.policy import Policy, TableRule

PLACE = Path(os.environ.get("LANCE_MATRIX_PLACE", "/tmp/lance-matrix"))
URI = str(PLACE / "everything.lance")
CONF = {"action": "tag", "uri": URI, "arguments": {"name": "by_hand"}}
"""What the button's task is asked for."""
TABLE: dict[str, Any] = {"uri": URI}
LOCAL: dict[str, Any] = {**TABLE, "execution": "local"}
WAIT: dict[str, Any] = {**TABLE, "poke_interval": 1, "timeout": 60}


def numbers(first: int, count: int, value: int) -> Any:
    """The source of every write: `count` rows (id, value) from `first` on."""
    import pyarrow as pa

    return pa.table({"id": list(range(first, first + count)), "value": [value] * count})


def source(first: int, count: int, value: int) -> dict[str, Any]:
    """`numbers` as an operator's source."""
    return {"callable": "lance_matrix:numbers", "kwargs": {"first": first, "count": count, "value": value}}


def transaction(name: str, operator: Any, **arguments: Any) -> LanceTransaction:
    """One staging task and its commit."""
    with LanceTransaction(name, uri=URI, outlets=[create_asset(uri=URI)]) as group:
        operator(task_id="stage", **{**LOCAL, **arguments})
    return group


with DAG("lance_matrix", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:

    @task
    def compare() -> int:
        """Fail unless the table holds the rows that the steps above leave."""
        import lance_core

        rows = lance_core.dataset(URI).to_table(columns=["id", "value", "twice"]).sort_by("id").to_pylist()
        values = {**dict.fromkeys(range(15, 20), 1), **dict.fromkeys(range(20, 25), 11), 100: 0, 101: 0, 200: 2}
        expected = [
            {"id": number, "value": value, "twice": None if number == 200 else number * 2}
            for number, value in values.items()
        ]
        if rows != expected:
            raise ValueError(f"expected {expected}, got {rows}")
        return len(rows)

    @lance_task(uri=URI, mode="merge", on="id")
    def returned() -> Any:
        """What a function returns; `compare_returned` sees it."""
        return {"id": [100], "value": [5], "twice": [10]}

    @lance_column_task(uri=f"{URI}.clone", column="third", inputs=["worth"], data_type="double", version="1")
    def third(batch: Any, divisor: int = 1) -> Any:
        """What a function of this file makes of the rows that are not fresh."""
        return [None if worth is None else worth / divisor for worth in batch["worth"].to_pylist()]

    @task
    def compare_returned() -> int:
        """What the hook reads after `returned`."""
        from airflow_lance.hooks.lance import LanceHook

        value = LanceHook().dataset(URI).to_table(filter="id = 100")["value"].to_pylist()
        if value != [5]:
            raise ValueError(f"expected [5], got {value}")
        return int(value[0])

    with LanceTransaction("mapped", uri=URI) as mapped:
        LanceAppendOperator.partial(task_id="stage", **LOCAL).expand(source=[source(0, 10, 0), source(10, 10, 0)])

    with LanceWriteAuditPublish("audited", uri=URI, checks=[{"unique": ["id"]}], execution="local") as audited:
        LanceAppendOperator(
            task_id="load", uri=audited.branch_uri, execution="local", source=source(300, 1, 3), schema_drift="fill_missing"
        )

    overwrite = LanceOverwriteOperator(task_id="overwrite", source=source(0, 3, 7), if_moved="overwrite", **LOCAL)
    chain(
        mapped,
        LanceVersionSensor(task_id="has_version", min_version=1, deferrable=True, **WAIT),
        LanceRowsSensor(task_id="has_rows", min_rows=20, **WAIT),
        transaction("merge", LanceMergeOperator, source=source(15, 10, 1), on="id"),
        transaction("delete", LanceDeleteOperator, predicate="id < 5"),
        transaction("update", LanceUpdateOperator, updates={"value": "value + 10"}, where="id >= 20"),
        transaction("replace", LanceReplaceWhereOperator, predicate="value = 0", source=source(100, 2, 0)),
        transaction("add_columns", LanceAddColumnsOperator, columns={"twice": "id * 2"}),
        transaction("merge_column_files", LanceMergeColumnFilesOperator, max_files_per_fragment=1),
        transaction("build_index", LanceBuildIndexOperator, column="id", index_type="BTREE"),
        LanceIndexCoverageSensor(task_id="is_indexed", index="id_idx", **WAIT),
        transaction("more", LanceAppendOperator, source=source(200, 1, 2), schema_drift="fill_missing"),
        LanceFragmentHealthSensor(task_id="needs_work", max_small_fragments=1, deferrable=True, **WAIT),
        transaction("compact", LanceCompactOperator),
        transaction("optimize", LanceOptimizeIndicesOperator),
        LanceTagOperator(task_id="tag", tag="good", **TABLE),
        LanceTagSensor(task_id="is_tagged", tag="good", **WAIT),
        LanceBranchOperator(task_id="branch", branch="try", **TABLE),
        LanceBranchOperator(task_id="unbranch", branch="try", action="delete", **TABLE),
        LanceValidateOperator(task_id="validate", **TABLE),
        overwrite,
        LanceCommitOperator(task_id="commit", staged=overwrite.output, **TABLE),
        LanceStagedSensor(task_id="is_drained", **WAIT),
        LanceRestoreOperator(task_id="restore", tag="good", if_moved="overwrite", **TABLE),
        compare(),
        returned(),
        compare_returned(),
        LanceActionOperator(task_id="button"),
        LanceTagSensor(task_id="is_tagged_by_hand", tag="by_hand", **WAIT),
        LanceTableConfigOperator(task_id="config", values={"owner": "tests"}, **TABLE),
        LanceDescribeOperator(task_id="describe", description="numbers", columns={"id": "which"}, **TABLE),
        LanceCheckOperator(task_id="check", checks=[{"unique": ["id"]}], **TABLE),
        LanceQueryOperator(task_id="query", filter="id = 100", **TABLE),
        LanceCloneOperator(task_id="clone", target=f"{URI}.clone", depth="deep", **TABLE),
        LanceSqlOperator(
            task_id="sql_change",
            sql="DELETE FROM copy WHERE id IN (SELECT id FROM flights WHERE id = 100)",
            tables={"copy": f"{URI}.clone", "flights": URI},
        ),
        LanceSqlOperator(
            task_id="sql_query",
            sql="SELECT count(*) AS missing FROM flights ANTI JOIN copy USING (id)",
            tables={"copy": f"{URI}.clone", "flights": URI},
        ),
        LanceAlterColumnsOperator(task_id="alter", uri=f"{URI}.clone", alterations=[{"path": "value", "name": "price"}]),
        LanceRenameColumnOperator(task_id="rename", uri=f"{URI}.clone", column="price", new_name="worth"),
        LanceDeclareColumnOperator(task_id="declare", uri=f"{URI}.clone", column="half", sql="worth / 2"),
        LanceRefreshColumnsOperator(task_id="refresh", uri=f"{URI}.clone", execution="local"),
        LanceSwitchColumn(
            "switched",
            uri=f"{URI}.clone",
            column="half",
            version="2",
            definition={"sql": "worth / 3"},
            refresh={"execution": "local"},
        ),
        third(divisor=3),
        LanceSwitchColumnOperator(task_id="switch_back", uri=f"{URI}.clone", column="half", version=""),
        LanceUndeclareColumnsOperator(task_id="undeclare", uri=f"{URI}.clone", columns=["half", "half_next", "third"]),
        LanceDropColumnsOperator(task_id="drop_columns", uri=f"{URI}.clone", columns=["twice"]),
        LanceDropIndexOperator(task_id="drop_index", uri=f"{URI}.clone", index_name="id_idx"),
        LanceDropTableOperator(task_id="drop_table", uri=f"{URI}.clone"),
        LanceCreateTableOperator(task_id="create_table", uri=f"{URI}.clone", schema="id BIGINT"),
        audited,
        LancePartitionsSensor(task_id="has_partitions", column="id", keys=["100", "300"], **WAIT),
        LanceMissingPartitionsOperator(task_id="missing_partitions", column="id", keys=["300", "400"], **TABLE),
        LanceErasureOperator(task_id="erase", predicate="id = 300", **TABLE),
        LanceGarbageOperator(task_id="garbage", **TABLE),
        LanceCleanupOperator(task_id="cleanup", older_than_days=0, retain_versions=2, **TABLE),
        LanceMaintenance(policy=Policy(base_uri=str(PLACE), tables=(TableRule(match="*"),)), tables=[URI]),
    )
