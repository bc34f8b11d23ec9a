"""The only door to Airflow's names, which moved between 2.11 and 3.3: Airflow's own `common.compat` provider knows where.

::

    from airflow_lance.compat import BaseOperator, AirflowFailException

No other module of this package imports `airflow` names that differ between the versions, or looks at `airflow.__version__`.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    Asset,
    BaseHook,
    BaseOperator,
    BaseOperatorLink,
    BaseSensorOperator,
    DecoratedOperator,
    TaskGroup,
    determine_kwargs,
    task_decorator_factory,
)
from airflow.triggers.base import BaseTrigger, TriggerEvent

try:
    from airflow.triggers.base import BaseEventTrigger
except ImportError:  # pragma: no cover - Airflow 2.11 has no asset watchers
    BaseEventTrigger = BaseTrigger  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from airflow.sdk import Context
else:
    Context = Any

_MASKS = ("airflow.sdk.log", "airflow.sdk.execution_time.secrets_masker", "airflow.utils.log.secrets_masker")
"""Where `mask_secret` is, newest Airflow first; older releases of `common.compat` do not know it."""


def mask_secret(secret: object, name: str | None = None) -> None:
    """Tell Airflow's log masking about a value that must not appear in any log of this task."""
    for module in _MASKS:
        with suppress(ImportError, AttributeError):
            mask = import_module(module).mask_secret
            break
    else:  # pragma: no cover - no supported Airflow is without
        raise ImportError(f"no mask_secret in any of {', '.join(_MASKS)}")
    mask(secret, name)


def count(name: str, value: int) -> None:
    """Add to a counter of the deployment's metrics."""
    _stats().incr(name, value)


def record_seconds(name: str, seconds: float) -> None:
    """Add a timing to the deployment's metrics."""
    _stats().timing(name, seconds * 1000.0)


def _stats() -> Any:
    # Airflow 3.3 has a module for tasks; before it, one class serves everybody.
    with suppress(ImportError):
        module = import_module("airflow.sdk.observability.stats")
        return module if hasattr(module, "incr") else module.Stats
    return import_module("airflow.stats").Stats


def deferrable_by_default() -> bool:
    """The deployment's `[operators] default_deferrable`."""
    return bool(_conf().getboolean("operators", "default_deferrable", fallback=False))


def configured(name: str) -> str:
    """An option of the deployment's section `[lance]`; empty when it is not set."""
    return str(_conf().get("lance", name, fallback="") or "")


def states_of_instances(ti: Any, task_id: str) -> dict[int, str | None]:
    """The states of a mapped task's instances in the run of `ti`, by map index; empty where Airflow does not say."""
    if hasattr(ti, "get_task_states"):
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id]).get(ti.run_id) or {}
        begin = f"{task_id}_"
        found = {name.removeprefix(begin): state for name, state in states.items() if name.startswith(begin)}
        return {int(index): state for index, state in found.items() if index.isdecimal()}
    if hasattr(ti, "get_dagrun"):  # Airflow 2.11, whose tasks have the database
        instances = ti.get_dagrun().get_task_instances()
        return {item.map_index: item.state for item in instances if item.task_id == task_id and item.map_index >= 0}
    return {}


def api_base_url() -> str:
    """The address of the API server: `[api] base_url`; empty if not configured."""
    return str(_conf().get("api", "base_url", fallback="") or "")


def _conf() -> Any:
    return import_module("airflow.providers.common.compat.sdk").conf


__all__ = [
    "DAG",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
    "Asset",
    "BaseEventTrigger",
    "BaseHook",
    "BaseOperator",
    "BaseOperatorLink",
    "BaseSensorOperator",
    "BaseTrigger",
    "Context",
    "DecoratedOperator",
    "TaskGroup",
    "TriggerEvent",
    "api_base_url",
    "configured",
    "count",
    "deferrable_by_default",
    "determine_kwargs",
    "mask_secret",
    "record_seconds",
    "states_of_instances",
    "task_decorator_factory",
]
