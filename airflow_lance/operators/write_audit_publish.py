"""Write, audit, publish: a group whose tasks write to a branch, which reaches readers only when its checks have passed.

::

    with LanceWriteAuditPublish(group_id="day", uri="flights.lance", checks=[not_null("carrier")]) as day:
        LanceAppendOperator(task_id="load", uri=day.branch_uri, source=...)
        LanceDeleteOperator(task_id="drop_tests", uri=day.branch_uri, predicate="carrier = 'XX'")

    day.begin -> day.load, day.drop_tests -> day.audit -> day.publish -> day.discard

The branch's changes become one version of the main line, exactly once, judged by the conflict rules. A skipped task counts
as nothing to write: what the others wrote is audited and published. `begin` and `discard`
are Airflow's setup and teardown: the branch goes also when a write or a check has failed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.compat import TaskGroup
from airflow_lance.connection import plain_uri
from airflow_lance.execution.dataflow import PUBLISHES_WHAT_IS_THERE
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.branch import LanceBranchOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.publish_branch import LancePublishBranchOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from airflow_lance.signatures import GroupArguments

_RUN = "{{ run_id | replace(':', '-') | replace('+', '-') | replace(' ', '-') | replace('/', '-') }}"


class LanceWriteAuditPublish(TaskGroup):
    """A task group around a branch. `branch_uri` is the table that the tasks inside write to.

    Args:
        group_id: the group's id.
        uri: the table, as for an operator.
        checks: gates that the branch must pass, as for `LanceCheckOperator`.
        schema: the table's columns as Spark DDL, such as `"id BIGINT, name STRING"`: where there is no table yet, the
            first run creates it without rows, so that there is a version to branch from. (templated)
        branch: the branch's name; by default the group's and the run's. (templated)
        if_moved: as for `LancePublishBranchOperator`.
        on_failure: "discard" the branch, or "keep" it, to look at it.
        outlets: assets that the publication updates.
        lance_conn_id: the connection of the table.
        storage_options: as for an operator.
        execution: where the publication copies rows, as for `LanceStageOperator`.
        publish_args: further arguments of the publishing task, such as `on_clear`, `retries` or `pool`.
        kwargs: of `TaskGroup`.

    Raises:
        InputError: an unknown `on_failure`, or no task that writes to the branch.
    """

    def __init__(
        self,
        group_id: str,
        *,
        uri: str | os.PathLike[str],
        checks: Sequence[Mapping[str, Any]] = (),
        schema: str | None = None,
        branch: str | None = None,
        if_moved: Literal["fail", "publish"] = "fail",
        on_failure: Literal["discard", "keep"] = "discard",
        outlets: Sequence[Any] = (),
        lance_conn_id: str = LanceHook.default_conn_name,
        storage_options: Mapping[str, Any] | None = None,
        execution: Literal["spark-submit", "spark-connect", "local"] | None = None,
        publish_args: Mapping[str, Any] | None = None,
        **kwargs: Unpack[GroupArguments],
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        if on_failure not in ("discard", "keep"):
            raise InputError(f"{group_id}: on_failure must be one of discard, keep, got {on_failure!r}")
        self.uri = plain_uri(uri)
        self.branch = branch or f"{group_id}/{_RUN}"
        self.branch_uri = f"{self.uri.rstrip('/')}/tree/{self.branch}"
        self.checks = list(checks)
        self.schema = schema
        self.on_failure = on_failure
        self._shared: dict[str, Any] = {"lance_conn_id": lance_conn_id, "storage_options": storage_options}
        self._publish_args = {
            "if_moved": if_moved,
            "outlets": list(outlets),
            "execution": execution,
            "trigger_rule": PUBLISHES_WHAT_IS_THERE,
            **(publish_args or {}),
        }
        self.publish_task: LancePublishBranchOperator | None = None

    if TYPE_CHECKING:  # a name for the group in `with ... as` has its own type

        def __enter__(self) -> Self: ...

    def __exit__(self, exc_type: Any, exc: Any, traceback: Any) -> None:
        try:
            if exc_type is None and self.publish_task is None:
                self._surround()
        finally:
            super().__exit__(exc_type, exc, traceback)  # type: ignore[no-untyped-call]

    def _surround(self) -> None:
        """Add what comes before and after the tasks of the group."""
        roots, leaves = list(self.get_roots()), list(self.get_leaves())
        if not roots:
            raise InputError(f"{self.group_id}: no task writes to the branch", cure="Add tasks with uri=group.branch_uri.")
        branch: dict[str, Any] = {"uri": self.uri, "branch": self.branch, **self._shared}
        # A run that is cleared begins its branch again: what the writes had left there is part of what was cleared.
        begin = LanceBranchOperator(task_id="begin", action="renew", on_clear="again", **branch)
        if self.schema is not None:
            create = LanceCreateTableOperator(task_id="create", uri=self.uri, schema=self.schema, **self._shared)
            create.set_downstream(begin)
        version: Any = None
        if self.checks:
            audit = LanceCheckOperator(
                task_id="audit",
                uri=self.branch_uri,
                checks=self.checks,
                trigger_rule=PUBLISHES_WHAT_IS_THERE,
                **self._shared,
            )
            for leaf in leaves:
                leaf.set_downstream(audit)
            leaves, version = [audit], f"{{{{ ti.xcom_pull(task_ids='{audit.task_id}')['version'] }}}}"
        publish = LancePublishBranchOperator(task_id="publish", version=version, **branch, **self._publish_args)
        discard = LanceBranchOperator(task_id="discard", action="delete", on_clear="again", **branch)
        for root in roots:
            begin.set_downstream(root)
        for leaf in leaves:
            leaf.set_downstream(publish)
        publish.set_downstream(discard)
        if self.on_failure == "discard":
            discard.as_teardown(setups=begin)
        self.publish_task = publish
