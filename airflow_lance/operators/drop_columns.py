"""Drop columns of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceDropColumnsOperator(LanceImmediateOperator):
    """Drop columns, or fields of structs; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    Args:
        columns: names, dotted for fields of structs. (templated)

    Raises:
        AirflowFailException: a column that others are computed from, or the last one of the table.
    """

    spec = "lance_core.jobs.specs.definition:DropColumnsSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "columns")

    def __init__(
        self,
        *,
        columns: Sequence[str],
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.columns = list(columns)
