"""The version of a table that triggered a run: inputs stay those of the event, also in a retry a day later."""

from __future__ import annotations

from typing import Any

from airflow_lance.assets import asset_uri, event_facts
from airflow_lance.compat import Context
from lance_core.errors import InputError

TRIGGERING = "triggering"


def pinned_version(version: int | str | None, context: Context, *, uri: str) -> int | str | None:
    """The version itself, or for "triggering" the newest of the events that set off the run. InputError without one."""
    if version != TRIGGERING:
        return version
    found = find_triggering_version(context, uri=uri)
    if found is None:
        raise InputError(
            f'version="triggering", but no asset event of {uri} with a version triggered this run',
            cure="Schedule the DAG by the table's asset, or pass a version.",
        )
    return found


def find_triggering_version(context: Context, *, uri: str) -> int | None:
    """The newest version of the events that set off the run; None if no event of this table did."""
    events: Any = context.get("triggering_asset_events") or context.get("triggering_dataset_events") or {}
    found = [
        int(extra["version"])
        for asset, several in events.items()
        for extra in map(event_facts, several)
        if "version" in extra and _is_about(asset, extra, uri)
    ]
    return max(found, default=None)


def _is_about(asset: Any, extra: dict[str, Any], uri: str) -> bool:
    own = asset_uri(uri)
    return own in (getattr(asset, "uri", asset), asset_uri(str(extra.get("uri") or uri)))
