"""The hook of the Lance provider, imported when its name is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.hooks.lance import LanceHook as LanceHook
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "LanceHook": "airflow_lance.hooks.lance",
        },
    )

__all__ = [
    "LanceHook",
]
