"""Waits for a version of a table in the triggerer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_lance.triggers.condition import LanceConditionTrigger
from lance_core.watch import VersionAtLeast


class LanceVersionTrigger(LanceConditionTrigger):
    """Fires when the table has reached `min_version`; other arguments as `LanceConditionTrigger`."""

    def __init__(
        self, *, uri: str, min_version: int | None = None, condition: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        # Airflow re-makes a trigger from what `serialize` gave, which holds the condition.
        wanted = condition if condition is not None else VersionAtLeast(version=min_version or 1).to_dict()
        super().__init__(uri=uri, condition=wanted, **kwargs)
