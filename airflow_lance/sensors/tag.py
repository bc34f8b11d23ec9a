"""Waits for a tag, for example one that marks a version as ready for use.

::

    LanceTagSensor(task_id="released", uri="flights.lance", tag="production", min_version=12)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor, whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceTagSensor(LanceSensor):
    """Arguments of `LanceSensor`, and

    Args:
        tag: the tag's name. (templated)
        min_version: the tag must point at this version or a newer one. (templated)

    Raises:
        InputError: a version that is no whole number.
    """

    template_fields: Sequence[str] = (*LanceSensor.template_fields, "tag", "min_version")

    def __init__(self, *, tag: str, min_version: int | str | None = None, **kwargs: Unpack[SensorArguments]) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.min_version = min_version

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: TagReached."""
        from lance_core.conditions import TagReached

        version = None if self.min_version is None else whole(self.min_version, "min_version")
        return TagReached(tag=self.tag, version=version)
