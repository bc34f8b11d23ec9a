"""Return the partitions of a range that a table does not have, so that a backfill can be mapped over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.compat import Context
from airflow_lance.execution.arguments import whole
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.execution.facts import look
from airflow_lance.execution.partitions import PartitionsTask, Step
from airflow_lance.operators.table import LanceTableOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import TableArguments


class LanceMissingPartitionsOperator(PartitionsTask, LanceTableOperator):
    """The result is the list of missing keys, in order; nothing is changed. A table that does not exist has none of them.

    Arguments of `LanceTableOperator`, and

    Args:
        column: the partition column. (templated)
        keys: the keys to look for; or `start` and `end`. (templated)
        start: the first date or time of a range. (templated)
        end: the last one, included. (templated)
        step: "hour", "day" or "month".
        key_format: how dates and times become keys, in the codes of `strftime`; None is that of the step.
        min_rows: a partition with fewer rows is missing. (templated)
        max_keys: return at most so many keys, the first ones; the log says how many more are missing. The default is
            below Airflow's own limit for mapped tasks (`[core] max_map_length`).

    Raises:
        InputError: neither keys nor both ends of a range, or an end that is no date and no time.
    """

    template_fields: Sequence[str] = (
        *LanceTableOperator.template_fields, "column", "keys", "start", "end", "min_rows",
    )  # fmt: skip

    def __init__(
        self,
        *,
        column: str,
        keys: Sequence[str] | str | None = None,
        start: str | None = None,
        end: str | None = None,
        step: Step = "day",
        key_format: str | None = None,
        min_rows: int | str = 1,
        max_keys: int = 1000,
        **kwargs: Unpack[TableArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.look_for(
            column=column,
            keys=keys,
            start=start,
            end=end,
            step=step,
            key_format=key_format,
            min_rows=min_rows,
            where=self.task_id,
        )
        self.max_keys = max_keys

    def execute(self, context: Context) -> list[str]:
        """Look once; return the missing keys in the order of the range."""
        with as_airflow_errors(self.uri):
            condition = self.partitions_present(min_rows=whole(self.min_rows))
            facts = look(
                self.uri, condition=condition, lance_conn_id=self.lance_conn_id, storage_options=self.storage_options
            )
        self.log.info("%s: %s", facts.uri, condition.explain(facts))
        missing = condition.missing(facts)
        if len(missing) > self.max_keys:
            more = len(missing) - self.max_keys
            self.log.warning("The result has the first %d missing keys (max_keys); %d more are missing", self.max_keys, more)
        return missing[: self.max_keys]
