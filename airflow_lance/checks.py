"""Checks of rows, by name: for `LanceCheckOperator(checks=...)`, and as the `gates` of a commit.

::

    LanceCheckOperator(task_id="check", uri="flights.lance",
                       checks=[row_count(at_least=20_000), not_null("carrier"), unique("flight", "time_hour")])

A check is plain data; `custom` names a function of your own. Standard library only.
"""

from __future__ import annotations

from typing import Any

Check = dict[str, Any]


def row_count(*, at_least: int | None = None, at_most: int | None = None) -> Check:
    """How many rows there are."""
    bounds = {"min_rows": at_least, "max_rows": at_most}
    return {"name": "row count", **{name: value for name, value in bounds.items() if value is not None}}


def not_null(*columns: str) -> Check:
    """No value of these columns is null."""
    return null_rate(**dict.fromkeys(columns, 0.0))


def null_rate(**at_most: float) -> Check:
    """The share of nulls in each column, at most so much."""
    return {"name": f"nulls of {', '.join(at_most)}", "max_null_rates": dict(at_most)}


def vector_norms(column: str, *, at_least: float = 0.0, at_most: float) -> Check:
    """Every vector of a column has a length between these; nulls do not count."""
    return {"name": f"norms of {column}", "norms": {column: [at_least, at_most]}}


def drift(**at_most: float) -> Check:
    """How far each refreshed column may be from its former values, 0.0 to 1.0; for `LanceRefreshColumnsOperator` alone."""
    return {"name": f"drift of {', '.join(at_most)}", "max_drift": dict(at_most)}


def unique(*columns: str) -> Check:
    """These columns together tell every row from every other."""
    return {"name": f"unique {', '.join(columns)}", "unique": list(columns)}


def no_rows(filter: str) -> Check:
    """A SQL filter selects no row."""
    return {"name": filter, "no_rows": filter}


def accepted_values(column: str, *values: str | int) -> Check:
    """A column holds these values only (or null)."""
    listed = ", ".join(str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'" for value in values)
    return {"name": f"values of {column}", "no_rows": f"{column} NOT IN ({listed})"}


def query(sql: str) -> Check:
    """A query over `staged`, the rows, returns none. Needs DuckDB."""
    return {"name": "query", "sql": sql}


def custom(function: str) -> Check:
    """`"module:function"` is given the rows as a pyarrow.RecordBatchReader; returning False, or a text, refuses."""
    return {"name": function, "callable": function}
