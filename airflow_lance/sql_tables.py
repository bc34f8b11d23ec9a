"""The tables of a SQL statement, by their names in it.

::

    {"orders": "orders.lance"}                                        a table, by uri or name
    {"users": {"uri": "users.lance", "version": 4, "branch": "eu"}}   at a version, a tag or "triggering"; of a branch
    {"raw": {"format": "csv", "paths": ["/raw/a.csv"]}}               any source of a write operator
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_lance.connection import is_object_path, path_text
from lance_core.errors import InputError

_KEYS = frozenset({"uri", "version", "branch", "lance_conn_id"})


@dataclass(frozen=True)
class SqlTable:
    """A Lance table with its version, or another source (`other`), which has no uri. `name`: the uri as it was given."""

    uri: str = ""
    version: int | str | None = None
    branch: str | None = None
    lance_conn_id: str | None = None
    other: Mapping[str, Any] | None = None
    name: str = ""

    def at(self, uri: str, *, version: int | str | None) -> SqlTable:
        """The same with a full uri and a version that is known."""
        return replace(self, uri=uri, version=version, name=self.uri)

    @property
    def source(self) -> Mapping[str, Any]:
        """As a source of a job spec."""
        from lance_core.jobs.specs.sql import lance_source

        return self.other if self.other is not None else lance_source(self.uri, version=self.version, branch=self.branch)


def read_tables(tables: Mapping[str, Any]) -> dict[str, SqlTable]:
    """The tables. InputError for one that is neither a table nor a source."""
    return {str(name): _read(str(name), table) for name, table in tables.items()}


def _read(name: str, table: Any) -> SqlTable:
    if isinstance(table, (str, os.PathLike)) or is_object_path(table):
        return SqlTable(path_text(table))
    if not isinstance(table, Mapping):
        raise InputError(f"tables[{name!r}]: expected a uri, or a mapping with `uri`, got {type(table).__name__}")
    if "uri" not in table:
        return SqlTable(other=dict(table))
    unknown = sorted({*table} - _KEYS)
    if unknown:
        raise InputError(f"tables[{name!r}]: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(_KEYS))}")
    return SqlTable(**{**table, "uri": path_text(table["uri"])})
