"""The spec of a SQL statement over several tables. Light to import; sqlglot is when a statement is read.

::

    sql_spec("INSERT INTO daily SELECT ... FROM orders JOIN users USING (id)",
             {"daily": lance_source("/daily.lance"), "orders": lance_source("/orders.lance", version=4), ...})
    -> AppendSpec(uri="/daily.lance", source=SourceSpec(sql="SELECT ...", views={...}))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.definition import SqlSpec
from lance_core.jobs.specs.edits import DeleteSpec, ReplaceWhereSpec, UpdateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, JobSpec, OverwriteSpec, SourceSpec, from_plain, read_spec
from lance_core.jobs.specs.sql_reader import Statement
from lance_core.jobs.specs.sql_tokens import DUCKDB, SPARK, Dialect, names_in
from lance_core.jobs.specs.statement import read_statement

LANCE = "lance"
_SPECS: Mapping[str, type[JobSpec]] = {
    spec.kind: spec for spec in (AppendSpec, OverwriteSpec, ReplaceWhereSpec, MergeSpec, UpdateSpec, DeleteSpec)
}
Source = Mapping[str, Any]
Engine = Literal["duckdb", "spark"]


def lance_source(uri: str, *, version: int | str | None = None, branch: str | None = None) -> dict[str, Any]:
    """A Lance table as a source: its newest version, a number, a tag, or a branch."""
    name = "version" if isinstance(version, int) or str(version).isdecimal() else "tag"
    options = {**({} if version is None else {name: str(version)}), **({} if branch is None else {"branch": branch})}
    return {"format": LANCE, "paths": [uri], **({"options": options} if options else {})}


def read_sources(tables: Mapping[str, Source]) -> dict[str, SourceSpec]:
    """Sources of plain data, checked."""
    return {name: from_plain(SourceSpec, table, where=f"tables.{name}") for name, table in tables.items()}


def dialect_of(engine: Engine) -> Dialect:
    """How an engine writes names and texts."""
    return SPARK if engine == "spark" else DUCKDB


def sql_spec(
    sql: str,
    tables: Mapping[str, Source],
    *,
    identity: str = "",
    engine: Engine = "duckdb",
    result: Mapping[str, Any] | None = None,
    write: Mapping[str, Any] | None = None,
    rows: Mapping[str, Any] | None = None,
) -> JobSpec:
    """The spec of a statement; `tables`: name in it -> a source. Further fields of its job: `result` for a SELECT, `write`
    for a statement that changes a table, and `rows` for one that writes rows of a query. `engine`: whose SQL it is, and who
    carries its query out.

    InputError for a statement that cannot be carried out, and for a table that it changes and `tables` does not name.
    """
    dialect = dialect_of(engine)
    told = read_statement(sql, dialect)
    plain = {name: dict(table) for name, table in tables.items()}
    named = names_in(told.query, dialect)
    # A statement that names none of them has a name wrong: the engine's error then lists what it could have been.
    read = {name: table for name, table in plain.items() if name.lower() in named} or plain
    if told.kind == "query" and engine == "spark":
        raise InputError(
            "a SELECT cannot run as a Spark job, which has no way to return its rows",
            cure="Write INSERT OVERWRITE name SELECT ... into a table, or run it in the worker (omit execution).",
        )
    if told.kind == "query":
        uri = next((str(path) for table in read.values() for path in table.get("paths") or ()), "sql:query")
        fields = {"uri": uri, "identity": identity, "sql": told.query, "tables": read}
        return read_spec(SqlSpec, {**fields, **(result or {})})
    fields = {"uri": changed_table(told, plain), "identity": identity, **(write or {}), **told.fields}
    if told.query:
        fields |= rows or {}
        fields["source"] = {"sql": told.query, "views": read, **({"engine": engine} if engine == "spark" else {})}
    return read_spec(_SPECS[told.kind], fields)


def changed_table(told: Statement, tables: Mapping[str, Source]) -> str:
    """The uri of the table that a statement changes. InputError when `tables` does not name it, or names a version of it."""
    table = tables.get(told.target)
    if table is None or table.get("format") != LANCE:
        raise InputError(
            f"the statement changes {told.target!r}, which is not one of the Lance tables {', '.join(tables) or '(none)'}",
            cure=f"Pass tables={{{told.target!r}: uri, ...}}.",
        )
    if table.get("options"):
        raise InputError(f"the statement changes {told.target!r}, so it cannot name a version or a branch of it")
    return str(table["paths"][0])
