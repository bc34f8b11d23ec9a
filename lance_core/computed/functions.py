"""What computes a column: an SQL expression, a function of record batches, or a class that is made once.

::

    def embed(batch, *, size): ...                         an Arrow array, or anything that becomes one, a value for each row
    class Embed:                                           made once with the declaration's arguments (`computed.models`)
        def setup(self): ...                               optional: load the model
        def __call__(self, batch): ...
        def tokens(self, batch): ...                       optional: how many tokens each row has, for batch_tokens
        def close(self): ...                               optional
    embed.tokens = lambda batch, *, size: ...              of a function

The caller decides which functions may run (`load`); a table only names them.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.computed.declaration import Declaration
from lance_core.computed.limits import Computed, Meter, Pace
from lance_core.computed.models import Models, OwnModel
from lance_core.computed.policies import seconds_before, shown_error
from lance_core.errors import InputError
from lance_core.expr import ast, evaluate_value, parse_value
from lance_core.shortage import ARROW_ERRORS

log = logging.getLogger(__name__)
Load = Callable[[str], Any]
"""A function's name -> what it names, where the caller allows it; else InputError."""

_FAILURES_TOLD = 10
_CHANGING = frozenset({"random", "uuid", "now", "today", "current_date", "current_time", "current_timestamp", "version"})


class Computation:
    """Computes one column, and tells the meter what that took. `close` it."""

    def __init__(
        self,
        declaration: Declaration,
        field: pa.Field[Any],
        schema: pa.Schema,
        load: Load,
        *,
        meter: Meter | None = None,
        pace: Pace | None = None,
        models: Models | None = None,
    ) -> None:
        self._field, self.kind = field, field.type
        self.name, self.policy = declaration.expression, declaration.policy
        self.meter = meter or Meter()
        self.code_changed = False
        self._pace = pace or Pace(None)
        self._models: Models = models or OwnModel()
        self._model: Callable[[pa.RecordBatch], Any] | None = None
        self._tokens: Callable[[pa.RecordBatch], Any] | None = None
        self._failures = self._failed_rows = 0
        if declaration.kind == "sql":
            expr = parse_value(declaration.expression, schema)
            self._function: Callable[[pa.RecordBatch], Any] = lambda batch: evaluate_value(expr, batch)
        else:
            found = load(declaration.expression)
            now = code_digest(found)
            self.code_changed = bool(declaration.code and now and declaration.code != now)
            if self.code_changed:
                log.warning(
                    "the code of %s changed since column %r was declared, its version %r did not: values of both are mixed. "
                    "Declare it with another version if it means something else now, or again as it is to end this warning.",
                    self.name,
                    field.name,
                    declaration.version,
                )
            if declaration.batch_tokens is not None:
                check_counter(self.name, found)
            self._function = self._loaded(found, declaration.arguments)

    def _loaded(self, found: Any, arguments: Mapping[str, Any]) -> Callable[[pa.RecordBatch], Any]:
        if not inspect.isclass(found):
            self._tokens = lambda batch: found.tokens(batch, **arguments)
            return lambda batch: found(batch, **arguments)
        call: Callable[[pa.RecordBatch], Any] = self._models.take(found, arguments)
        self._model = call
        self._tokens = lambda batch: call.tokens(batch)  # type: ignore[attr-defined]
        return call

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """The values for a batch, as an array of the column's type. InputError for what cannot be one."""
        return self.as_column(self.answer(batch), batch.num_rows)

    def answer(self, batch: pa.RecordBatch) -> Any:
        """What the function returns for a batch, tried again where its policy says so. Raises what the function raises."""
        retry = 0
        while True:
            self._pace.wait()
            self.meter.note(calls=1, rows=0 if retry else batch.num_rows)
            try:
                made = self._function(batch)
            except MemoryError:
                raise
            except Exception as error:
                if retry >= self.policy.retries or self.policy.action(error) != "retry":
                    raise
                seconds = seconds_before(retry, error)
                log.info("%s: %s, another try in %.1f s", self.name, shown_error(error), seconds)
                time.sleep(seconds)
                retry += 1
                continue
            if isinstance(made, Computed):
                self.meter.note(spent=made.spent)
                return made.values
            return made

    def tokens_of(self, batch: pa.RecordBatch) -> Ints:
        """How many tokens each row has, as the function counts them. InputError for what are no such numbers."""
        if self._tokens is None:
            return np.zeros(batch.num_rows, np.int64)
        told = self._tokens(batch)
        try:
            counts = np.asarray(told.to_pylist() if isinstance(told, (pa.Array, pa.ChunkedArray)) else told, np.float64)
        except (TypeError, ValueError):
            counts = np.zeros((0, 0))
        if counts.shape != (batch.num_rows,) or not (counts >= 0).all():
            raise InputError(
                f"{self.name}.tokens returned {type(told).__name__} for {batch.num_rows} rows, which is no number for each",
                cure="Return how many tokens each row has, 0 or more.",
            )
        return np.ceil(np.minimum(counts, 1 << 60)).astype(np.int64)

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

    def log_failure(self, num_rows: int, shown: str) -> None:
        """Say that rows failed: the first ones each, all of them together in the end."""
        self._failed_rows += num_rows
        self._failures += 1
        if self._failures <= _FAILURES_TOLD:
            log.warning("%s failed for %d rows: %s", self.name, num_rows, shown)

    def close(self, *, is_sound: bool = True) -> None:
        """Let go of what the function holds; `is_sound`: no call ended the work."""
        if self._failures > _FAILURES_TOLD:
            log.warning(
                "%s failed for %d rows in all: `lance refresh URI --failed` lists them", self.name, self._failed_rows
            )
        if self._model is not None:
            self._models.give_back(self._model, is_sound=is_sound)


def check_counter(name: str, found: Any) -> None:
    """InputError for a function or a class that cannot count tokens."""
    if not callable(getattr(found, "tokens", None)):
        raise InputError(
            f"{name} has no tokens(batch), by which batch_tokens bounds a call",
            cure="Give the class a method, or the function an attribute of that name: how many tokens each row has.",
        )


def row_by_row(compute: Computation, batch: pa.RecordBatch) -> tuple[list[Any], list[str]]:
    """Arrays for pieces of a batch, and for each row the error of the function, "" for none. Rows for which it fails are
    found by halves, but where the call was tried again in vain. Raises a wrong answer, and what ends the refresh."""
    try:
        made = compute.answer(batch)
    except MemoryError:
        raise
    except Exception as error:  # whatever a user's function raises
        action = compute.policy.action(error)
        if action == "fail" or (action == "retry" and compute.policy.last == "fail"):
            raise
        if batch.num_rows == 1 or action == "retry":
            shown = shown_error(error)
            compute.log_failure(batch.num_rows, shown)
            return [pa.nulls(batch.num_rows, compute.kind)], [shown] * batch.num_rows
    else:
        return [compute.as_column(made, batch.num_rows)], [""] * batch.num_rows
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


def module_of(found: Any) -> str:
    """The name of the module that a function is defined in; of a file that was loaded under another name, the file's own.

    >>> module_of(module_of)
    'lance_core.computed.functions'
    """
    inner = inspect.unwrap(found)
    module: str = inner.__module__
    try:
        stem = Path(inspect.getsourcefile(inner) or "").stem
    except TypeError:  # it is built in
        stem = ""
    return module if stem in ("", "__init__", module.rpartition(".")[2]) else stem


def code_digest(found: Any) -> str:
    """The digest of the module that a function is defined in, "" where its source cannot be read. It only warns.

    A file that was loaded under another name than its own, such as a script or a DAG file, holds much else: there the
    function's own source counts.
    """
    try:
        inner = inspect.unwrap(found)
        path = inspect.getsourcefile(inner)
        if path is None:
            return ""
        is_module = module_of(inner) == inner.__module__
        code = Path(path).read_bytes() if is_module else inspect.getsource(inner).encode()
        return hashlib.sha256(code).hexdigest()[:16]
    except (OSError, TypeError):
        return ""
