"""Remove a table with all its versions: takes effect at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.compat import Context
    from airflow_lance.signatures import ImmediateArguments


class LanceDropTableOperator(LanceImmediateOperator):
    """Remove a table, with its history, staged work and ledger. Arguments of `LanceImmediateOperator`, and

    Args:
        if_missing: what to do when there is no table.

    Raises:
        AirflowFailException: no such table, where `if_missing` does not allow that.
    """

    spec = "lance_core.jobs.specs.definition:DropTableSpec"

    def __init__(
        self,
        *,
        if_missing: Literal["skip", "fail"] = "skip",
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.if_missing = if_missing

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove the table, and its name where a catalog has it."""
        with as_airflow_errors(self.uri):
            if not self.lance_hook.is_named(self.uri):
                return super().execute(context)
            if self.if_missing == "skip" and not self.lance_hook.has_name(self.uri):
                self.log.info("The catalog has no table %s.", self.uri)
                return {"kind": "drop_table", "dropped": False}
        done = super().execute(context)
        with as_airflow_errors(self.uri):
            self.lance_hook.named_tables.forget(self.uri)
        return done
