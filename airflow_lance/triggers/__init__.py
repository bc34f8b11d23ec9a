"""Triggers of the Lance provider; a class is imported when its name is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.triggers.condition import LanceConditionTrigger as LanceConditionTrigger
    from airflow_lance.triggers.staging import LanceStagingTrigger as LanceStagingTrigger
    from airflow_lance.triggers.version import LanceVersionTrigger as LanceVersionTrigger
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "LanceConditionTrigger": "airflow_lance.triggers.condition",
            "LanceStagingTrigger": "airflow_lance.triggers.staging",
            "LanceVersionTrigger": "airflow_lance.triggers.version",
        },
    )

__all__ = [
    "LanceConditionTrigger",
    "LanceStagingTrigger",
    "LanceVersionTrigger",
]
