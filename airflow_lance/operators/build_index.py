"""Build an index on a column: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceBuildIndexOperator(LanceStageOperator):
    """Stage an index. Arguments of `LanceStageOperator`, and

    Args:
        column: the column to index. (templated)
        index_type: "BTREE", "BITMAP", "ZONEMAP", ... (templated)
        index_name: the index's name; None is `{column}_idx`. (templated)
        replace: replace an index of that name, else one that is there is an error.
        parameters: what that kind of index takes. (templated)
        rows_per_segment: one segment, and one task, for fragments with about so many rows; None makes one segment of
            all. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: no such column, an index of that name and not `replace`, or parameters that its kind does not
            take.
    """

    spec = "lance_core.jobs.specs.indices:BuildIndexSpec"
    renamed: ClassVar[Mapping[str, str]] = {"name": "index_name"}

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
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.column = column
        self.index_type = index_type
        self.index_name = index_name
        self.replace = replace
        self.parameters = dict(parameters or {})
        self.rows_per_segment = rows_per_segment
        self.properties = dict(properties or {})
