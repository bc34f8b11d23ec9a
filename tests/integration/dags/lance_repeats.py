"""Runs that are deleted and made again, retries that are raised behind a clear, a mapped list that shrinks, a write that
nobody commits: each with tables on the disk, and as `..._s3` with tables that the connection `lance_s3` reaches.

Conf: `{"place": folder, "lake": folder of tables}`. The place has `part-<n>.parquet`. The file `retries` (`retries_s3`)
of the session's folder, when it exists, says how many retries the task `raised` has.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.garbage import LanceGarbageOperator

PLACE, LAKE = "{{ dag_run.conf['place'] }}", "{{ dag_run.conf['lake'] }}"
START = datetime(2013, 1, 1, tzinfo=timezone.utc)
CONNECTIONS = {"": "lance_default", "_s3": "lance_s3"}
SESSION = Path(os.environ["LANCE_TEST_PLACE"])


def shared(name: str, connection: str) -> dict[str, Any]:
    """A table of the run's lake, and the first file of its place."""
    source = {"format": "parquet", "paths": [f"{PLACE}/part-1.parquet"]}
    return {"uri": f"{LAKE}/{name}.lance", "source": source, "execution": "local", "lance_conn_id": connection}


@task
def files(place: str, **context: Any) -> list[str]:
    """Three files; after a clear two."""
    return [f"{place}/part-{number}.parquet" for number in range(1, 5 - int(context["ti"].try_number))]


@task.short_circuit
def is_wanted(**context: Any) -> bool:
    """Skip the commit until somebody clears this."""
    return int(context["ti"].try_number) > 1


for suffix, lance_conn_id in CONNECTIONS.items():
    with DAG(f"lance_created_again{suffix}", schedule=None, start_date=START):
        LanceAppendOperator(task_id="again", on_clear="again", **shared("again", lance_conn_id))
        LanceAppendOperator(task_id="once", **shared("once", lance_conn_id))
        forgotten = LanceAppendOperator(task_id="forgotten", commit="elsewhere", **shared("forgotten", lance_conn_id))
        forgotten >> LanceGarbageOperator(
            task_id="abandon",
            uri=f"{LAKE}/forgotten.lance",
            abandon_after=timedelta(microseconds=1),
            lance_conn_id=lance_conn_id,
        )

    with DAG(f"lance_shrunk{suffix}", schedule=None, start_date=START):
        each = LanceAppendOperator.partial(
            task_id="each", uri=f"{LAKE}/shrunk.lance", execution="local", lance_conn_id=lance_conn_id
        ).expand(source=files(PLACE))
        each >> is_wanted() >> LanceCommitOperator(task_id="commit", staged=each.output, lance_conn_id=lance_conn_id)

    raised = SESSION / f"retries{suffix}"
    with DAG(f"lance_raised{suffix}", schedule=None, start_date=START):
        LanceAppendOperator(
            task_id="raised",
            retries=int(raised.read_text()) if raised.exists() else 0,
            retry_delay=timedelta(seconds=1),
            **shared("raised", lance_conn_id),
        )
