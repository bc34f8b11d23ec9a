"""A task group that maintains the tables of a policy.

::

    with DAG("maintenance", schedule="@hourly", ...):
        LanceMaintenance(policy="/etc/lance/lance_policy.yaml")

    maintenance.plan -> maintenance.look_after [one for each table] and maintenance.alarms
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import TaskGroup
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.maintenance.operators import (
    LanceMaintenanceAlarmOperator,
    LanceMaintenancePlanOperator,
    LanceMaintenanceStepOperator,
)
from lance_core.maintenance.policy import Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import GroupArguments


class LanceMaintenance(TaskGroup):
    """Observe, plan, act, and raise alarms.

    Args:
        group_id: the group's id.
        policy: a `Policy`, or the path of a policy file. A `Policy` also bounds how many tables are worked on at once.
        lance_conn_id: the connection of the tables.
        tables: uris; None is every table below the policy's base uri.
        max_concurrent: tables worked on at once in a run, where the policy is a path.
        kwargs: of `TaskGroup`.
    """

    def __init__(
        self,
        group_id: str = "maintenance",
        *,
        policy: Policy | str | os.PathLike[str],
        lance_conn_id: str = LanceHook.default_conn_name,
        tables: Sequence[str] | None = None,
        max_concurrent: int | None = None,
        **kwargs: Unpack[GroupArguments],
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        at_once = max_concurrent or (policy.budget.max_concurrent if isinstance(policy, Policy) else 2)
        shared: dict[str, Any] = {"policy": policy, "lance_conn_id": lance_conn_id}
        with self:
            plan: Any = LanceMaintenancePlanOperator(task_id="plan", tables=tables, **shared).output
            LanceMaintenanceStepOperator.partial(task_id="look_after", max_active_tis_per_dagrun=at_once, **shared).expand(
                steps=plan
            )
            LanceMaintenanceAlarmOperator(task_id="alarms", alarms=plan["alarms"])
