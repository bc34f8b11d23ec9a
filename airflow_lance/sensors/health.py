"""Waits until a table needs maintenance: too many fragments, too many small ones, too many deleted rows.

::

    LanceFragmentHealthSensor(task_id="needs_work", uri="flights.lance", max_small_fragments=50, max_deleted_ratio=0.1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceFragmentHealthSensor(LanceSensor):
    """Arguments of `LanceSensor`, and at least one bound; it is done when one of them is exceeded.

    Args:
        max_fragments: fragments in all.
        max_small_fragments: fragments of fewer than 1,024 rows.
        max_deleted_ratio: deleted rows as a share of the physical rows, 0 to 1.

    Raises:
        InputError: no bound is given.
    """

    def __init__(
        self,
        *,
        max_fragments: int | None = None,
        max_small_fragments: int | None = None,
        max_deleted_ratio: float | None = None,
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        if max_fragments is None and max_small_fragments is None and max_deleted_ratio is None:
            raise InputError(f"{self.task_id}: max_fragments, max_small_fragments or max_deleted_ratio is required")
        self.max_fragments = max_fragments
        self.max_small_fragments = max_small_fragments
        self.max_deleted_ratio = max_deleted_ratio

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: NeedsMaintenance."""
        from lance_core.conditions import NeedsMaintenance

        return NeedsMaintenance(
            max_fragments=self.max_fragments,
            max_small_fragments=self.max_small_fragments,
            max_deleted_ratio=self.max_deleted_ratio,
        )
