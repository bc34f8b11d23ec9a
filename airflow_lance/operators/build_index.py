"""Build an index on a column: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceBuildIndexOperator(LanceStageOperator):
    """Stage an index. Arguments of `LanceStageOperator`, and

    :param column: the column to index. (templated)
    :param index_type: "BTREE", "BITMAP", "ZONEMAP", ... (templated)
    :param index_name: the index's name; None is `{column}_idx`. (templated)
    :param replace: replace an index of that name, else one that is there is an error.
    :param parameters: what that kind of index takes. (templated)
    :param rows_per_segment: one segment, and one task, for fragments with about so many rows; None makes one segment of
        all. (templated)
    :param properties: text that is kept in the transaction. (templated)
    """

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "column", "index_type", "index_name", "parameters", "rows_per_segment", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "parameters": "json", "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        column: str,
        index_type: str,
        index_name: str | None = None,
        replace: bool = True,
        parameters: Mapping[str, Any] | None = None,
        rows_per_segment: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.column = column
        self.index_type = index_type
        self.index_name = index_name
        self.replace = replace
        self.parameters = dict(parameters or {})
        self.rows_per_segment = rows_per_segment
        self.properties = dict(properties or {})

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A BuildIndexSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.indices import BuildIndexSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            column=self.column,
            index_type=self.index_type,
            name=self.index_name,
            replace=self.replace,
            parameters=self.parameters,
            rows_per_segment=whole(self.rows_per_segment),
            properties=self.properties,
        )
        return read_spec(BuildIndexSpec, {"uri": uri, "identity": identity, **fields})
