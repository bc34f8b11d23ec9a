"""Rename columns, change their type or whether they may be null: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceAlterColumnsOperator(LanceImmediateOperator):
    """Alter columns; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    Args:
        alterations: for each column `{"path": ...}` with some of `"name"`, `"data_type"` (as in Spark DDL), `"nullable"`.
            (templated)

    Raises:
        AirflowFailException: no such column, or a type that its values do not fit.
    """

    spec = "lance_core.jobs.specs.definition:AlterColumnsSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "alterations")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "alterations": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        alterations: Sequence[Mapping[str, Any]],
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.alterations = list(alterations)
