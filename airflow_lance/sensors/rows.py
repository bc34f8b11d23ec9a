"""Waits for rows: all of a table's, or those that match a filter.

::

    LanceRowsSensor(task_id="enough", uri="flights.lance", min_rows=1000, filter="month = {{ logical_date.month }}")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor, whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceRowsSensor(LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        min_rows: until there are at least so many. (templated)
        filter: a SQL filter; only rows that match it count. (templated)

    Raises:
        AirflowFailException: a filter that cannot be read, or does not fit the columns.
    """

    template_fields: Sequence[str] = (*LanceSensor.template_fields, "min_rows", "filter")

    def __init__(self, *, min_rows: int | str = 1, filter: str | None = None, **kwargs: Unpack[SensorArguments]) -> None:
        super().__init__(**kwargs)
        self.min_rows = min_rows
        self.filter = filter

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: RowsAtLeast."""
        from lance_core.conditions import RowsAtLeast

        return RowsAtLeast(rows=whole(self.min_rows, "min_rows"), predicate=self.filter)
