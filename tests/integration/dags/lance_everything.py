"""Every operator and every sensor on one table, one after the other; what stages runs on the standalone cluster: with the
driver in the task (`lance_everything_client`), and with the driver on the cluster (`lance_everything_cluster`).

A watcher (`LanceVersionTrigger`) sees versions come and sets off runs of the third DAG.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, chain, task

from airflow_lance.assets import create_asset
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
from airflow_lance.operators.publish_branch import LancePublishBranchOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.rename_column import LanceRenameColumnOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.switch_column import LanceSwitchColumnOperator
from airflow_lance.operators.table_config import LanceTableConfigOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.operators.undeclare_columns import LanceUndeclareColumnsOperator
from airflow_lance.operators.update import LanceUpdateOperator
from airflow_lance.operators.validate import LanceValidateOperator
from airflow_lance.sensors.health import LanceFragmentHealthSensor
from airflow_lance.sensors.index import LanceIndexCoverageSensor
from airflow_lance.sensors.partitions import LancePartitionsSensor
from airflow_lance.sensors.rows import LanceRowsSensor
from airflow_lance.sensors.staged import LanceStagedSensor
from airflow_lance.sensors.tag import LanceTagSensor
from airflow_lance.sensors.version import LanceVersionSensor
from airflow_lance.triggers.version import LanceVersionTrigger

PLACE = Path(os.environ["LANCE_TEST_PLACE"])
MODES = ("client", "cluster", "local")
START = datetime(2013, 1, 1, tzinfo=timezone.utc)
SMALL = {
    "spark.ui.enabled": "false",
    # One core each, so that the two DAGs run at the same time; quick start matters, peak speed does not.
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}


def numbers(first: int, count: int, value: int, *, mode: str) -> dict[str, Any]:
    """A source: ids from a number on, all with one value."""
    name = "numbers" if mode == "local" else "spark_numbers"
    return {"callable": f"kill_sources:{name}", "kwargs": {"first": first, "count": count, "value": value}}


def make_dag(mode: str) -> DAG:
    """The DAG of one deploy mode, or without Spark, on a table of its own."""
    uri = str(PLACE / f"everything-{mode}.lance")
    table: dict[str, Any] = {"uri": uri}
    spark: dict[str, Any] = {
        **table,
        "spark_conn_id": "spark_cluster",
        "conf": SMALL,
        "spark_submit": {"driver_memory": "512m", "deploy_mode": mode},
    }
    if mode == "local":
        spark = {**table, "execution": "local"}
    wait: dict[str, Any] = {**table, "poke_interval": 1, "timeout": 300}

    def transaction(name: str, operator: Any, **arguments: Any) -> LanceTransaction:
        """One staging task and its commit."""
        with LanceTransaction(name, uri=uri, pool="lance_flights", outlets=[create_asset(uri=uri)]) as group:
            operator(task_id="stage", **{**spark, **arguments})
        return group

    with DAG(f"lance_everything_{mode}", schedule=None, start_date=START) as dag:

        @task
        def look() -> dict[str, Any]:
            """The rows at the end of the edits, before they are restored and overwritten."""
            import lance_core

            table = lance_core.dataset(uri)
            rows = table.to_table(columns=["id", "value", "twice"]).sort_by("id").to_pylist()
            return {"version": table.version, "rows": rows}

        overwrite = LanceOverwriteOperator(
            task_id="overwrite", source=numbers(0, 3, 7, mode=mode), if_moved="overwrite", **spark
        )
        chain(
            transaction("append", LanceAppendOperator, source=numbers(0, 20, 0, mode=mode)),
            LanceVersionSensor(task_id="has_version", min_version=1, deferrable=True, **wait),
            LanceRowsSensor(task_id="has_rows", min_rows=20, **wait),
            transaction("merge", LanceMergeOperator, source=numbers(15, 10, 1, mode=mode), on="id"),
            transaction("delete", LanceDeleteOperator, predicate="id < 5"),
            transaction("update", LanceUpdateOperator, updates={"value": "value + 10"}, where="id >= 20"),
            transaction("replace", LanceReplaceWhereOperator, predicate="value = 0", source=numbers(100, 2, 0, mode=mode)),
            transaction("add_columns", LanceAddColumnsOperator, columns={"twice": "id * 2"}),
            transaction("merge_column_files", LanceMergeColumnFilesOperator, max_files_per_fragment=1),
            transaction("build_index", LanceBuildIndexOperator, column="id", index_type="BTREE"),
            LanceIndexCoverageSensor(task_id="is_indexed", index="id_idx", **wait),
            transaction("more", LanceAppendOperator, source=numbers(200, 1, 2, mode=mode), schema_drift="fill_missing"),
            LanceFragmentHealthSensor(task_id="needs_work", max_small_fragments=1, deferrable=True, **wait),
            transaction("compact", LanceCompactOperator),
            transaction("optimize", LanceOptimizeIndicesOperator),
            LanceTagOperator(task_id="tag", tag="good", **table),
            LanceTagSensor(task_id="is_tagged", tag="good", **wait),
            LanceMissingPartitionsOperator(task_id="missing", column="id", keys=["5", "3"], **table),
            LancePartitionsSensor(task_id="has_ids", column="id", keys=["100", "200"], **wait),
            LanceBranchOperator(task_id="branch", branch="try", **table),
            transaction("publish_branch", LancePublishBranchOperator, branch="try", execution="local"),
            LanceBranchOperator(task_id="unbranch", branch="try", action="delete", **table),
            look(),
            LanceValidateOperator(task_id="validate", **table),
            overwrite,
            LanceCommitOperator(task_id="commit", staged=overwrite.output, **table),
            LanceStagedSensor(task_id="is_drained", **wait),
            LanceRestoreOperator(task_id="restore", tag="good", if_moved="overwrite", **table),
            LanceTableConfigOperator(task_id="config", values={"owner": "tests"}, **table),
            LanceDescribeOperator(task_id="describe", description="numbers", columns={"id": "which"}, **table),
            LanceCheckOperator(task_id="check", checks=[{"unique": ["id"]}], **table),
            LanceQueryOperator(task_id="query", filter="id = 100", **table),
            LanceCloneOperator(task_id="clone", target=f"{uri}.clone", depth="deep", **table),
            LanceSqlOperator(
                task_id="sql",
                sql="DELETE FROM copy WHERE id IN (SELECT id FROM numbers WHERE id = 200)",
                tables={"copy": f"{uri}.clone", "numbers": uri},
            ),
            LanceAlterColumnsOperator(task_id="alter", uri=f"{uri}.clone", alterations=[{"path": "value", "name": "worth"}]),
            LanceRenameColumnOperator(task_id="rename", uri=f"{uri}.clone", column="worth", new_name="price"),
            LanceDeclareColumnOperator(task_id="declare", uri=f"{uri}.clone", column="half", sql="price / 2"),
            LanceRefreshColumnsOperator(task_id="refresh", **{**spark, "uri": f"{uri}.clone"}),
            LanceDeclareColumnOperator(task_id="declare_next", uri=f"{uri}.clone", column="half_next", sql="price / 4"),
            LanceRefreshColumnsOperator(task_id="refresh_next", **{**spark, "uri": f"{uri}.clone"}),
            LanceSwitchColumnOperator(task_id="switch", uri=f"{uri}.clone", column="half", version=""),
            LanceUndeclareColumnsOperator(task_id="undeclare", uri=f"{uri}.clone", columns=["half", "half_next"]),
            LanceDropColumnsOperator(task_id="drop_columns", uri=f"{uri}.clone", columns=["twice"]),
            LanceDropIndexOperator(task_id="drop_index", uri=f"{uri}.clone", index_name="id_idx"),
            LanceErasureOperator(task_id="erase", uri=f"{uri}.clone", predicate="id = 100"),
            LanceDropTableOperator(task_id="drop_table", uri=f"{uri}.clone"),
            LanceCreateTableOperator(task_id="create_table", uri=f"{uri}.clone", schema="id BIGINT"),
            LanceGarbageOperator(task_id="garbage", **table),
            LanceCleanupOperator(task_id="cleanup", older_than_days=0, retain_versions=2, **table),
        )
    return dag


client, cluster, local = (make_dag(mode) for mode in MODES)

trigger = LanceVersionTrigger(uri=str(PLACE / "everything-client.lance"), min_version=1, poke_interval=2)
watcher = AssetWatcher(name="versions", trigger=trigger)
with DAG("lance_watching", schedule=[Asset("everything_watched", watchers=[watcher])], start_date=START, max_active_runs=1):

    @task
    def seen() -> str:
        """That it ran is what counts."""
        return "a version"

    seen()
