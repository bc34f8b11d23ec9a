"""Upkeep of a table when it needs it: compact, bring the indices up to date, remove what is old.

::

    needs_work (sensor, in the triggerer) -> compact -> indices -> clean -> check

Each hour a run begins and waits, without holding a worker, until a bound is exceeded: more than 20 small fragments, or a
tenth of the rows deleted. A run that sees nothing for 50 minutes is skipped. The place comes from the environment:
MAINTAINED_TABLE. Needs the pool `lance_maintained` with one slot: compactions and appends then never meet at the commit.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.operators.validate import LanceValidateOperator
from airflow_lance.sensors.health import LanceFragmentHealthSensor

TABLE = os.environ.get("MAINTAINED_TABLE", "/tmp/lance/flights.lance")
POOL = "lance_maintained"
KEEP_DAYS = float(os.environ.get("MAINTAINED_KEEP_DAYS", "7"))

with DAG(
    dag_id="lance_maintenance",
    schedule="@hourly",
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    doc_md=__doc__,
) as dag:
    needs_work = LanceFragmentHealthSensor(
        task_id="needs_work",
        uri=TABLE,
        max_small_fragments=20,
        max_deleted_ratio=0.1,
        deferrable=True,
        poke_interval=60,
        timeout=timedelta(minutes=50),
        soft_fail=True,
    )
    with LanceTransaction(group_id="compact", uri=TABLE, pool=POOL) as compact:
        LanceCompactOperator(task_id="stage", uri=TABLE, execution="local", max_source_rows=50_000_000)
    with LanceTransaction(group_id="indices", uri=TABLE, pool=POOL) as indices:
        LanceOptimizeIndicesOperator(task_id="stage", uri=TABLE, execution="local")
    clean = LanceCleanupOperator(task_id="clean", uri=TABLE, older_than_days=KEEP_DAYS, retain_versions=3, pool=POOL)
    check = LanceValidateOperator(task_id="check", uri=TABLE)
    needs_work >> compact >> indices >> clean >> check
