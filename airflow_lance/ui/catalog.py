"""The tables that the pages show: those below the base uris of the deployment's `lance` connections and of its policy.

::

    find(source) -> [TableRef(id="3f9a1c0b22d94e01", uri="s3://lake/shop/orders.lance", name="shop/orders.lance", ...), ...]

A page is requested by a table's id, never by its uri: the API server opens nothing that nobody configured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_lance.compat import BaseHook
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.links import table_id
from lance_core.jobs.specs.secret import reveal_all

MAX_TABLES = 5000


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table that was found. `id` is the digest of connection and uri."""

    id: str
    uri: str
    name: str
    conn_id: str


@dataclass(frozen=True)
class Source:
    """A place below which tables are looked for, with what it takes to open it. `secrets` must not reach a browser."""

    conn_id: str
    base_uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def connection_ids(named: Sequence[str]) -> list[str]:
    """Return the connections to show: those that are named, else all of type `lance` in the metadata database and in the
    environment, and `lance_default` wherever it is defined."""
    if named:
        return list(named)
    found = {*_in_database(), *in_environment(os.environ)}
    default = LanceHook.default_conn_name
    if default not in found and _is_defined(default):
        found.add(default)
    return sorted(found)


def in_environment(environment: Mapping[str, str]) -> list[str]:
    """The connections of type `lance` that variables define, as JSON or as a uri.

    >>> in_environment({"AIRFLOW_CONN_LAKE": "lance://", "AIRFLOW_CONN_DB": "postgres://host", "LAKE": "lance://"})
    ['lake']
    """
    prefix = "AIRFLOW_CONN_"
    return [
        name.removeprefix(prefix).lower()
        for name, text in environment.items()
        if name.startswith(prefix) and _type_of(text) == LanceHook.conn_type
    ]


def _type_of(text: str) -> str:
    if not text.lstrip().startswith("{"):
        return text.partition(":")[0].strip()
    try:
        value = json.loads(text)
    except ValueError:
        return ""  # Airflow says what is wrong with it where it is used
    return str(value.get("conn_type", "")) if isinstance(value, dict) else ""


def _is_defined(conn_id: str) -> bool:
    """Whether a secrets backend or the environment has a connection of our type under a name."""
    try:
        return bool(BaseHook.get_connection(conn_id).conn_type == LanceHook.conn_type)
    except Exception:
        return False  # a backend that does not answer is named by the connections that are used


def _in_database() -> list[str]:
    from airflow.models import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(Connection.conn_id).where(Connection.conn_type == LanceHook.conn_type))
        return [str(name) for name in found]


def open_source(conn_id: str, base_uri: str = "") -> Source:
    """Return the source of a connection. AirflowNotFoundException, InputError."""
    hook = LanceHook(conn_id)
    settings = hook.settings
    options = reveal_all(dict(settings.storage_options))
    return Source(conn_id, base_uri or settings.base_uri, options, (*settings.secrets, *_secret_values(options)))


def _secret_values(options: Mapping[str, str]) -> list[str]:
    from lance_core.jobs.specs.plain_options import is_plain_option

    return [str(value) for name, value in options.items() if value and not is_plain_option(name, value)]


def find(source: Source) -> list[TableRef]:
    """Return the tables of a source, sorted by uri, at most `MAX_TABLES`. Raises StoreError, NotFoundError for a
    base uri that does not exist."""
    from lance_core.maintenance.find import check_base, find_tables

    if not source.base_uri:
        return []
    check_base(source.base_uri)
    found = find_tables(source.base_uri, conn_id=source.conn_id, storage_options=source.options)
    base = source.base_uri.rstrip("/")
    return [
        TableRef(table_id(source.conn_id, item.uri), item.uri, item.uri[len(base) :].strip("/") or item.uri, source.conn_id)
        for item in found[:MAX_TABLES]
    ]
