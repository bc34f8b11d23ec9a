"""Read the state of a table for sensors and triggers; a table that does not exist yet is a state, not an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import NotFoundError

if TYPE_CHECKING:
    from lance_core.conditions import Condition, TableFacts


def look(
    uri: str, *, condition: Condition, lance_conn_id: str, storage_options: Mapping[str, Any] | None = None
) -> TableFacts:
    """The facts that a condition asks for, of the table named as in an operator."""
    from lance_core.jobs import api

    hook = LanceHook(lance_conn_id)
    try:
        place = hook.get_uri(uri)
    except NotFoundError:
        from lance_core.conditions import TableFacts

        return TableFacts(uri=uri, exists=False)
    return api.look(place, condition=condition, options={**hook.storage_options(uri), **(storage_options or {})})
