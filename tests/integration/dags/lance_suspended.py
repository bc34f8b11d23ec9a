"""Columns that are added by a task whose first try is suspended: Airflow misses its heartbeat and begins a second one.

Conf: `{"uri": table, "marks": folder}`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_lance.operators.add_columns import LanceAddColumnsOperator

for suffix, lance_conn_id in {"": "lance_default", "_s3": "lance_s3"}.items():
    with DAG(f"lance_suspended{suffix}", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)):
        LanceAddColumnsOperator(
            task_id="add",
            uri="{{ dag_run.conf['uri'] }}",
            function="suspended_function:twice",
            function_kwargs={"marks": "{{ dag_run.conf['marks'] }}"},
            reads=["id"],
            execution="local",
            lance_conn_id=lance_conn_id,
            retries=1,
            retry_delay=timedelta(seconds=1),
        )
