"""Add rows to a table: staged now, published by the commit task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import WriteArguments


class LanceAppendOperator(LanceWriteOperator):
    """Stage an append. Arguments of `LanceWriteOperator`, and

    Args:
        create: create the table with the first append that is committed, if there is none yet.

    Raises:
        AirflowFailException: no such table and not `create`, or rows that do not fit its columns.
    """

    spec = "lance_core.jobs.specs.spec:AppendSpec"

    def __init__(self, *, create: bool = True, **kwargs: Unpack[WriteArguments]) -> None:
        super().__init__(**kwargs)
        self.create = create
