"""Where the columns of a table come from, as far as a task's arguments say so; for OpenLineage.

::

    columns={"twice": "id * 2"}             -> {"twice": (Origin(table, "id", "TRANSFORMATION"),)}
    source="/raw/a.parquet", on="id"        -> {"name": (Origin("/raw/a.parquet", "name", "IDENTITY"),)}, joined by "id"

Nothing is claimed that the arguments do not say: a source that is a function or a query has no columns here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_lance.execution.sources import plain_source

_DDL_NAME = re.compile(r"\s*(?:`([^`]+)`|(\w+))[\s:]")


@dataclass(frozen=True)
class Origin:
    """A column that another one was made of: the dataset's uri, its name, and how (OpenLineage's subtype)."""

    uri: str
    column: str
    how: str = "IDENTITY"


def origins_of(task: Any, *, uri: str) -> tuple[dict[str, tuple[Origin, ...]], tuple[Origin, ...]]:
    """For each column that the task writes where it comes from, and the columns by which rows were joined."""
    columns: Mapping[str, str] = getattr(task, "columns", None) or {}
    if columns:
        dialect = "spark" if getattr(task, "engine", "") == "spark" else None
        told = {name: _of_expression(text, uri=uri, dialect=dialect) for name, text in columns.items()}
        return {name: found for name, found in told.items() if found}, ()
    keys = _names(getattr(task, "on", None))
    given = getattr(task, "source", None)
    source = plain_source(given) if given else {}
    paths = source.get("paths") or ()
    if not keys or not paths or not source.get("format"):
        return {}, ()
    theirs = _names(getattr(task, "source_on", None)) or keys
    joined = [*(Origin(uri, key, "JOIN") for key in keys), *(Origin(path, key, "JOIN") for path in paths for key in theirs)]
    # A merge writes the key as well; columns that are added by it do not.
    written = [name for name in _columns_of(source) if not (hasattr(task, "source_on") and name in theirs)]
    return {name: tuple(Origin(path, name) for path in paths) for name in written}, tuple(joined)


def _of_expression(text: str, *, uri: str, dialect: str | None) -> tuple[Origin, ...]:
    import sqlglot
    from sqlglot import expressions

    try:
        parsed = sqlglot.parse_one(text, dialect=dialect)
    except sqlglot.errors.SqlglotError:  # valid for the engine, which has its own parser
        return ()
    is_copy = isinstance(parsed, expressions.Column) and len(parsed.parts) == 1
    how = "IDENTITY" if is_copy else "TRANSFORMATION"
    names = dict.fromkeys(_root(column) for column in parsed.find_all(expressions.Column))
    return tuple(Origin(uri, name, how) for name in names)


def _root(column: Any) -> str:
    """The table's column of a path into a struct: `a` of `a.b.c`."""
    return str(column.parts[0].name)


def _columns_of(source: Mapping[str, Any]) -> list[str]:
    """The columns of a source's files where that is known without asking a store."""
    schema = source.get("schema")
    if schema:
        return [match[1] or match[2] for part in _split(str(schema)) if (match := _DDL_NAME.match(part))]
    first = next((Path(path) for path in source["paths"] if "://" not in str(path)), None)
    if source.get("format") == "parquet" and first is not None and first.is_file():
        import pyarrow.parquet as pq

        return list(pq.read_schema(first).names)
    return []


def _split(ddl: str) -> list[str]:
    """The fields of a DDL text; commas inside of types do not part them."""
    parts, depth = [""], 0
    for char in ddl:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, Sequence) else []
