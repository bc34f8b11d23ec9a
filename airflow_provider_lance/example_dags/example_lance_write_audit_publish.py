"""Readers see a day's rows only when they passed their checks: the load writes to a branch, which is published or discarded.

::

    create -> day.begin -> day.load -> day.audit -> day.publish -> day.discard

It needs no Spark, no cloud and no connection. The table is in the temporary folder of this machine, and may be deleted.
Trigger it with the configuration `{"amount": -1}` and the check fails: the table stays as it was.
"""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from airflow_lance import checks
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish

SALES = Path(tempfile.gettempdir()) / "lance_examples" / "sales.lance"

with DAG(
    dag_id="example_lance_write_audit_publish",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    params={"amount": Param(12.5, type="number")},
    tags=["example", "lance"],
    doc_md=__doc__,
):
    create = LanceCreateTableOperator(task_id="create", uri=SALES, schema="run_id STRING, city STRING, amount DOUBLE")
    with LanceWriteAuditPublish("day", uri=SALES, checks=[checks.no_rows("amount < 0")], execution="local") as day:

        @task.lance(uri=day.branch_uri)
        def load(run_id: str | None = None, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
            """A row of this run."""
            return [{"run_id": str(run_id), "city": "Turin", "amount": float((params or {})["amount"])}]

        load()
    create >> day
