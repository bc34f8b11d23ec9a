"""SQL over a table, through DuckDB when it is installed.

::

    ds.sql("SELECT count(*) FROM dataset WHERE x > 3").build().to_batch_records()
    ds.sql("SELECT * FROM t JOIN dataset ...").table_name("t")

The table is called `dataset` unless `table_name` says otherwise. Columns that the query's text does not name are not read;
the others are held in memory, because a query may read the table more than once. Narrow large tables with `to_table` first.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_core.dataset.query.engine_functions import EngineFunctions
from lance_core.dataset.query.sandbox import connect, refusal
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNT_ALL = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_ROWS = 65_536


@dataclass(frozen=True)
class SqlQueryBuilder:
    """A query being described; each verb returns the builder with the change."""

    snapshot: Snapshot
    text: str
    name: str = "dataset"
    system: tuple[str, ...] = ()

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Set what the table is called in the query. InputError for anything but letters, digits and underscores."""
        if not _NAME.fullmatch(table_name):
            raise InputError(f"{table_name!r} is not a valid table name", cure="Use letters, digits and underscores.")
        return replace(self, name=table_name)

    def with_row_id(self, with_row_id: bool) -> SqlQueryBuilder:
        """Offer `_rowid` as a column."""
        return self._with("_rowid", wanted=with_row_id)

    def with_row_addr(self, with_row_addr: bool) -> SqlQueryBuilder:
        """Offer `_rowaddr` as a column."""
        return self._with("_rowaddr", wanted=with_row_addr)

    def build(self) -> SqlQuery:
        """The query, ready to run."""
        return SqlQuery(self)

    def _with(self, column: str, *, wanted: bool) -> SqlQueryBuilder:
        kept = tuple(name for name in self.system if name != column)
        return replace(self, system=(*kept, column) if wanted else kept)


@dataclass(frozen=True)
class SqlQuery:
    """A query; each call runs it."""

    builder: SqlQueryBuilder

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """The whole result. Raises InputError when DuckDB is missing or refuses the query."""
        return [*self.to_stream_reader()]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the query and return its result as a stream of record batches.

        Raises InputError when DuckDB refuses the query or it returns no rows, and when DuckDB is not installed.
        """
        duckdb = _duckdb()
        builder = self.builder
        connection = connect(duckdb)
        try:
            connection.register(builder.name, _view(builder))
            result = EngineFunctions(duckdb, connection).run(builder.text)
        except duckdb.Error as error:
            raise refusal(error, [builder.name], what="the query") from error
        if result is None:
            raise InputError(
                "the query is not a SELECT and returns no rows", cure="Write tables by the methods of LanceDataset."
            )
        # Older releases have the older name only.
        stream = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
        reader: pa.RecordBatchReader = stream(_ROWS)
        return reader


def _view(builder: SqlQueryBuilder) -> pa.Table:
    """The columns a query may want: those whose names occur in it, all when it has a star other than that of count(*)."""
    every = [*builder.snapshot.visible_schema.names, *builder.system]
    text = _COUNT_ALL.sub("", builder.text).lower()
    named = every if "*" in text else [name for name in every if name.lower() in text]
    # A table of no columns has no rows for DuckDB.
    return LanceScanner(builder.snapshot, ScanRequest(columns=named or every[:1])).to_table()


def _duckdb() -> Any:
    try:
        # Optional: not among this library's dependencies.
        return importlib.import_module("duckdb")
    except ImportError:
        raise InputError(
            "sql() needs DuckDB, which is not installed", cure="Run pip install duckdb, or use to_table."
        ) from None
