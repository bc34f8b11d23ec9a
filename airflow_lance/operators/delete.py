"""Delete rows of a table: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceDeleteOperator(LanceStageOperator):
    """Stage a delete. Arguments of `LanceStageOperator`, and

    Args:
        predicate: a SQL filter; rows that it selects go (null does not select). (templated)
        predicate_params: values for `:name` in the predicate, put in as literals, so that a template that fills one in
            cannot change the filter. (templated)
        rows_per_task: a task looks through fragments of about so many rows. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: a filter that cannot be read, or does not fit the columns.
    """

    spec = "lance_core.jobs.specs.edits:DeleteSpec"

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "predicate",
        "predicate_params",
        "rows_per_task",
        "properties",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "predicate": "sql", "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        predicate: str,
        predicate_params: Mapping[str, Any] | None = None,
        rows_per_task: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.predicate_params = dict(predicate_params or {})
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields, with the values of `predicate_params` in the filter."""
        from lance_core.jobs.specs.bind import bind

        fields = super().spec_fields()
        if self.predicate_params:
            fields["predicate"] = bind(self.predicate, self.predicate_params)
        return fields
