"""What computes a column: an SQL expression, a function of record batches, or a class that is made once.

::

    def embed(batch, *, size): ...                         an Arrow array, or anything that becomes one, a value for each row
    class Embed:                                           made once for a refresh with the declaration's arguments
        def setup(self): ...                               optional: load the model
        def __call__(self, batch): ...
        def close(self): ...                               optional

The caller decides which functions may run (`load`); a table only names them.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core.computed.declaration import Declaration
from lance_core.errors import InputError
from lance_core.expr import ast, evaluate_value, parse_value
from lance_core.shortage import ARROW_ERRORS

log = logging.getLogger(__name__)
Load = Callable[[str], Any]
"""A function's name -> what it names, where the caller allows it; else InputError."""

_CHANGING = frozenset({"random", "uuid", "now", "today", "current_date", "current_time", "current_timestamp", "version"})


class Computation:
    """Computes one column; counts what it did. `close` it."""

    def __init__(self, declaration: Declaration, field: pa.Field[Any], schema: pa.Schema, load: Load) -> None:
        self._field, self.kind = field, field.type
        self.name = declaration.expression
        self._close: Callable[[], Any] = lambda: None
        self.calls = self.rows = 0
        if declaration.kind == "sql":
            expr = parse_value(declaration.expression, schema)
            self._function: Callable[[pa.RecordBatch], Any] = lambda batch: evaluate_value(expr, batch)
        else:
            self._function = self._loaded(load(declaration.expression), declaration.arguments)

    def _loaded(self, found: Any, arguments: Mapping[str, Any]) -> Callable[[pa.RecordBatch], Any]:
        if not inspect.isclass(found):
            return lambda batch: found(batch, **arguments)
        made: Any = found(**arguments)
        getattr(made, "setup", lambda: None)()
        self._close = getattr(made, "close", self._close)
        call: Callable[[pa.RecordBatch], Any] = made
        return call

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """The values for a batch, as an array of the column's type. InputError for what cannot be one."""
        return self.as_column(self.answer(batch), batch.num_rows)

    def answer(self, batch: pa.RecordBatch) -> Any:
        """What the function returns for a batch."""
        self.calls += 1
        self.rows += batch.num_rows
        return self._function(batch)

    def as_column(self, made: Any, num_rows: int) -> Any:
        """What the function returned, as an array of the column's type."""
        if isinstance(made, (pa.RecordBatch, pa.Table)):
            if made.num_columns != 1:
                raise InputError(f"{self.name} returned {made.num_columns} columns for {self._field.name!r}, expected one")
            made = made.column(0)
        if isinstance(made, pa.Scalar):  # an expression without columns
            made = pa.array([made.as_py()] * num_rows, made.type)
        try:
            array = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
            if isinstance(array, pa.ChunkedArray):
                array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, array.type)
            if not isinstance(array, pa.Array):
                array = pa.array(array, self._field.type)
            array = array if array.type == self._field.type else array.cast(self._field.type)
        except (*ARROW_ERRORS, TypeError) as error:
            raise InputError(
                f"{self.name} returned {type(made).__name__}, which is no column of type {self._field.type}: {error}",
                cure="Return one value of that type for each row.",
            ) from error
        if len(array) != num_rows:
            raise InputError(
                f"{self.name} returned {len(array)} values for {num_rows} rows", cure="Return one value for each row."
            )
        return array

    def close(self) -> None:
        """Let go of what the function holds."""
        self._close()


def row_by_row(compute: Computation, batch: pa.RecordBatch) -> tuple[list[Any], list[bool]]:
    """Arrays for pieces of a batch, and for which rows the function fails: found by halves. A wrong answer is raised."""
    try:
        made = compute.answer(batch)
    except MemoryError:
        raise
    except Exception as error:  # whatever a user's function raises
        if batch.num_rows == 1:
            log.warning("%s failed for one row: %s", compute.name, type(error).__name__)
            return [pa.nulls(1, compute.kind)], [True]
    else:
        return [compute.as_column(made, batch.num_rows)], [False] * batch.num_rows
    half = batch.num_rows // 2
    first, second = row_by_row(compute, batch.slice(0, half)), row_by_row(compute, batch.slice(half))
    return first[0] + second[0], first[1] + second[1]


def refuse_changing(expr: ast.Expr, sql: str) -> None:
    """InputError for an expression that gives another value each time."""
    found = sorted(_names(expr) & _CHANGING)
    if found:
        raise InputError(
            f"{sql!r} cannot be declared: {found[0]} gives another value each time", cure="Use columns and constants only."
        )


def _names(expr: Any) -> set[str]:
    if isinstance(expr, tuple):
        return {name for item in expr for name in _names(item)}
    slots = getattr(type(expr), "__dataclass_fields__", {})
    own = {expr.name.lower()} if isinstance(expr, ast.Call) else set()
    return own | {name for slot in slots for name in _names(getattr(expr, slot))}


def code_digest(found: Any) -> str:
    """The digest of the module that a function is defined in, "" where its source cannot be read. It only warns."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(found))
        return "" if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except (OSError, TypeError):
        return ""
