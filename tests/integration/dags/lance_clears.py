"""Tasks that people clear, run by hand again and map anew: what has landed, what lands again, what is refused.

Conf: `{"place": folder, "day": text}`. The folder has `part-<n>.parquet`. A task that names its source by the number of its
try has another spec after each clear.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, task

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.transaction import LanceTransaction

PLACE = "{{ dag_run.conf['place'] }}"
START = datetime(2013, 1, 1, tzinfo=timezone.utc)


def shared(name: str, part: str) -> dict[str, Any]:
    """A table of the run's folder, and one of its files."""
    source = {"format": "parquet", "paths": [f"{PLACE}/part-{part}.parquet"]}
    return {"uri": f"{PLACE}/{name}.lance", "source": source, "execution": "local"}


with DAG("lance_clears", schedule=None, start_date=START):
    # Parts 1 and 2 both hold the day 7.
    LanceReplaceWhereOperator(task_id="replace", predicate="day = 7", **shared("replaced", "{{ ti.try_number }}"))
    LanceAppendOperator(task_id="append", **shared("appended", "1"))
    LanceAppendOperator(task_id="once_a_day", idempotency_key="orders/{{ dag_run.conf['day'] }}", **shared("daily", "1"))

    @task
    def days(place: str, **context: Any) -> list[dict[str, Any]]:
        """Parts 1 and 2; cleared, 2 and 3: the second task's part has moved to the first one."""
        first = int(context["ti"].try_number)
        return [{"format": "parquet", "paths": [f"{place}/part-{first + number}.parquet"]} for number in range(2)]

    LanceAppendOperator.partial(task_id="each", uri=f"{PLACE}/mapped.lance", execution="local").expand(source=days(PLACE))

with DAG("lance_two_commits", schedule=None, start_date=START):
    # Both commit tasks run in the default pool, at the same time: each pair says the same day, and the same keys.
    for number in ("1", "2"):
        merge = LanceMergeOperator(task_id=f"merge_{number}", on="id", **shared("merged", "1"))
        LanceCommitOperator(task_id=f"commit_merge_{number}", staged=merge.output)
        replace = LanceReplaceWhereOperator(
            task_id=f"replace_{number}", predicate="day = 7", **shared("same_day", str(number))
        )
        LanceCommitOperator(task_id=f"commit_replace_{number}", staged=replace.output)

with DAG("lance_left_staged", schedule=None, start_date=START):

    @task.short_circuit
    def is_wanted(**context: Any) -> bool:
        """Skip the commit, whatever was staged, until somebody clears this."""
        return int(context["ti"].try_number) > 1

    left = LanceAppendOperator(task_id="append", **shared("left", "1"))
    left >> is_wanted() >> LanceCommitOperator(task_id="commit", staged=left.output)

with DAG("lance_mapped_outcomes", schedule=None, start_date=START):

    @task
    def paths(place: str, **context: Any) -> list[str]:
        """The names in the run's configuration: parts, files that are missing, and files that are no Parquet."""
        return [f"{place}/{name}.parquet" for name in context["dag_run"].conf["names"]]

    with LanceTransaction("day"):
        LanceAppendOperator.partial(
            task_id="append", uri=f"{PLACE}/outcomes.lance", on_missing="skip", execution="local", retries=0
        ).expand(source=paths(PLACE))
