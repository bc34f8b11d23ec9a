"""A year filled month by month, again and again if need be: each run replaces its own month, in one commit.

::

    airflow backfill create --dag-id flights_backfill --from-date 2013-01-01 --to-date 2013-12-01 --max-active-runs 4

    month -> replace.stage (rows of the month, and what of the table must go for them) -> replace.commit

A reader sees a month's old rows or its new ones, never neither. Runs of different months stage side by side; their commits
queue in a pool of one slot for a moment each. A run that is repeated finds that its work was committed.

Places come from the environment: BACKFILL_TABLE, BACKFILL_RAW; LANCE_EXECUTION is "spark-submit" (the default) or "local".
Needs the pool `lance_backfill` with one slot.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, task

from airflow_lance.assets import create_asset
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.transaction import LanceTransaction

TABLE = os.environ.get("BACKFILL_TABLE", "/tmp/lance/backfill.lance")
RAW = os.environ.get("BACKFILL_RAW", "/tmp/lance/backfill-raw")


@task
def month(folder: str, number: int | str) -> str:
    """The flights of a month as a Parquet file; its path."""
    import flights_data

    return flights_data.write_month(folder, int(number))


with DAG(
    dag_id="flights_backfill",
    schedule="@monthly",
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    end_date=datetime(2013, 12, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=4,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
) as dag:
    path = month(RAW, "{{ logical_date.month }}")
    with LanceTransaction(
        group_id="replace", uri=TABLE, pool="lance_backfill", outlets=[create_asset(uri=TABLE)]
    ) as replace:
        LanceReplaceWhereOperator(
            task_id="stage",
            uri=TABLE,
            predicate="month = {{ logical_date.month }}",
            source={"format": "parquet", "paths": ["{{ ti.xcom_pull(task_ids='month') }}"]},
            execution=os.environ.get("LANCE_EXECUTION", "spark-submit"),  # type: ignore[arg-type]
            conf={"spark.sql.session.timeZone": "UTC"},
        )
    path >> replace
