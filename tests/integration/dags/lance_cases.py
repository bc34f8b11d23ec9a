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
    DAG("lance_cluster", schedule=None, start_date=START),
    LanceTransaction("load", uri="cluster.lance", pool="lance_flights"),
):
    LanceAppendOperator.partial(
        task_id="append",
        uri="cluster.lance",
        spark_conn_id="spark_cluster",
        conf=CONF,
        spark_submit={"driver_memory": "512m"},
    ).expand(source=[{"callable": "slow_source:slow_rows", "kwargs": {"rows": 1000, "partitions": 2, "seconds": 0.0}}])

for name, seconds in (("killed", 2.0), ("stopped", 60.0)):
    with (
        DAG(f"lance_{name}", schedule=None, start_date=START),
        LanceTransaction("load", uri=f"{name}.lance"),
    ):
        LanceAppendOperator(
            task_id="append",
            uri=f"{name}.lance",
            source={"callable": "slow_source:slow_rows", "kwargs": {"rows": 40_000, "partitions": 4, "seconds": seconds}},
            max_rows_per_file=1_000 if name == "killed" else 100,
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
        on_missing="fail",
        conf=CONF,
        retries=3,
        retry_delay=timedelta(seconds=1),
    )
