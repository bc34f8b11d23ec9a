"""Waits until all staged transactions of a table have been committed or aborted.

::

    LanceStagedSensor(task_id="all_published", uri="flights.lance")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceStagedSensor(LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        at_most: so many staged transactions and running attempts may be left.

    Raises:
        AirflowFailException: an error that waiting cannot fix.
    """

    def __init__(self, *, at_most: int = 0, **kwargs: Unpack[SensorArguments]) -> None:
        super().__init__(**kwargs)
        self.at_most = at_most

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: StagedAtMost."""
        from lance_core.conditions import StagedAtMost

        return StagedAtMost(at_most=self.at_most)
