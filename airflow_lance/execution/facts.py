"""Read the state of a table for sensors and triggers; a table that does not exist yet is a state, not an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import NotFoundError

if TYPE_CHECKING:
    from lance_core.conditions import Condition, TableFacts


CHECK_SECONDS = 110.0
"""A check in a process of its own is ended before the trigger that waits for it gives up."""


def look(
    uri: str,
    *,
    condition: Condition,
    lance_conn_id: str,
    storage_options: Mapping[str, Any] | None = None,
    isolated: bool = False,
) -> TableFacts:
    """The facts that a condition asks for, of the table named as in an operator.

    Args:
        isolated: read rows in a process of its own, where many wait in this one; what a manifest says is read here.
    """
    from lance_core.jobs import api

    hook = LanceHook(lance_conn_id)
    try:
        place = hook.get_uri(uri)
    except NotFoundError:
        from lance_core.conditions import TableFacts

        return TableFacts(uri=uri, exists=False)
    options = {**hook.storage_options(uri), **(storage_options or {})}
    if not (isolated and (condition.predicates or condition.counted)):
        return api.look(place, condition=condition, options=options)
    return _look_isolated(place, condition, api.revealed(options))


def _look_isolated(place: str, condition: Condition, options: Mapping[str, str]) -> TableFacts:
    from lance_core.conditions import TableFacts
    from lance_core.maintenance.isolated import shared_checks

    asked = {"uri": place, "condition": condition.to_dict(), "options": dict(options)}
    return TableFacts.from_dict(shared_checks().run(place, "facts", asked, seconds=CHECK_SECONDS))
