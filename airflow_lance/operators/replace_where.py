"""Replace the rows that a filter selects by those of a source, in one commit: the backfill of a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import WriteArguments


class LanceReplaceWhereOperator(LanceWriteOperator):
    """Stage a replacement. Running it again any number of times leaves the same rows, and no reader sees a gap.

    Arguments of `LanceWriteOperator`, and

    Args:
        predicate: a SQL filter: rows of the table that it selects go; every row of the source must satisfy it, else the
            task fails before anything is staged. (templated)
        predicate_params: values for `:name` in the predicate, put in as literals, so that a template that fills one in
            cannot change the filter. (templated)
        create: create the table when there is none yet.
        allow_empty: a source without rows removes those that the filter selects; by default it is an error, and they
            stay.
        rows_per_task: a task looks through fragments of about so many rows for what must go. (templated)

    Raises:
        AirflowFailException: a row of the source that the filter does not select, or none and not `allow_empty`; nothing is
            staged then.
    """

    spec = "lance_core.jobs.specs.edits:ReplaceWhereSpec"

    template_fields: Sequence[str] = (
        *LanceWriteOperator.template_fields,
        "predicate",
        "predicate_params",
        "rows_per_task",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceWriteOperator.template_fields_renderers, "predicate": "sql",
    }  # fmt: skip

    def __init__(
        self,
        *,
        predicate: str,
        predicate_params: Mapping[str, Any] | None = None,
        create: bool = True,
        rows_per_task: int | str | None = None,
        allow_empty: bool = False,
        **kwargs: Unpack[WriteArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.predicate_params = dict(predicate_params or {})
        self.create = create
        self.rows_per_task = rows_per_task
        self.allow_empty = allow_empty

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields, with the values of `predicate_params` in the filter."""
        from lance_core.jobs.specs.bind import bind

        fields = super().spec_fields()
        if self.predicate_params:
            fields["predicate"] = bind(self.predicate, self.predicate_params)
        return fields
