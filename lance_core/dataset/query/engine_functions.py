"""DuckDB as an engine that is offered functions of ours: see `lance_core.expr.queries`.

::

    ours = EngineFunctions(duckdb, connection)
    ours.run("SELECT n / 4 FROM t")     runs SELECT lance_1(n) AS "(n / 4)" FROM t
    ours.failure                        the error that ended the query, if a function of ours raised it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from lance_core.errors import LanceError

_NAMES: Mapping[Any, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("s"): "TIMESTAMP_S",
}
_OF_SUMS = frozenset({"HUGEINT", "UHUGEINT"})


class EngineFunctions:
    """A connection's types and functions. `failure`: the error that a function of ours ended a query with."""

    def __init__(self, duckdb: Any, connection: Any) -> None:
        self.failure: LanceError | None = None
        self._duckdb = duckdb
        self._connection = connection

    def run(self, query: str) -> Any:
        """The result of a query, as `connection.sql` gives it. Raises the engine's errors."""
        from lance_core.expr.queries import in_our_meaning  # brings sqlglot

        made = in_our_meaning(query, self)
        if made != query:
            try:
                return self._connection.sql(made)
            except self._duckdb.Error:
                # Written again it is refused: better in the engine's meaning than not at all.
                self.failure = None
        return self._connection.sql(query)

    def describe(self, query: str) -> pa.Field[Any] | None:
        """Name and type of a query's only column; None for a query that the engine refuses, and for several columns."""
        try:
            found = self._connection.sql(query)
            if found is None or len(found.columns) != 1:
                return None
            name, kind = found.columns[0], str(found.types[0])
            # Sums of integers, which are int64 here.
            return pa.field(name, pa.int64() if kind in _OF_SUMS else _TYPES.get(kind) or _other(kind))
        except (self._duckdb.Error, _Unknown):
            return None

    def type_name(self, found: Any) -> str | None:
        """The engine's name of a type."""
        if pa.types.is_decimal(found):
            return f"DECIMAL({found.precision},{found.scale})" if found.precision <= 38 and found.scale >= 0 else None
        return _NAMES.get(found)

    def add_function(self, name: str, types: Sequence[Any], result: Any, evaluate: Callable[[Sequence[Any]], Any]) -> None:
        """Offer a function; its errors are kept."""

        def run(*columns: Any) -> Any:
            try:
                return evaluate([_whole(column) for column in columns])
            except LanceError as error:
                self.failure = error
                raise

        # The engine counts the parameters of a signature.
        vars(run)["__signature__"] = Signature(
            [Parameter(f"c{number}", Parameter.POSITIONAL_ONLY) for number in range(len(types))]
        )
        names = [self.type_name(found) for found in types]
        self._connection.create_function(
            name, run, names, self.type_name(result), type="arrow", null_handling="special", exception_handling="default"
        )


class _Unknown(Exception):
    """A type that only the engine has."""


_TYPES: Mapping[str, Any] = {name: found for found, name in _NAMES.items()}


def _other(kind: str) -> Any:
    if not kind.startswith("DECIMAL("):
        raise _Unknown
    precision, scale = kind[8:-1].split(",")
    return pa.decimal128(int(precision), int(scale))


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
