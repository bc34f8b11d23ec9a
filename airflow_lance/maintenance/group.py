"""A task group that maintains the tables of a policy.

::

    with DAG("maintenance", schedule="@hourly", ...):
        LanceMaintenance(policy="/etc/lance/lance_policy.yaml")

    maintenance.plan -> maintenance.look_after [one for each table] and maintenance.alarms

The tasks of a maintenance run: plan, maintain one table, and raise the alarms.

::

    plan                 -> XCom [[step, ...], ...], a list for each table; "alarms" and "cost" under keys of their own
    look_after [0..n]    one mapped task per table; its steps run in order, each independently
    alarms               fails when a table was not maintained, or could not be observed, for too long
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import AirflowException, BaseOperator, Context, TaskGroup
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.full_signature import FullSignature
from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import InputError
from lance_core.jobs.specs.secret import reveal_all
from lance_core.maintenance.policy import ManagedTable, Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import GroupArguments, PolicyArguments, TaskArguments
    from lance_core.maintenance.evidence import Evidence


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


class _PolicyOperator(BaseOperator):
    """What the tasks share: the policy, given as an object or as the path of a YAML file, and the connection.

    Args:
        policy: a `Policy`, or the path of a policy file, which is read when the task runs. (the path is templated)
        lance_conn_id: the connection of the tables below the policy's base uri; rules may name others. (templated)
    """

    template_fields: Sequence[str] = ("policy_path", "lance_conn_id")
    ui_color = "#e3f0ec"
    __signature__: ClassVar[Any] = FullSignature()

    def __init__(
        self,
        *,
        policy: Policy | str | os.PathLike[str],
        lance_conn_id: str = LanceHook.default_conn_name,
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(**kwargs)
        self._policy = policy if isinstance(policy, Policy) else None
        self.policy_path = "" if isinstance(policy, Policy) else os.fspath(policy)
        self.lance_conn_id = lance_conn_id

    def policy(self) -> Policy:
        """The policy; InputError with file and line when the file is wrong."""
        if self._policy is not None:
            return self._policy
        from lance_core.maintenance.policy_file import load_policy

        return load_policy(self.policy_path)

    def options_of(self, base_uri: str) -> Callable[[str | None], Mapping[str, str]]:
        """Storage options by connection id, resolved once."""
        known: dict[str | None, Mapping[str, str]] = {}

        def options(conn_id: str | None) -> Mapping[str, str]:
            if conn_id not in known:
                known[conn_id] = reveal_all(LanceHook(conn_id or self.lance_conn_id).storage_options(base_uri))
            return known[conn_id]

        return options


class LanceMaintenancePlanOperator(_PolicyOperator):
    """Observe the tables of a policy and plan what is due now. Arguments of `_PolicyOperator`, and

    Args:
        tables: uris; None is every table below the policy's base uri. (templated)
    """

    template_fields: Sequence[str] = (*_PolicyOperator.template_fields, "tables")
    template_fields_renderers: ClassVar[dict[str, str]] = {"tables": "json"}

    def __init__(self, *, tables: Sequence[str] | None = None, **kwargs: Unpack[PolicyArguments]) -> None:
        super().__init__(**kwargs)
        self.tables = None if tables is None else list(tables)

    def execute(self, context: Context) -> list[list[dict[str, Any]]]:
        """Return the steps, a list for each table; XComs `alarms` and `cost` beside it. The evidence has the steps that are
        not done."""
        from lance_core.maintenance.api import note_skipped, plan_now

        with as_airflow_errors("maintenance"):
            policy = self.policy()
            options_of = self.options_of(policy.base_uri)
            named = [ManagedTable(uri=uri, conn_id=self.lance_conn_id) for uri in self.tables or ()]
            plan = plan_now(policy, tables=named, options_of=options_of, base_of=_base_of, conn_id=self.lance_conn_id)
            note_skipped(policy, plan.skipped, options_of=options_of, run=_run_of(context))
        found = plan.to_dict()
        by_table: dict[str, list[dict[str, Any]]] = {}
        for step in found["steps"]:
            by_table.setdefault(step["uri"], []).append(step)
        for step in found["steps"]:
            self.log.info("due: %s of %s: %s", step["action"], step["uri"], step["reason"])
        for item in found["skipped"]:
            self.log.info("not done: %s of %s: %s", item["action"], item["uri"], item["reason"])
        for name in ("alarms", "cost"):
            context["ti"].xcom_push(key=name, value=found[name])
        return list(by_table.values())


class LanceMaintenanceStepOperator(_PolicyOperator):
    """Look after one table: its steps in order, each independently. Arguments of `_PolicyOperator`, and

    Args:
        steps: the steps of one table, as the plan returns them. (templated)
    """

    template_fields: Sequence[str] = (*_PolicyOperator.template_fields, "steps")
    template_fields_renderers: ClassVar[dict[str, str]] = {"steps": "json"}

    def __init__(self, *, steps: Sequence[Mapping[str, Any]], **kwargs: Unpack[PolicyArguments]) -> None:
        super().__init__(**kwargs)
        self.steps = steps

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return outcome and size of each step. AirflowException when one failed, after all of them were tried."""
        from dataclasses import asdict

        from lance_core.maintenance.api import carry_out, step_from_dict

        with as_airflow_errors("maintenance"):
            policy = self.policy()
            rows = carry_out(
                policy,
                [step_from_dict(step) for step in self.steps],
                options_of=self.options_of(policy.base_uri),
                run=_run_of(context),
                on_step=self._tell,
            )
        failed = [row for row in rows if row.outcome == "failed"]
        if failed:
            raise AirflowException("; ".join(f"{row.action} of {row.uri}: {row.error}" for row in failed))
        return [asdict(row) for row in rows]

    def _tell(self, row: Evidence) -> None:
        self.log.info("%s of %s: %s in %.1f s %s", row.action, row.uri, row.outcome, row.seconds, row.error or "")


class LanceMaintenanceAlarmOperator(BaseOperator):
    """Fail when the plan has alarms: silence is a failure.

    Args:
        alarms: the alarms of the plan. (templated)
    """

    template_fields: Sequence[str] = ("alarms",)
    ui_color = "#e3f0ec"

    def __init__(self, *, alarms: Sequence[Mapping[str, Any]], **kwargs: Unpack[TaskArguments]) -> None:
        super().__init__(**kwargs)
        self.alarms = alarms

    def execute(self, context: Context) -> None:
        """Raise AirflowException that names every table."""
        if self.alarms:
            raise AirflowException("; ".join(f"{alarm['uri']}: {alarm['reason']}" for alarm in self.alarms))


def _base_of(conn_id: str) -> str:
    """The base uri of a connection. InputError when Airflow does not know the connection."""
    from airflow_lance.compat import AirflowNotFoundException

    try:
        return LanceHook(conn_id).settings.base_uri
    except AirflowNotFoundException as error:
        raise InputError(str(error), cure=f"Create the connection {conn_id}, or correct the policy.") from error


def _run_of(context: Context) -> str:
    """The dag and run, for the evidence."""
    ti: Any = context.get("ti")
    return "" if ti is None else f"{ti.dag_id}/{ti.run_id}"
