"""Run a filter over one record batch with pyarrow.compute, in SQL's three-valued logic.

::

    evaluate(parse_filter("a > 1 or b is null", schema), batch) -> <BooleanArray [true, null, false, ...]>

Null means "not known", and a scan does not select it. One small function per kind of node, in a table.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core import pick
from lance_core.arrow_numpy import array_of, arrow_of, constant, no_rows, no_values
from lance_core.errors import FilterError, FormatError
from lance_core.expr import ast
from lance_core.expr.arithmetic import calculate, fits, negate
from lance_core.expr.ast import Expr
from lance_core.expr.casts import cast_as, cast_type
from lance_core.expr.coerce import Value, family_of, instant_of, plain_item, repeat
from lance_core.expr.common_type import as_common, cast_common
from lance_core.expr.compare import compare, distinct, is_in, is_in_literals
from lance_core.expr.functions import call, require_text
from lance_core.expr.literals import interval_text
from lance_core.expr.local_time import to_local, to_zone, zone_of
from lance_core.expr.patterns import match_like
from lance_core.expr.system import SYSTEM_COLUMNS
from lance_core.expr.type_names import type_name
from lance_core.shortage import ARROW_ERRORS

pc: Any = compute  # the stubs know only some of what the kernels take


def evaluate(expr: Expr, batch: pa.RecordBatch) -> Any:
    """Which rows of a batch satisfy a filter: a `pa.BooleanArray`, true, false or null per row.

    Raises FilterError: a column the batch lacks, types an operation does not have, a value that does not convert.
    """
    # What an index leaves of a filter may be a match alone, which has a truth but is no boolean.
    is_match = isinstance(expr, ast.Call) and _is_match(expr)
    result = evaluate_value(ast.And((expr,)) if is_match else expr, batch)
    if pa.types.is_null(result.type):
        return pa.nulls(batch.num_rows, pa.bool_())
    if not pa.types.is_boolean(result.type):
        raise FilterError(
            f"the filter returns {result.type}, expected a boolean", cure="Add a comparison, for example `x > 0`."
        )
    return result


def evaluate_value(expr: Expr, batch: pa.RecordBatch) -> Any:
    """The values of any expression, one per row of the batch."""
    try:
        result = _value(expr, batch)
    except (*ARROW_ERRORS, ValueError, OverflowError, ZeroDivisionError) as error:
        if isinstance(error, (FilterError, FormatError)):
            raise
        raise FilterError(f"cannot evaluate the expression: {str(error).splitlines()[0]}") from error
    if isinstance(result, pa.Scalar):
        return repeat(result, batch.num_rows)
    return result


def type_of(expr: Expr, schema: pa.Schema) -> Any:
    """The type an expression gives over a schema, found by evaluating it on no rows. Raises FilterError."""
    names = {name.split(".", 1)[0] for name in ast.columns_of(expr)}
    needed = [schema.field(name) for name in schema.names if name in names]
    system = [pa.field(n, t) for n, t in SYSTEM_COLUMNS.items() if n in names and n not in schema.names]
    empty = no_rows(pa.schema([*needed, *system]))
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in empty.columns], schema=empty.schema)
    return evaluate_value(expr, batch).type


def _value(expr: Expr, batch: pa.RecordBatch) -> Value:
    return _NODES[type(expr)](expr, batch)


def _column(expr: ast.Column, batch: pa.RecordBatch) -> Value:
    index = batch.schema.get_field_index(expr.path[0])
    if index < 0:
        raise FilterError(f"the data has no column {expr.path[0]!r}", cure=f"It has {', '.join(batch.schema.names)}.")
    value = batch.column(index)
    for name in expr.path[1:]:
        value = pc.struct_field(value, name)
    return value


def _literal(expr: ast.Literal, batch: pa.RecordBatch) -> Value:
    value = expr.value
    convert = _SCALARS.get(type(value))
    if convert is None:
        raise FilterError(f"a constant of type {type(value).__name__} cannot be used in a filter")
    return convert(value)


def _int_scalar(value: int) -> pa.Scalar[Any]:
    if -(2**63) <= value < 2**63:
        return constant(value, pa.int64())
    if 0 <= value < 2**64:
        return constant(value, pa.uint64())
    return constant(Decimal(value))


_NULL: Any = pa.nulls(1)[0]
_SCALARS: Mapping[type, Callable[[Any], pa.Scalar[Any]]] = MappingProxyType(
    {
        type(None): lambda _: _NULL,
        bool: constant,
        int: _int_scalar,
        float: lambda value: constant(value, pa.float64()),
        str: constant,
        bytes: constant,
        Decimal: pa.scalar,
        dt.date: pa.scalar,
        dt.time: pa.scalar,
        dt.datetime: pa.scalar,
        dt.timedelta: lambda value: constant(value, pa.duration("us")),
        ast.Days: lambda value: constant(value, pa.duration("us")),
        ast.Instant: instant_of,
    }
)


def _is_match(expr: Expr) -> bool:
    return isinstance(expr, ast.Call) and expr.name == "regexp_match"


def _matches(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    """Whether `regexp_match` gives a list and not null: never null itself. What is in the list nobody asks."""
    return pc.fill_null(call("regexp_like", [_value(item, batch) for item in expr.arguments]), False)


def _is_null(expr: ast.IsNull, batch: pa.RecordBatch) -> Value:
    if isinstance(expr.item, ast.Call) and _is_match(expr.item):
        return pc.invert(_matches(expr.item, batch))
    return pc.is_null(_value(expr.item, batch))


def _condition(expr: Expr, batch: pa.RecordBatch) -> Value:
    """A truth value. `regexp_match` as a condition means that it is not null, as in the official library."""
    if isinstance(expr, ast.Call) and _is_match(expr):
        return _matches(expr, batch)
    value = _value(expr, batch)
    if pa.types.is_null(value.type):
        return value.cast(pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise FilterError(f"expected a boolean, got {value.type}", cure="Add a comparison, for example `x > 0`.")
    return value


def _and(expr: ast.And, batch: pa.RecordBatch) -> Value:
    result = _condition(expr.items[0], batch)
    for item in expr.items[1:]:
        result = pc.and_kleene(result, _where_open(item, batch, result, settled=False))
    return result


def _or(expr: ast.Or, batch: pa.RecordBatch) -> Value:
    result = _condition(expr.items[0], batch)
    for item in expr.items[1:]:
        result = pc.or_kleene(result, _where_open(item, batch, result, settled=True))
    return result


def _where_open(item: Expr, batch: pa.RecordBatch, known: Value, *, settled: bool) -> Value:
    """A condition for all rows, or where that fails only for those that are not settled yet: `b != 0 AND a / b`."""
    try:
        return _condition(item, batch)
    except (*ARROW_ERRORS, ValueError, OverflowError, ZeroDivisionError):
        if not batch.num_rows:
            raise
        truths = repeat(known, batch.num_rows) if isinstance(known, pa.Scalar) else known
        is_open = pc.fill_null(pc.not_equal(truths, settled), True)
        if pc.all(is_open).as_py():
            raise
    needed = pick.keep(batch, is_open)
    found = _condition(item, needed) if needed.num_rows else no_values(pa.bool_())
    found = repeat(found, needed.num_rows) if isinstance(found, pa.Scalar) else found
    return found.take(pc.if_else(is_open, _places_among(is_open, 0), constant(None, pa.int64())))


def _is_bool(expr: ast.IsBool, batch: pa.RecordBatch) -> Value:
    truth = pc.fill_null(_condition(expr.item, batch), not expr.value)
    return truth if expr.value else pc.invert(truth)


def _sides(left: Expr, right: Expr, batch: pa.RecordBatch) -> tuple[Value, Value]:
    """What is compared. A constant beside a column takes its type; a CAST of one, or one beside anything else, does not."""
    first, second = _value(left, batch), _value(right, batch)
    return _own(first, left, right, batch), _own(second, right, left, batch)


def _own(value: Value, expr: Expr, other: Expr, batch: pa.RecordBatch) -> Value:
    if not isinstance(value, pa.Scalar) or not pa.types.is_floating(value.type):
        return value
    bends = isinstance(expr, ast.Literal) and isinstance(other, (ast.Column, ast.Literal))
    return value if bends else repeat(value, batch.num_rows)


def _distinct(expr: ast.Distinct, batch: pa.RecordBatch) -> Value:
    differs = distinct(*_sides(expr.left, expr.right, batch))
    return pc.invert(differs) if expr.negated else differs


def _in(expr: ast.In, batch: pa.RecordBatch) -> Value:
    """Of all values at once, or where one fails each only for the rows that none before it settled."""
    try:
        return _in_all(expr, batch)
    except (*ARROW_ERRORS, ValueError, OverflowError, ZeroDivisionError):
        if not batch.num_rows or all(isinstance(value, ast.Literal) for value in expr.values):
            raise
    return _or(ast.Or(tuple(ast.Compare("=", expr.item, value) for value in expr.values)), batch)


def _in_all(expr: ast.In, batch: pa.RecordBatch) -> Value:
    item = _value(expr.item, batch)
    literals = [value.value for value in expr.values if isinstance(value, ast.Literal)]
    found = is_in_literals(item, literals) if len(literals) == len(expr.values) else None
    if found is not None:
        return found
    return is_in(item, [_own(_value(value, batch), value, expr.item, batch) for value in expr.values])


def _like(expr: ast.Like, batch: pa.RecordBatch) -> Value:
    item, pattern = require_text(_value(expr.item, batch), "LIKE"), require_text(_value(expr.pattern, batch), "LIKE")
    return match_like(item, pattern, ignore_case=expr.ignore_case, escape=expr.escape)


def _shown(expr: Expr, batch: pa.RecordBatch) -> Value:
    """A value whose text is wanted: that of a constant interval is made of what was written, 36 hours are no day."""
    length = _interval(expr)
    return _value(expr, batch) if length is None else constant(interval_text(length))


def _interval(expr: Expr) -> dt.timedelta | None:
    """The interval that an expression writes out; None: it is something else."""
    if isinstance(expr, ast.Negate):
        length = _interval(expr.item)
        return None if length is None else type(length)(seconds=-length.total_seconds())
    return expr.value if isinstance(expr, ast.Literal) and isinstance(expr.value, dt.timedelta) else None


def _called(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    made = call(expr.name, [_value(item, batch) for item in expr.arguments])
    if expr.name not in _TELL or family_of(made.type) != "text" or not any(map(_interval, expr.arguments)):
        return made
    return call(expr.name, [_shown(item, batch) for item in expr.arguments])


_TELL = frozenset({"concat", "concat_ws", "nvl", "ifnull", "nvl2", "arrow_cast", "arrow_try_cast"})
"""Functions that make texts of what is none."""


def _call(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    if expr.name in _OF_COLUMNS:
        return _of_column(expr, batch)
    if expr.name in _LAZY:
        return _LAZY[expr.name](expr, batch)
    if expr.name in _OF_ROWS and not expr.arguments:
        return _OF_ROWS[expr.name](batch.num_rows)
    if expr.name in _CASTS and len(expr.arguments) == 2:
        kind = _value(expr.arguments[1], batch).type
        return cast_as(_cast_from(expr.arguments[0], kind, batch), kind, safe=_CASTS[expr.name])
    return _called(expr, batch)


def _cast(expr: ast.Cast, batch: pa.RecordBatch) -> Value:
    kind = cast_type(expr.type, expr.parameters)
    return cast_as(_cast_from(expr.item, kind, batch), kind, safe=expr.safe)


def _cast_from(expr: Expr, kind: pa.DataType, batch: pa.RecordBatch) -> Value:
    return (_shown if family_of(kind) == "text" else _value)(expr, batch)


def _first_of(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    """coalesce and nvl: what one of them says of all rows, or where that fails each argument for the rows that need it."""
    try:
        return _called(expr, batch)
    except (*ARROW_ERRORS, ValueError, OverflowError, ZeroDivisionError):
        if not batch.num_rows or not expr.arguments:
            raise
    kind = type_of(expr, batch.schema)
    found = cast_common(evaluate_value(expr.arguments[0], batch), kind)
    for item in expr.arguments[1:]:
        missing = pc.is_null(found)
        if not found.null_count:
            break
        needed = pick.keep(batch, missing)
        one = _cast_from(item, kind, needed)
        here = cast_common(repeat(one, needed.num_rows) if isinstance(one, pa.Scalar) else one, kind)
        order = pc.if_else(missing, _places_among(missing, len(found)), arrow_of(np.arange(len(found))))
        found = pa.concat_arrays([found, here]).take(order)
    return found


def _places_among(taken: Value, start: int) -> Value:
    """Of each row that is taken its place among those, counted from `start`."""
    return pc.add(start - 1, pc.cumulative_sum(pc.cast(taken, pa.int64())))


def _if(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    """CASE. A branch is computed for all rows, or where that fails only for those that take it: `CASE WHEN x = 0 ...`."""
    try:
        return call("if", [_value(item, batch) for item in expr.arguments])
    except (*ARROW_ERRORS, ValueError, OverflowError, ZeroDivisionError):
        if not batch.num_rows or len(expr.arguments) != 3:
            raise
    test = pc.fill_null(_condition(expr.arguments[0], batch), False)
    takes = repeat(test, batch.num_rows) if isinstance(test, pa.Scalar) else test
    branches = zip((takes, pc.invert(takes)), expr.arguments[1:], strict=True)
    left, right = as_common(evaluate_value(item, pick.keep(batch, rows)) for rows, item in branches)
    places, others = _places_among(takes, 0), _places_among(pc.invert(takes), len(left))
    return pa.concat_arrays([left, right]).take(pc.if_else(takes, places, others))


def _of_column(expr: ast.Call, batch: pa.RecordBatch) -> Value:
    """Type, field or metadata of a column, for the functions that return them."""
    column = expr.arguments[0] if expr.arguments else None
    key = expr.arguments[1] if len(expr.arguments) == 2 and expr.name == "arrow_metadata" else None
    if key is None and expr.name == "arrow_metadata" and len(expr.arguments) == 1 and not isinstance(column, ast.Column):
        return constant([], _METADATA)
    if not isinstance(column, ast.Column) or len(expr.arguments) > (1 if key is None else 2):
        # Values may be wider here than the official library computes them.
        raise FilterError(f"{expr.name} takes a column")
    if key is not None and not (isinstance(key, ast.Literal) and isinstance(key.value, str)):
        raise FilterError("the second argument of arrow_metadata must be a constant text")
    kind = _column(column, batch).type
    if expr.name == "arrow_typeof":
        return constant(type_name(kind))
    field = batch.schema.field(column.path[0])
    for name in column.path[1:]:
        field = field.type.field(name)
    metadata = {name.decode(): text.decode() for name, text in sorted((field.metadata or {}).items())}
    if expr.name == "arrow_field":
        told = {"name": field.name, "data_type": type_name(kind), "nullable": field.nullable}
        return constant({**told, "metadata": [*metadata.items()]}, _FIELD)
    if isinstance(key, ast.Literal):
        return constant(metadata.get(str(key.value)), pa.string())
    return constant([*metadata.items()], _METADATA)


_METADATA = pa.map_(pa.string(), pa.string())
_FIELD = pa.struct(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("data_type", pa.string(), nullable=False),
        pa.field("nullable", pa.bool_(), nullable=False),
        pa.field("metadata", _METADATA, nullable=False),
    ]
)
_OF_COLUMNS = frozenset({"arrow_typeof", "arrow_field", "arrow_metadata"})
_LAZY: Mapping[str, Callable[[ast.Call, pa.RecordBatch], Value]] = MappingProxyType(
    {"if": _if, "coalesce": _first_of, "nvl": _first_of, "ifnull": _first_of}
)
_CASTS: Mapping[str, bool] = MappingProxyType({"cast_to_type": False, "try_cast_to_type": True})
_OF_ROWS: Mapping[str, Callable[[int], Value]] = MappingProxyType(
    {
        "random": lambda count: arrow_of(np.random.default_rng().random(count)),
        "uuid": lambda count: array_of([str(uuid.uuid4()) for _ in range(count)], pa.string()),
    }
)
"""Functions that give another value in each row."""


def _list_of(expr: ast.ListOf, batch: pa.RecordBatch) -> Value:
    items = [plain_item(_value(item, batch)) for item in expr.items]
    if not all(isinstance(item, pa.Scalar) for item in items):
        return call("make_array", items)
    if not items:
        return constant([])
    items = as_common(items)
    values = array_of([item.as_py() for item in items], items[0].type)
    return pa.ListArray.from_arrays(cast("Any", array_of([0, len(values)], pa.int32())), values)[0]


def _element(expr: ast.Element, batch: pa.RecordBatch) -> Value:
    return call("array_element", [_value(expr.item, batch), _value(expr.index, batch)])


def _arithmetic(expr: ast.Arithmetic, batch: pa.RecordBatch) -> Value:
    value = _shown if expr.op == "||" else _value
    sides = ((expr.left, value(expr.left, batch)), (expr.right, value(expr.right, batch)))
    columns = [value.type for side, value in sides if isinstance(side, ast.Column)]
    others = [pair for pair in sides if not isinstance(pair[0], ast.Column)]
    # A constant that is written as one; a CAST of one keeps the type that it names, unless the column's holds it exactly
    # and is no half float.
    bends = (
        expr.bends
        and len(columns) == 1
        and all(
            isinstance(side, ast.Literal)
            or (is_cast_literal(side) and not pa.types.is_float16(columns[0]) and fits(value, columns[0]))
            for side, value in others
        )
    )
    for (side, _), (_, other) in (sides, sides[::-1]):
        days = side.value if isinstance(side, ast.Literal) else None
        if isinstance(days, ast.Days) and zone_of(other.type) is not None and expr.op in ("+", "-"):
            return _days_later(other, -days if expr.op == "-" else days)
    return calculate(expr.op, sides[0][1], sides[1][1], bends=bends)


def is_cast_literal(expr: Expr) -> bool:
    """Whether it is the CAST of a constant."""
    return isinstance(expr, ast.Cast) and isinstance(expr.item, ast.Literal)


def _days_later(moment: Value, days: dt.timedelta) -> Value:
    """When the clocks of its zone show the same time so many days later; what is left of a day are hours as they pass."""
    zone, sign = zone_of(moment.type), -1 if days < dt.timedelta() else 1
    whole = sign * dt.timedelta(days=abs(days).days)
    if not whole:
        return calculate("+", moment, constant(days, pa.duration("us")))
    shown = calculate("+", to_local(moment), constant(whole, pa.duration("us")))
    return calculate("+", to_zone(shown, str(zone)), constant(days - whole, pa.duration("us")))


def _arrow(expr: ast.ArrowExpression, batch: pa.RecordBatch) -> Value:
    import pyarrow.dataset as pads

    columns: Any = {"value": expr.expression}
    scanner = pads.Scanner.from_batches(iter([batch]), schema=batch.schema, columns=columns, use_threads=False)
    table = scanner.to_table()
    return table.column(0).combine_chunks() if batch.num_rows else no_values(table.schema.field(0).type)


_NODES: Mapping[type, Callable[[Any, pa.RecordBatch], Value]] = MappingProxyType(
    {
        ast.Column: _column,
        ast.Literal: _literal,
        ast.Compare: lambda e, b: compare(e.op, *_sides(e.left, e.right, b)),
        ast.Distinct: _distinct,
        ast.And: _and,
        ast.Or: _or,
        ast.Not: lambda e, b: pc.invert(_condition(e.item, b)),
        ast.IsNull: _is_null,
        ast.IsBool: _is_bool,
        ast.In: _in,
        ast.Like: _like,
        ast.Arithmetic: _arithmetic,
        ast.Negate: lambda e, b: negate(_value(e.item, b)),
        ast.Cast: _cast,
        ast.Call: _call,
        ast.ListOf: _list_of,
        ast.Element: _element,
        ast.ArrowExpression: _arrow,
    }
)
