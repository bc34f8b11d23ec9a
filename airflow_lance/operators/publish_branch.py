"""Publish what a branch changed as one version of the main line: staged, then committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LancePublishBranchOperator(LanceStageOperator):
    """Bring a branch's changes to the main line. The branch stays, and may be deleted afterwards: the main line has copies.

    Arguments of `LanceStageOperator`, and

    Args:
        branch: the branch; it began from the main line, and has its columns. (templated)
        version: that of the branch which was checked; None is its newest. (templated)
        if_moved: what becomes of a branch that replaced rows when others have added rows to the main line since it began:
            "fail", because the branch never saw them, or "publish" all the same.
        rows_per_task: a task copies fragments of about so many rows. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: columns that are not the main line's, or rows added there since, where `if_moved` says "fail".
    """

    spec = "lance_core.jobs.specs.branches:PublishBranchSpec"

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields, "branch", "version", "rows_per_task", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        branch: str,
        version: int | str | None = None,
        if_moved: Literal["fail", "publish"] = "fail",
        rows_per_task: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.version = version
        self.if_moved = if_moved
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})
