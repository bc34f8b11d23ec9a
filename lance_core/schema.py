"""Schemas as JSON data, by the official library's names (`lance.schema`).

::

    schema_to_json(dataset.schema)["fields"][0]["name"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.arrow.schema_json import json_to_schema as json_to_schema
    from lance_core.arrow.schema_json import schema_to_json as schema_to_json
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "json_to_schema": "lance_core.arrow.schema_json",
            "schema_to_json": "lance_core.arrow.schema_json",
        },
    )

__all__ = [
    "json_to_schema",
    "schema_to_json",
]
