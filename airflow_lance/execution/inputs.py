"""Tables that a decorated function is called with, each opened at one version.

::

    inputs={"orders": "orders.lance", "prices": {"uri": "prices.lance", "version": "gold"}}
        -> orders   at the version of the asset event that triggered the run, else the newest
        -> prices   at the version of its tag
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_lance.compat import Context
from airflow_lance.connection import plain_uri
from airflow_lance.execution.arguments import whole
from airflow_lance.execution.triggering import TRIGGERING, find_triggering_version, pinned_version
from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import InputError

_KEYS = ("uri", "version", "lance_conn_id")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenInput:
    """A table as a function gets it."""

    table: Any
    """A `LanceDataset` of one version."""
    uri: str


def plain_inputs(inputs: Mapping[str, Any] | None, *, where: str) -> dict[str, dict[str, Any]]:
    """The descriptions as mappings. InputError for one that has no uri or an unknown key."""
    found = {}
    for name, given in (inputs or {}).items():
        item = dict(given) if isinstance(given, Mapping) else {"uri": given}
        unknown = sorted(set(item) - {*_KEYS})
        if unknown or not isinstance(item.get("uri"), (str, os.PathLike)) or not str(item["uri"]):
            problem = f"has the unknown key {unknown[0]!r}" if unknown else "has no uri"
            raise InputError(f"{where}: input {name!r} {problem}", cure=f"Pass a uri, or a mapping of {', '.join(_KEYS)}.")
        found[name] = {**item, "uri": plain_uri(item["uri"])}
    return found


def open_input(name: str, item: Mapping[str, Any], context: Context, *, lance_conn_id: str) -> OpenInput:
    """Open one at its version. NotFoundError for a table or a version that does not exist."""
    hook = LanceHook(item.get("lance_conn_id") or lance_conn_id)
    uri, version = hook.get_uri(item["uri"]), whole(item.get("version"))
    pinned = find_triggering_version(context, uri=uri) if version is None else pinned_version(version, context, uri=uri)
    table = hook.dataset(uri, version=pinned)
    log.info("Input %s: %s at version %d%s", name, uri, table.version, _why(version, pinned))
    return OpenInput(table, uri)


def _why(version: object, pinned: object) -> str:
    if version not in (None, TRIGGERING):
        return f", as requested ({version})"
    return ", the newest" if pinned is None else ", that of the event that triggered this run"
