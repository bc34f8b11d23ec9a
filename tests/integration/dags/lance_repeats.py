"""Runs that are deleted and made again, a mapped list that shrinks, and a write that nobody commits.

Conf: `{"place": folder}`. The folder has `part-<n>.parquet`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.garbage import LanceGarbageOperator

PLACE = "{{ dag_run.conf['place'] }}"
START = datetime(2013, 1, 1, tzinfo=timezone.utc)


def shared(name: str, part: str) -> dict[str, Any]:
    """A table of the run's folder, and one of its files."""
    source = {"format": "parquet", "paths": [f"{PLACE}/part-{part}.parquet"]}
    return {"uri": f"{PLACE}/{name}.lance", "source": source, "execution": "local"}


with DAG("lance_created_again", schedule=None, start_date=START):
    LanceAppendOperator(task_id="again", on_clear="again", **shared("again", "1"))
    LanceAppendOperator(task_id="once", **shared("once", "1"))
    forgotten = LanceAppendOperator(task_id="forgotten", commit="elsewhere", **shared("forgotten", "1"))
    forgotten >> LanceGarbageOperator(
        task_id="abandon", uri=f"{PLACE}/forgotten.lance", abandon_after=timedelta(microseconds=1)
    )

with DAG("lance_shrunk", schedule=None, start_date=START):

    @task
    def files(place: str, **context: Any) -> list[str]:
        """Three files; after a clear two."""
        return [f"{place}/part-{number}.parquet" for number in range(1, 5 - int(context["ti"].try_number))]

    @task.short_circuit
    def is_wanted(**context: Any) -> bool:
        """Skip the commit until somebody clears this."""
        return int(context["ti"].try_number) > 1

    each = LanceAppendOperator.partial(task_id="each", uri=f"{PLACE}/shrunk.lance", execution="local").expand(
        source=files(PLACE)
    )
    each >> is_wanted() >> LanceCommitOperator(task_id="commit", staged=each.output)
