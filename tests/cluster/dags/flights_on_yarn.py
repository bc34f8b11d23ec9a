"""The flights on YARN: a month for each run from a Parquet file on HDFS, in client mode, and in cluster mode deferred."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.transaction import LanceTransaction

PLACE = os.environ["YARN_TEST_PLACE"]
SOURCES = os.environ["YARN_TEST_SOURCES"]


@task
def upload(mode: str, month: str) -> str:
    """A month's flights on HDFS, in a folder of the DAG's own; its uri."""
    import fsspec
    from flights_data import write_month

    host, _, port = os.environ["YARN_TEST_WEBHDFS"].partition(":")
    path = f"/flights_{mode}/2013-{int(month):02}.parquet"
    content = Path(write_month(f"{PLACE}/raw", int(month))).read_bytes()
    files = fsspec.filesystem("webhdfs", host=host, port=int(port), user="root")
    files.makedirs(f"/flights_{mode}", exist_ok=True)
    files.pipe_file(path, content)
    return f"{os.environ['YARN_TEST_ROOT']}{path}"


def flights(mode: str, **arguments: Any) -> None:
    """The DAG of a mode."""
    table = f"file://{PLACE}/flights_{mode}.lance"
    with DAG(
        dag_id=f"flights_yarn_{mode}",
        schedule="@monthly",
        start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
        end_date=datetime(2013, int(os.environ["YARN_TEST_MONTHS"]), 1, tzinfo=timezone.utc),
        catchup=True,
        max_active_runs=1,
        default_args={"retries": 2, "retry_delay": timedelta(seconds=1)},
    ):
        raw = upload(mode, "{{ logical_date.month }}")
        with LanceTransaction(group_id="month", uri=table) as month:
            LanceAppendOperator(
                task_id="append",
                uri=table,
                source={
                    "callable": "yarn_sources:slow_rows",
                    "kwargs": {"paths": ["{{ ti.xcom_pull(task_ids='upload') }}"], "seconds": 2.0},
                },
                spark_conn_id=f"yarn_{mode}",
                **arguments,
            )
        raw >> month


flights("client", spark_submit={"py_files": SOURCES})
flights(
    "cluster",
    spark_submit={"py_files": SOURCES, "yarn_track_via_rm_api": True, "status_poll_interval": 1},
    deferrable=True,
)
