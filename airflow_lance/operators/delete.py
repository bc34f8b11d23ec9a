"""Delete rows of a table: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceDeleteOperator(LanceStageOperator):
    """Stage a delete. Arguments of `LanceStageOperator`, and

    :param predicate: a SQL filter; rows that it selects go (null does not select). (templated)
    :param predicate_params: values for `:name` in the predicate, put in as literals, so that a template that fills one in
        cannot change the filter. (templated)
    :param rows_per_task: a task looks through fragments of about so many rows. (templated)
    :param properties: text that is kept in the transaction. (templated)
    """

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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.predicate = predicate
        self.predicate_params = dict(predicate_params or {})
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A DeleteSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.bind import bind
        from lance_core.jobs.specs.edits import DeleteSpec
        from lance_core.jobs.specs.spec import read_spec

        predicate = bind(self.predicate, self.predicate_params) if self.predicate_params else self.predicate
        fields = given(predicate=predicate, rows_per_task=whole(self.rows_per_task), properties=self.properties)
        return read_spec(DeleteSpec, {"uri": uri, "identity": identity, **fields})
