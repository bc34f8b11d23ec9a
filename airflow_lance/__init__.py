"""The Lance provider of Apache Airflow: hooks, operators, sensors and triggers over `lance_core`.

::

    from airflow_lance import LanceAppendOperator, LanceCommitOperator

Nothing here knows a table's rules; nothing but Airflow and the standard library is imported at parse time, and a class only
when its name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_lance.operators import OPERATORS
from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.assets import create_asset as create_asset
    from airflow_lance.hooks.lance import LanceHook as LanceHook
    from airflow_lance.operators import *  # noqa: F403
    from airflow_lance.pools import pool_of as pool_of
    from airflow_lance.sensors.base import LanceSensor as LanceSensor
    from airflow_lance.sensors.health import LanceFragmentHealthSensor as LanceFragmentHealthSensor
    from airflow_lance.sensors.index import LanceIndexCoverageSensor as LanceIndexCoverageSensor
    from airflow_lance.sensors.partitions import LancePartitionsSensor as LancePartitionsSensor
    from airflow_lance.sensors.rows import LanceRowsSensor as LanceRowsSensor
    from airflow_lance.sensors.staged import LanceStagedSensor as LanceStagedSensor
    from airflow_lance.sensors.tag import LanceTagSensor as LanceTagSensor
    from airflow_lance.sensors.version import LanceVersionSensor as LanceVersionSensor
    from airflow_lance.triggers.condition import LanceConditionTrigger as LanceConditionTrigger
    from airflow_lance.triggers.staging import LanceStagingTrigger as LanceStagingTrigger
    from airflow_lance.triggers.version import LanceVersionTrigger as LanceVersionTrigger
else:
    _HOMES = {
        **OPERATORS,
        "LanceConditionTrigger": "airflow_lance.triggers.condition",
        "LanceFragmentHealthSensor": "airflow_lance.sensors.health",
        "LanceHook": "airflow_lance.hooks.lance",
        "LanceIndexCoverageSensor": "airflow_lance.sensors.index",
        "LancePartitionsSensor": "airflow_lance.sensors.partitions",
        "LanceRowsSensor": "airflow_lance.sensors.rows",
        "LanceSensor": "airflow_lance.sensors.base",
        "LanceStagedSensor": "airflow_lance.sensors.staged",
        "LanceStagingTrigger": "airflow_lance.triggers.staging",
        "LanceTagSensor": "airflow_lance.sensors.tag",
        "LanceVersionSensor": "airflow_lance.sensors.version",
        "LanceVersionTrigger": "airflow_lance.triggers.version",
        "create_asset": "airflow_lance.assets",
        "pool_of": "airflow_lance.pools",
    }
    __getattr__, __dir__ = lazy_face(__name__, _HOMES)
    __all__ = sorted([*_HOMES, "__version__"])

__version__ = "0.1.0"
