"""Waits until an index covers a table.

::

    LanceIndexCoverageSensor(task_id="indexed", uri="flights.lance", index="carrier_idx", min_ratio=0.95)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceIndexCoverageSensor(LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        index: the index's name. (templated)
        min_ratio: the share of fragments that it must cover, 0 to 1.

    Raises:
        AirflowFailException: an error that waiting cannot fix.
    """

    template_fields: Sequence[str] = (*LanceSensor.template_fields, "index")

    def __init__(self, *, index: str, min_ratio: float = 1.0, **kwargs: Unpack[SensorArguments]) -> None:
        super().__init__(**kwargs)
        self.index = index
        self.min_ratio = min_ratio

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: IndexCovers."""
        from lance_core.conditions import IndexCovers

        return IndexCovers(index=self.index, ratio=self.min_ratio)
