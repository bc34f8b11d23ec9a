"""Set columns to new values in rows of a table: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceUpdateOperator(LanceStageOperator):
    """Stage an update. Arguments of `LanceStageOperator`, and

    Args:
        updates: column -> SQL expression over the row's old values. (templated)
        where: a SQL filter for the rows to change; all rows without one. (templated)
        predicate_params: values for `:name` in the filter and in the expressions, put in as literals, so that a template
            that fills one in cannot change either. (templated)
        rows_per_task: a task looks through fragments of about so many rows. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: a filter or an expression that cannot be read, or does not fit the columns.
    """

    spec = "lance_core.jobs.specs.edits:UpdateSpec"

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "updates",
        "where",
        "predicate_params",
        "rows_per_task",
        "properties",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "updates": "json", "where": "sql", "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        updates: Mapping[str, str],
        where: str | None = None,
        predicate_params: Mapping[str, Any] | None = None,
        rows_per_task: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.updates = dict(updates)
        self.where = where
        self.predicate_params = dict(predicate_params or {})
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields, with the values of `predicate_params` in the filter and in the expressions."""
        from lance_core.jobs.specs.bind import bind_all

        fields = super().spec_fields()
        if self.predicate_params:
            updates = bind_all({**self.updates, _WHERE: self.where or ""}, self.predicate_params)
            fields |= {"where": updates.pop(_WHERE) or None, "updates": updates}
        return fields


_WHERE = "\x00where"
"""Stands for the filter among the expressions; no column has such a name."""
