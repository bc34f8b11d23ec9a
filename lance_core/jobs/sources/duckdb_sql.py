"""SQL over Arrow streams and tables, when DuckDB is installed: sources and gates that are given as queries.

::

    query("SELECT count(*) AS n FROM t", {"t": reader})                -> a RecordBatchReader with one row
    query("SELECT ... FROM a JOIN b ...", {"a": TableView(...), ...})  reads what the query needs, as often as it needs it

Joins and sorts that outgrow memory spill to a folder of their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.dataset.query.engine_functions import EngineFunctions
from lance_core.dataset.query.sandbox import connect, refusal
from lance_core.errors import InputError, LanceError
from lance_core.scratch import scratch_folder

if TYPE_CHECKING:
    from lance_core.dataset.query.table_view import TableView

Views = Mapping[str, "pa.RecordBatchReader | TableView"]


def query(sql: str, views: Views, *, what: str, cure: str, batch_rows: int) -> pa.RecordBatchReader:
    """The result of a query over views; a stream among them may be read once. InputError, which names `what` asked, when
    DuckDB is absent or refuses the query; the error of a table that cannot be read as it is."""
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError:
        raise InputError(f"{what} needs the package duckdb", cure=cure) from None
    told: list[TableView | EngineFunctions] = []
    with ExitStack() as stack:
        spill = stack.enter_context(scratch_folder(what))
        connection = connect(duckdb, spill=str(spill / "spill"))
        stack.callback(connection.close)
        try:
            views = {name: _registered(duckdb, connection, name, view, sql) for name, view in views.items()}
            ours = EngineFunctions(duckdb, connection)
            told += [ours, *(view for view in views.values() if not isinstance(view, pa.RecordBatchReader))]
            result = ours.run(sql)
            if result is None:
                raise InputError(f"{what} is not a query and returns no rows", cure="Give a SELECT.")
            # DuckDB 2 dropped the older name.
            read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
            found: pa.RecordBatchReader = read(batch_rows)
        except duckdb.Error as error:
            raise _failure(error, told, tables=[*views], what=what) from None
        failed = partial(_failure, told=told, tables=[*views], what=what)
        return pa.RecordBatchReader.from_batches(found.schema, _rows(found, stack.pop_all(), failed))


def _registered(
    duckdb: Any, connection: Any, name: str, view: pa.RecordBatchReader | TableView, sql: str
) -> pa.RecordBatchReader | TableView:
    """The view as the query sees it: without columns of types that the engine does not know, unless it may want them."""
    try:
        connection.register(name, view)
    except duckdb.NotImplementedException:
        if isinstance(view, pa.RecordBatchReader):
            raise
        view = view.narrowed(sql)
        connection.register(name, view)
    return view


def _rows(
    found: pa.RecordBatchReader, stack: ExitStack, failed: Callable[[Exception], LanceError]
) -> Iterator[pa.RecordBatch]:
    """The rows; afterwards the connection and its folder are gone."""
    with stack:
        batches = iter(found)
        while True:
            try:
                batch = next(batches, None)
            except LanceError:
                raise
            except Exception as error:  # whichever class the engine gives to an error of a view
                raise failed(error) from error
            if batch is None:
                return
            yield batch


def _failure(
    error: Exception, told: Sequence[TableView | EngineFunctions], *, tables: Sequence[str], what: str
) -> LanceError:
    """What ended the query: the error of a table or of a function of ours, else what the engine refused."""
    failures = (one.failure for one in told)
    return next((failure for failure in failures if failure is not None), None) or refusal(error, tables, what=what)
