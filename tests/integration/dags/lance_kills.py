"""DAGs whose tasks die at a step that the run's conf names, once; what happens then is Airflow's affair, or a person's.

Conf: `{"table": uri, "append": plan, "commit": plan}` with a `KillPlan` for none, one or both tasks; a plan may have
`second`, the plan of the next try. `lance_kills` is retried by Airflow, `lance_kills_cleared` fails and waits to be cleared.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG
from kill_plan import KillPlan, install

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator

START = datetime(2013, 1, 1, tzinfo=timezone.utc)
RAW = str(Path(os.environ["LANCE_TEST_PLACE"]) / "kills" / "raw" / "new.parquet")
TABLE = "{{ dag_run.conf['table'] }}"
RETRIED: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=1)}
CLEARED: dict[str, Any] = {"retries": 0}


def arm(context: Any) -> None:
    """Before a task's `execute`: its process gets the plan when it is the one to die."""
    conf = context["dag_run"].conf or {}
    plan = conf.get(context["ti"].task_id)
    while plan is not None and Path(plan["once"]).exists():
        plan = plan.get("second")
    if plan is not None:
        install(KillPlan(**{name: value for name, value in plan.items() if name != "second"}))


for name, arguments in (("lance_kills", RETRIED), ("lance_kills_cleared", CLEARED)):
    with DAG(name, schedule=None, start_date=START, max_active_runs=4, default_args=arguments):
        append = LanceAppendOperator(
            task_id="append",
            uri=TABLE,
            execution="local",
            source={"format": "parquet", "paths": [RAW]},
            max_rows_per_file=5,
            progress_seconds=600,
            on_clear="skip",
            pre_execute=arm,
        )
        LanceCommitOperator(task_id="commit", staged=append.output, pre_execute=arm)

for name, arguments in (("lance_driver_kills", RETRIED), ("lance_driver_kills_cleared", CLEARED)):
    with DAG(name, schedule=None, start_date=START, max_active_runs=2, default_args=arguments):
        append = LanceAppendOperator(
            task_id="append",
            uri=TABLE,
            source={
                "callable": "kill_sources:spark_rows",
                "kwargs": {"raw": RAW, "plans": "{{ dag_run.conf['append'] | tojson }}"},
            },
            max_rows_per_file=5,
            progress_seconds=600,
            on_clear="skip",
            conf={"spark.ui.enabled": "false"},
            spark_submit={"driver_memory": "512m"},
        )
        LanceCommitOperator(task_id="commit", staged=append.output)
