"""SQL over Arrow streams, when DuckDB is installed: sources and gates that are given as queries.

::

    query("SELECT count(*) AS n FROM t", {"t": reader})    -> a RecordBatchReader with one row
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_core.dataset.query.sandbox import connect
from lance_core.errors import InputError


def query(
    sql: str, views: Mapping[str, pa.RecordBatchReader], *, what: str, cure: str, batch_rows: int
) -> pa.RecordBatchReader:
    """The result of a query over views, each of which may be read once. InputError, which names `what` asked, when DuckDB is
    absent or refuses the query."""
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError:
        raise InputError(f"{what} needs the package duckdb", cure=cure) from None
    connection = connect(duckdb)
    for name, reader in views.items():
        connection.register(name, reader)
    try:
        result = connection.sql(sql)
        if result is None:
            raise InputError(f"{what} is not a query and returns no rows", cure="Give a SELECT.")
        # DuckDB 2 dropped the older name.
        read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
        found: pa.RecordBatchReader = read(batch_rows)
    except duckdb.Error as error:
        raise InputError(f"{what} failed: {error}") from None
    return found
