"""Sensors of the Lance provider; a class is imported when its name is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.sensors.base import LanceSensor as LanceSensor
    from airflow_lance.sensors.health import LanceFragmentHealthSensor as LanceFragmentHealthSensor
    from airflow_lance.sensors.index import LanceIndexCoverageSensor as LanceIndexCoverageSensor
    from airflow_lance.sensors.partitions import LancePartitionsSensor as LancePartitionsSensor
    from airflow_lance.sensors.rows import LanceRowsSensor as LanceRowsSensor
    from airflow_lance.sensors.staged import LanceStagedSensor as LanceStagedSensor
    from airflow_lance.sensors.tag import LanceTagSensor as LanceTagSensor
    from airflow_lance.sensors.version import LanceVersionSensor as LanceVersionSensor
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "LanceFragmentHealthSensor": "airflow_lance.sensors.health",
            "LanceIndexCoverageSensor": "airflow_lance.sensors.index",
            "LancePartitionsSensor": "airflow_lance.sensors.partitions",
            "LanceRowsSensor": "airflow_lance.sensors.rows",
            "LanceSensor": "airflow_lance.sensors.base",
            "LanceStagedSensor": "airflow_lance.sensors.staged",
            "LanceTagSensor": "airflow_lance.sensors.tag",
            "LanceVersionSensor": "airflow_lance.sensors.version",
        },
    )

__all__ = [
    "LanceFragmentHealthSensor",
    "LanceIndexCoverageSensor",
    "LancePartitionsSensor",
    "LanceRowsSensor",
    "LanceSensor",
    "LanceStagedSensor",
    "LanceTagSensor",
    "LanceVersionSensor",
]
