"""A DAG whose tasks die at a step that the run's conf names, once; then Airflow retries them.

Conf: `{"table": uri, "plan": {"step": "publish _versions/", "once": path}, "where": "append" | "commit"}`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG
from kill_plan import KillPlan, install

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator

START = datetime(2013, 1, 1, tzinfo=timezone.utc)
RETRY: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=1)}


def arm(context: Any) -> None:
    """Before a task's `execute`: its process gets the plan when it is the one to die."""
    conf = context["dag_run"].conf or {}
    if conf.get("where") == context["ti"].task_id:
        install(KillPlan(**conf["plan"]))


with DAG("lance_kills", schedule=None, start_date=START, max_active_runs=4, default_args=RETRY):
    append = LanceAppendOperator(
        task_id="append",
        uri="{{ dag_run.conf['table'] }}",
        execution="local",
        source={"callable": "kill_sources:rows", "kwargs": {}},
        max_rows_per_file=5,
        pre_execute=arm,
    )
    LanceCommitOperator(task_id="commit", staged=append.output, pre_execute=arm)

with DAG("lance_driver_kills", schedule=None, start_date=START, max_active_runs=2, default_args=RETRY):
    append = LanceAppendOperator(
        task_id="append",
        uri="{{ dag_run.conf['table'] }}",
        source={
            "callable": "kill_sources:spark_rows",
            "kwargs": {"step": "{{ dag_run.conf['step'] }}", "once": "{{ dag_run.conf['once'] }}"},
        },
        conf={"spark.ui.enabled": "false"},
        spark_submit={"driver_memory": "512m"},
    )
    LanceCommitOperator(task_id="commit", staged=append.output)
