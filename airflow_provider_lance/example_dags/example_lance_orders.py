"""A table of orders: each run loads new rows, corrects one of them, checks the table, and returns what is in it.

::

    load -> correct -> check -> newest

It needs no Spark, no cloud and no connection. The table is in the temporary folder of this machine, and may be deleted.
"""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, chain, task

from airflow_lance import checks
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.query import LanceQueryOperator

ORDERS = Path(tempfile.gettempdir()) / "lance_examples" / "orders.lance"
CITIES = ("Berlin", "Lagos", "Lima", "Pune")


def _num_orders() -> int:
    from airflow_lance.hooks.lance import LanceHook

    hook = LanceHook()
    return int(hook.dataset(ORDERS).count_rows()) if hook.table_exists(ORDERS) else 0


with DAG(
    dag_id="example_lance_orders",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["example", "lance"],
    doc_md=__doc__,
):

    @task.lance(uri=ORDERS)
    def load() -> list[dict[str, Any]]:
        """Four orders, numbered on from those in the table. A retry adds none twice."""
        first = _num_orders()
        return [{"id": first + number, "city": city, "amount": 10.0 * number} for number, city in enumerate(CITIES)]

    @task.lance(uri=ORDERS, mode="merge", on="id")
    def correct() -> list[dict[str, Any]]:
        """The newest order comes from elsewhere."""
        return [{"id": _num_orders() - 1, "city": "Quito", "amount": 35.0}]

    check = LanceCheckOperator(task_id="check", uri=ORDERS, checks=[checks.unique("id"), checks.not_null("city")])
    newest = LanceQueryOperator(task_id="newest", uri=ORDERS, filter="city = 'Quito'", limit=100)

    chain(load(), correct(), check, newest)
