"""Work on a table whose connection holds a secret: the driver in the task, then on the cluster, a deferred wait, and tasks
that fail. `tests/integration/test_planted_secret_in_a_dag.py` looks at what it leaves behind.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.version import LanceVersionSensor

URI = "s3://lake/dag.lance"
CONF = {
    "spark.ui.enabled": "false",
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": os.environ.get("LANCE_TEST_EVENTS", ""),
}
SOURCE = {"sql": "SELECT id FROM RANGE(0, 10, 1, 2)"}


def on_spark(conn_id: str, mode: str, uri: str = "dag.lance") -> dict[str, Any]:
    """Where an operator's work runs."""
    submit = {"driver_memory": "512m", "deploy_mode": mode}
    return {"uri": uri, "lance_conn_id": "planted", "spark_conn_id": conn_id, "conf": CONF, "spark_submit": submit}


# A busy machine: Airflow's database may lose a task now and then.
PATIENT = {"retries": 2, "retry_delay": timedelta(seconds=5)}
START = datetime(2013, 1, 1, tzinfo=timezone.utc)

with DAG("lance_planted", schedule=None, start_date=START, default_args=PATIENT) as dag:
    with LanceTransaction("load", uri="dag.lance", lance_conn_id="planted", outlets=[create_asset(uri=URI)]) as load:
        LanceAppendOperator(task_id="append", source=SOURCE, **on_spark("spark_here", "client"))
    wait = LanceVersionSensor(
        task_id="wait", uri="dag.lance", lance_conn_id="planted", min_version=1, poke_interval=1, deferrable=True
    )
    delete = LanceDeleteOperator(task_id="delete", predicate="id = 3", **on_spark("spark_cluster", "cluster"))
    tag = LanceTagOperator(task_id="tag", uri="dag.lance", lance_conn_id="planted", tag="kept")
    broken = LanceAppendOperator(
        task_id="broken", source={"sql": "SELECT nothing FROM nowhere"}, **on_spark("spark_here", "client")
    )
    refused = LanceAppendOperator(task_id="refused", source=SOURCE, **on_spark("spark_here", "client", "refused.lance"))
    load >> wait >> delete >> tag >> [broken, refused]
