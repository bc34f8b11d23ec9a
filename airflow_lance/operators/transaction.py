"""A group of staging tasks that becomes visible at once: the group adds its commit task.

::

    with LanceTransaction(group_id="month", uri="/data/flights.lance", pool="lance_flights"):
        LanceAppendOperator.partial(task_id="append", uri="/data/flights.lance").expand(source=[...])

    month.append [0..n]  ->  month.commit          n staged appends, one new version

All tasks inside run before the commit, the staging ones hand it their references, and when one of them fails nothing is
published. A skipped task counts as nothing to publish: the commit publishes what the others staged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import TaskGroup
from airflow_lance.execution.dataflow import commits_later, operator_class
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.stage import LanceStageOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import GroupArguments


class LanceTransaction(TaskGroup):
    """A task group with a commit at its end.

    Args:
        group_id: the group's id.
        uri: the table; may be omitted, because the staged references contain it.
        lance_conn_id: the `lance` connection; by default the one that the staging tasks inside share.
        storage_options: as for an operator; by default those that the staging tasks inside share.
        pool: the one-slot pool that is the table's commit pool (`airflow_lance.pools.pool_of` has the conventional name).
        outlets: assets that the commit updates (`airflow_lance.assets.create_asset` makes one of a table's uri).
        commit_task_id: the commit task's id inside the group.
        commit_args: further arguments of the commit task, such as `retries` or `trigger_rule`.
        kwargs: of `TaskGroup`.

    Raises:
        InputError: a task inside that publishes by itself.
    """

    def __init__(
        self,
        group_id: str,
        *,
        uri: str = "",
        pool: str | None = None,
        outlets: Sequence[Any] = (),
        lance_conn_id: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        commit_task_id: str = "commit",
        commit_args: Mapping[str, Any] | None = None,
        **kwargs: Unpack[GroupArguments],
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        given: dict[str, Any] = {"uri": uri, "pool": pool, "outlets": list(outlets), "lance_conn_id": lance_conn_id}
        given["storage_options"] = None if storage_options is None else dict(storage_options)
        self.commit_args: dict[str, Any] = {name: value for name, value in given.items() if value}
        self.commit_args.update(commit_args or {})
        self.commit_task_id = commit_task_id
        self.commit_task: LanceCommitOperator | None = None

    def __exit__(self, exc_type: Any, exc: Any, traceback: Any) -> None:
        try:
            if exc_type is None and self.commit_task is None:
                self._add_commit()
        finally:
            super().__exit__(exc_type, exc, traceback)  # type: ignore[no-untyped-call]

    def _add_commit(self) -> None:
        # Leaves are requested before the commit exists, or it would be one of them.
        leaves = list(self.get_leaves())
        staging = [task for task in self if issubclass(operator_class(task), LanceStageOperator)]
        for task in staging:
            if not commits_later(task):
                raise InputError(
                    f"{task.task_id}: only the commit task of a LanceTransaction publishes",
                    cure="Omit `commit` inside the group, or move the task out of the group.",
                )
        # What reaches the table for all of them reaches it for the commit.
        shared = {name: _shared(staging, name) for name in ("lance_conn_id", "storage_options")}
        arguments = {**{name: value for name, value in shared.items() if value}, **self.commit_args}
        self.commit_task = LanceCommitOperator(
            task_id=self.commit_task_id, staged=[task.output for task in staging], **arguments
        )
        for leaf in leaves:
            leaf.set_downstream(self.commit_task)


def _shared(tasks: Sequence[Any], name: str) -> Any:
    """An argument that all tasks, plain or mapped, were given alike; None when they differ."""
    values = [task.partial_kwargs.get(name) if hasattr(task, "partial_kwargs") else getattr(task, name) for task in tasks]
    return values[0] if values and all(value == values[0] for value in values) else None
