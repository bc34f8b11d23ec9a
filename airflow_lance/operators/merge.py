"""Merge rows into a table by key, the upsert: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import WriteArguments


class LanceMergeOperator(LanceWriteOperator):
    """Stage a merge. A commit in between that brought rows with the same keys makes the commit task stage it again.

    Arguments of `LanceWriteOperator` (the source may lack columns of the table), and

    Args:
        on: key columns; null keys match nothing. (templated)
        when_matched: "update" rows of the table to the source's values, "delete" them, "keep" them, or "fail".
        when_matched_condition: SQL over `source.x` and `target.x`: update only pairs for which it is true. (templated)
        when_not_matched: "insert" rows of the source that match nothing, or "keep" them out.
        when_not_matched_by_source: "keep" rows of the table that the source does not match, or "delete" them.
        when_not_matched_by_source_condition: delete only those that this filter selects. (templated)
        when_duplicate: a key that two rows of the source have: "fail", naming such keys, before a row is there twice; or the
            "last" row that is read is the one that counts (Spark keeps no order between files).
        create: create the table when there is none yet.
        rows_per_task: a task looks through fragments of about so many rows. (templated)

    Raises:
        AirflowFailException: two rows of the source with one key, a match where `when_matched` says "fail", or rows that do
            not fit the columns.
    """

    spec = "lance_core.jobs.specs.merge:MergeSpec"

    template_fields: Sequence[str] = (
        *LanceWriteOperator.template_fields,
        "on", "when_matched_condition", "when_not_matched_by_source_condition", "rows_per_task",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceWriteOperator.template_fields_renderers,
        "when_matched_condition": "sql", "when_not_matched_by_source_condition": "sql",
    }  # fmt: skip

    def __init__(
        self,
        *,
        on: str | Sequence[str],
        when_matched: Literal["update", "delete", "keep", "fail"] = "update",
        when_matched_condition: str | None = None,
        when_not_matched: Literal["insert", "keep"] = "insert",
        when_not_matched_by_source: Literal["keep", "delete"] = "keep",
        when_not_matched_by_source_condition: str | None = None,
        when_duplicate: Literal["fail", "last"] = "fail",
        create: bool = True,
        rows_per_task: int | str | None = None,
        **kwargs: Unpack[WriteArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.on = on
        self.when_matched = when_matched
        self.when_matched_condition = when_matched_condition
        self.when_not_matched = when_not_matched
        self.when_not_matched_by_source = when_not_matched_by_source
        self.when_not_matched_by_source_condition = when_not_matched_by_source_condition
        self.when_duplicate = when_duplicate
        self.create = create
        self.rows_per_task = rows_per_task
