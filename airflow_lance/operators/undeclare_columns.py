"""Take declarations of columns back: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceUndeclareColumnsOperator(LanceImmediateOperator):
    """Take declarations back; the columns keep their values. Arguments of `LanceImmediateOperator`, and

    Args:
        columns: declared columns; others are named in the log and left alone. (templated)

    Raises:
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.columns:UndeclareColumnsSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "columns")

    def __init__(self, *, columns: Sequence[str], **kwargs: Unpack[ImmediateArguments]) -> None:
        super().__init__(**kwargs)
        self.columns = columns
