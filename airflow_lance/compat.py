"""The only question about the Airflow version: names that moved between 2.11 and 3.x, asked once, here.

::

    from airflow_lance.compat import BaseOperator, AirflowFailException

No other file of this package imports `airflow` names that differ between the versions, or looks at `airflow.__version__`.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow import __version__ as _airflow_version
from airflow.triggers.base import BaseTrigger, TriggerEvent

try:
    from airflow.triggers.base import BaseEventTrigger
except ImportError:  # pragma: no cover - Airflow 2.11 has no asset watchers
    BaseEventTrigger = BaseTrigger  # type: ignore[assignment, misc]

AIRFLOW_3: bool = int(_airflow_version.split(".", 1)[0]) >= 3

if TYPE_CHECKING or AIRFLOW_3:
    from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, TaskGroup
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
else:  # pragma: no cover - Airflow 2.11
    from airflow.datasets import Dataset as Asset
    from airflow.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
    from airflow.hooks.base import BaseHook
    from airflow.models.baseoperator import BaseOperator
    from airflow.models.dag import DAG
    from airflow.sensors.base import BaseSensorOperator
    from airflow.utils.task_group import TaskGroup

if TYPE_CHECKING:
    from airflow.sdk import Context
else:
    Context = Any


def mask_secret(secret: object, name: str | None = None) -> None:
    """Tell Airflow's log masking about a value that must not appear in any log of this task."""
    module = import_module("airflow.sdk.log" if AIRFLOW_3 else "airflow.utils.log.secrets_masker")
    module.mask_secret(secret, name)


def count(name: str, value: int) -> None:
    """Add to a counter of the deployment's metrics."""
    _stats().incr(name, value)


def record_seconds(name: str, seconds: float) -> None:
    """Add a timing to the deployment's metrics."""
    _stats().timing(name, seconds * 1000.0)


def _stats() -> Any:
    # Airflow 3.3 has a module for tasks; before it, one class serves everybody.
    with suppress(ImportError):
        return import_module("airflow.sdk.observability.stats")
    return import_module("airflow.stats").Stats


def deferrable_by_default() -> bool:
    """The deployment's `[operators] default_deferrable`."""
    return bool(_conf().getboolean("operators", "default_deferrable", fallback=False))


def configured(name: str) -> str:
    """An option of the deployment's section `[lance]`; empty when it is not set."""
    return str(_conf().get("lance", name, fallback="") or "")


def _conf() -> Any:
    return import_module("airflow.sdk.configuration" if AIRFLOW_3 else "airflow.configuration").conf


__all__ = [
    "AIRFLOW_3",
    "DAG",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "Asset",
    "BaseEventTrigger",
    "BaseHook",
    "BaseOperator",
    "BaseSensorOperator",
    "BaseTrigger",
    "Context",
    "TaskGroup",
    "TriggerEvent",
    "configured",
    "count",
    "deferrable_by_default",
    "mask_secret",
    "record_seconds",
]
