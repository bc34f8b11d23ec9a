"""DAGs for what the flights example does not show: a cluster, a driver that is killed, a source that is not there."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

from airflow.sdk import DAG

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.transaction import LanceTransaction

PLACE = Path(os.environ["LANCE_TEST_PLACE"])
START = datetime(2013, 1, 1, tzinfo=timezone.utc)
CONF = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.sql.session.timeZone": "UTC"}


with (
    DAG("lance_cluster", schedule=None, start_date=START, max_active_runs=1),
    LanceTransaction("load", uri="cluster.lance", pool="lance_flights"),
):
    # Two mapped appends, one with everything after March, the other with the rest: one new version.
    LanceAppendOperator.partial(
        task_id="append",
        uri="cluster.lance",
        spark_conn_id="spark_cluster",
        conf=CONF,
        spark_submit={"driver_memory": "512m"},
        max_active_tis_per_dagrun=1,
    ).expand(
        source=[
            {"callable": "slow_source:slow_rows", "kwargs": {"rows": rows, "partitions": 2, "seconds": 0.0}}
            for rows in (1000, 500)
        ]
    )

with (
    DAG("lance_kill", schedule=None, start_date=START),
    LanceTransaction("load", uri="killed.lance"),
):
    LanceAppendOperator(
        task_id="append",
        uri="killed.lance",
        source={"callable": "slow_source:slow_rows", "kwargs": {"rows": 80_000, "partitions": 8, "seconds": 2.0}},
        max_rows_per_file=2_000,
        conf=CONF,
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

with (
    DAG("lance_missing", schedule=None, start_date=START),
    LanceTransaction("load", uri="missing.lance"),
):
    LanceAppendOperator(
        task_id="append",
        uri="missing.lance",
        source={"format": "parquet", "paths": [str(PLACE / "not-there")]},
        conf=CONF,
        retries=3,
        retry_delay=timedelta(seconds=1),
    )
