"""Rename a column of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceRenameColumnOperator(LanceImmediateOperator):
    """Rename a column, or a field of a struct; twice is the same as once, and no data file is written. Arguments of
    `LanceImmediateOperator`, and

    Args:
        column: the name now, dotted for a field of a struct. (templated)
        new_name: the name afterwards, without the path before it. (templated)

    Raises:
        AirflowFailException: no such column, or one that has the new name.
    """

    spec = "lance_core.jobs.specs.definition:AlterColumnsSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "column", "new_name")

    def __init__(self, *, column: str, new_name: str, **kwargs: Unpack[ImmediateArguments]) -> None:
        super().__init__(**kwargs)
        self.column = column
        self.new_name = new_name

    def spec_fields(self) -> dict[str, Any]:
        """The one alteration that it is."""
        return {"alterations": [{"path": self.column, "name": self.new_name}]}
