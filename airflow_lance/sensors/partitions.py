"""Waits for partitions: until a table has rows for every key of a range, or of a list.

::

    LancePartitionsSensor(task_id="month_is_whole", uri="flights.lance", column="day", start="2013-01-01", end="2013-01-31")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.execution.partitions import PartitionsTask, Step
from airflow_lance.sensors.base import LanceSensor, whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import PartitionsPresent


class LancePartitionsSensor(PartitionsTask, LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        column: the partition column. (templated)
        keys: the keys to wait for; or `start` and `end`. (templated)
        start: the first date or time of a range. (templated)
        end: the last one, included. (templated)
        step: "hour", "day" or "month".
        key_format: how dates and times become keys, in the codes of `strftime`; None is that of the step.
        min_rows: a partition with fewer rows is missing. (templated)

    Raises:
        InputError: neither keys nor both ends of a range, or an end that is no date and no time.
    """

    template_fields: Sequence[str] = (*LanceSensor.template_fields, "column", "keys", "start", "end", "min_rows")

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
        **kwargs: Unpack[SensorArguments],
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

    def make_condition(self) -> PartitionsPresent:
        """Return the condition that the sensor waits for: PartitionsPresent."""
        return self.partitions_present(min_rows=whole(self.min_rows, "min_rows"))
