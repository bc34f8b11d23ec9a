"""Waits for a version of a table.

::

    LanceVersionSensor(task_id="wait", uri="flights.lance", min_version=12)
    LanceVersionSensor(task_id="wait", uri="flights.lance", changed_since="{{ ti.xcom_pull(task_ids='seen')['version'] }}")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.sensors.base import LanceSensor, whole
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SensorArguments
    from lance_core.conditions import Condition


class LanceVersionSensor(LanceSensor):
    """Arguments of `LanceSensor`, and one of these; without one it waits until the table exists.

    Args:
        min_version: until the table's version is at least this. (templated)
        changed_since: until the table's version is another than this. (templated)

    Raises:
        InputError: both `min_version` and `changed_since`, or a version that is no whole number.
    """

    template_fields: Sequence[str] = (*LanceSensor.template_fields, "min_version", "changed_since")

    def __init__(
        self,
        *,
        min_version: int | str | None = None,
        changed_since: int | str | None = None,
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        if min_version is not None and changed_since is not None:
            raise InputError(f"{self.task_id}: min_version cannot be combined with changed_since")
        self.min_version = min_version
        self.changed_since = changed_since

    def make_condition(self) -> Condition:
        """Return the condition that the sensor waits for: VersionAtLeast or VersionChangedSince."""
        from lance_core.conditions import VersionAtLeast, VersionChangedSince

        if self.changed_since is not None:
            return VersionChangedSince(version=whole(self.changed_since, "changed_since"))
        return VersionAtLeast(version=1 if self.min_version is None else whole(self.min_version, "min_version"))
