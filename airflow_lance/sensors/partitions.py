"""Waits for partitions: until a table has rows for every key of a range, or of a list.

::

    LancePartitionsSensor(task_id="month_is_whole", uri="flights.lance", column="day", start="2013-01-01", end="2013-01-31")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.execution.partitions import Step
from airflow_lance.sensors.base import LanceSensor, whole
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import PartitionsPresent


class LancePartitionsSensor(LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        column: the partition column. (templated)
        keys: the keys to wait for; or `start` and `end`. (templated)
        start: the first date or time of a range. (templated)
        end: the last one, included. (templated)
        step: "hour", "day" or "month".
        key_format: how dates and times become keys, in the codes of `strftime`; None is that of the step.
        min_rows: a partition with fewer rows is missing. (templated)
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
        check_range(keys=keys, start=start, end=end, step=step, where=self.task_id)
        self.column = column
        self.keys = keys
        self.start = start
        self.end = end
        self.step = step
        self.key_format = key_format
        self.min_rows = min_rows

    def make_condition(self) -> PartitionsPresent:
        """Return the condition that the sensor waits for: PartitionsPresent."""
        return partitions_present(self, min_rows=whole(self.min_rows, "min_rows"))


def check_range(*, keys: object, start: object, end: object, step: str, where: str) -> None:
    """InputError unless there are either keys or both ends of a range."""
    if (keys is None) == (start is None) or (start is None) != (end is None):
        raise InputError(f"{where}: either keys, or start and end are required")
    if step not in ("hour", "day", "month"):
        raise InputError(f"{where}: step must be one of hour, day, month, got {step!r}")


def partitions_present(task: Any, *, min_rows: int) -> PartitionsPresent:
    """The condition of a task that has column, keys, start, end, step and key_format."""
    from airflow_lance.execution.partitions import FORMATS, keys_of_range, plain_keys
    from lance_core.conditions import PartitionsPresent

    if task.keys is not None:
        keys = plain_keys(task.keys)
    else:
        keys = keys_of_range(task.start, task.end, step=task.step, key_format=task.key_format)
    shown = task.key_format or (FORMATS[task.step] if task.keys is None else None)
    return PartitionsPresent(column=task.column, keys=tuple(keys), key_format=shown, rows=min_rows)
