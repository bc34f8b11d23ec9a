"""DAGs made from a policy file: one that maintains all tables on a schedule.

::

    from airflow_lance.maintenance import maintenance_dags

    globals().update(maintenance_dags("/etc/lance/lance_policy.yaml", schedule="@hourly"))
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from airflow_lance.compat import DAG
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.maintenance.group import LanceMaintenance
from lance_core.maintenance.policy import Policy


def maintenance_dags(
    policy: Policy | str | os.PathLike[str],
    *,
    dag_id: str = "lance_maintenance",
    schedule: Any = "@hourly",
    lance_conn_id: str = LanceHook.default_conn_name,
    dag_args: Mapping[str, Any] | None = None,
) -> dict[str, DAG]:
    """Return DAGs by id, to be put into a DAG file's globals.

    A policy file is read once here, so that a mistake in it is an import error of the DAG file, with file and line, and
    again by each run, so that a change takes effect without a new version of the DAG. Runs never overlap.
    """
    if not isinstance(policy, Policy):
        from lance_core.maintenance.policy_file import load_policy

        at_once = load_policy(policy).budget.max_concurrent
    else:
        at_once = policy.budget.max_concurrent
    arguments: dict[str, Any] = {
        "schedule": schedule,
        "start_date": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["lance", "maintenance"],
        **dict(dag_args or {}),
    }
    with DAG(dag_id=dag_id, **arguments) as dag:
        LanceMaintenance(policy=policy, lance_conn_id=lance_conn_id, max_concurrent=at_once)
    return {dag_id: dag}
