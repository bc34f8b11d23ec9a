"""Switch a column to another definition, with its index, in one version; and a group of tasks that prepares it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import TaskGroup
from airflow_lance.connection import plain_uri
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.immediate import LanceImmediateOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import GroupArguments, ImmediateArguments


class LanceSwitchColumnOperator(LanceImmediateOperator):
    """Let a column and its shadow change names in one version, so that readers have the old column with its index, or the
    new one with its. Rolling back is the same with the former version. A column that is declared with `version` already
    is left as it is. Arguments of `LanceImmediateOperator`, and

    Args:
        column: the column that readers use. (templated)
        version: the version of the declaration that shall be behind its name. (templated)
        shadow: the column that has it now, `{column}_next` unless given. (templated)
        max_stale_share: fail where no refresh has seen more of the shadow's rows, as a share, as they are now.
        min_recall: fail where the shadow's vector index finds less of the `k` nearest than an exact search, with `sample`
            rows as queries, such as 0.95; None does not compare. The comparison reads the column once.
        k: how many nearest are compared.
        sample: rows that are searched for.
        search: how readers search, as {"nprobes": 20, "refine_factor": 10}.

    Raises:
        AirflowFailException: the shadow has another version, is staler than `max_stale_share`, or its index finds less than
            `min_recall`.
    """

    spec = "lance_core.jobs.specs.switch:SwitchColumnSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "column", "version", "shadow")

    def __init__(
        self,
        *,
        column: str,
        version: str,
        shadow: str | None = None,
        max_stale_share: float = 0.0,
        min_recall: float | None = None,
        k: int = 10,
        sample: int = 1000,
        search: Mapping[str, Any] | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.column = column
        self.version = version
        self.shadow = shadow
        self.max_stale_share = max_stale_share
        self.min_recall = min_recall
        self.k = k
        self.sample = sample
        self.search = dict(search or {})


class LanceSwitchColumn(TaskGroup):
    """Tasks that bring a column to another definition while readers go on with the old one.

    ::

        LanceSwitchColumn("to_2", uri=TABLE, column="vector", version="2",
                          definition={"function": "models:embed", "inputs": ["text"]},
                          index={"index_type": "IVF_PQ"}, switch={"min_recall": 0.95})

        to_2.declare -> to_2.refresh -> to_2.build_index -> to_2.switch

    Where `column` has that version already, the first three tasks are skipped. `LanceSwitchColumnOperator` with the former
    version rolls back, as long as the shadow is there; refresh it, too, to keep that possible.

    Args:
        group_id: the group's id.
        uri: the table, as for an operator.
        column: the column that readers use.
        version: of the new definition; part of the index's name.
        definition: further arguments of the `LanceDeclareColumnOperator` of the shadow.
        refresh: further arguments of the `LanceRefreshColumnsOperator`, such as `execution`, `commit_every`, `concurrency`.
        index: arguments of the `LanceBuildIndexOperator`, such as `index_type` and `parameters`; None builds none.
        shadow: the column that is filled, `{column}_next` unless given.
        switch: further arguments of the `LanceSwitchColumnOperator`, such as `min_recall` and `search`.
        lance_conn_id: the connection of the table.
        storage_options: as for an operator.
        kwargs: of `TaskGroup`.

    Raises:
        InputError: arguments of its tasks that contradict each other.
    """

    def __init__(
        self,
        group_id: str,
        *,
        uri: str | os.PathLike[str],
        column: str,
        version: str,
        definition: Mapping[str, Any],
        refresh: Mapping[str, Any] | None = None,
        index: Mapping[str, Any] | None = None,
        shadow: str | None = None,
        switch: Mapping[str, Any] | None = None,
        lance_conn_id: str = LanceHook.default_conn_name,
        storage_options: Mapping[str, Any] | None = None,
        **kwargs: Unpack[GroupArguments],
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        shadow = shadow or f"{column}_next"
        table: dict[str, Any] = {
            "uri": plain_uri(uri), "lance_conn_id": lance_conn_id, "storage_options": storage_options,
        }  # fmt: skip
        functions = [definition["function"]] if "function" in definition else []
        with self:
            declared = LanceDeclareColumnOperator(
                task_id="declare", column=shadow, version=version, unless=column, confirm=True, **table, **definition
            )
            last: Any = LanceRefreshColumnsOperator(
                task_id="refresh", columns=[shadow], **table, **{"functions": functions, **(refresh or {})}
            )
            declared.set_downstream(last)
            if index is not None:
                name = f"{column}_{_plain(version)}_idx"
                shared = {key: value for key, value in (refresh or {}).items() if key in ("execution", "pool", "conf")}
                build = LanceBuildIndexOperator(
                    task_id="build_index", column=shadow, **table, **{"index_name": name, **shared, **index}
                )
                last.set_downstream(build)
                last = build
            self.switch_task = LanceSwitchColumnOperator(
                task_id="switch", column=column, version=version, shadow=shadow, **table,
                **{"trigger_rule": "none_failed", **(switch or {})},
            )  # fmt: skip
            last.set_downstream(self.switch_task)


def _plain(version: str) -> str:
    """A version as a part of a name."""
    return "".join(letter if letter.isalnum() else "_" for letter in version)
