"""The type and nullability that the official library gives a computed column.

::

    i32 * 2          int32, because a constant takes the type of the column beside it        i32 + i64      int64
    length(text)     int32                                                               text || 'x'    string
    i32 IS NULL      bool NOT NULL                                                       required > 1   bool NOT NULL

Values are computed as wide as they need to be, and brought to this type where a column of them is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_core.arrow_numpy import constant
from lance_core.expr import ast, decimals
from lance_core.expr.arithmetic import fits
from lance_core.expr.ast import Expr
from lance_core.expr.coerce import family_of
from lance_core.expr.common_type import common_type, compared_type, decimal_of, integer_type, shown_type
from lance_core.expr.evaluate import evaluate_value, is_cast_literal, type_of

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INT32 = frozenset({"length", "char_length", "character_length", "octet_length", "date_part", "datepart"})
_FINE_PARTS = ("epoch", "nanosecond", "nanoseconds", "nsec", "nsecs")
_UINT64 = frozenset({"array_length", "list_length", "cardinality"})
_NULL_AT_TIMES = frozenset({"random", "uuid", "try_cast_to_type"})
"""Nullable whatever they give, as the official library says."""


def field_of(name: str, expr: Expr, schema: pa.Schema) -> pa.Field[Any]:
    """The field of a column computed by an expression over a schema. Raises FilterError."""
    return pa.field(name, stored_type(expr, schema), nullable=is_nullable(expr, schema))


def stored_type(expr: Expr, schema: pa.Schema) -> pa.DataType:
    """The type a column computed by an expression has. Raises FilterError."""
    rule = _TYPES.get(type(expr))
    found = None if rule is None else rule(expr, schema)
    computed: pa.DataType = type_of(expr, schema)
    return computed if found is None else found


def is_nullable(expr: Expr, schema: pa.Schema) -> bool:
    """Whether a column computed by an expression may hold nulls."""
    if isinstance(expr, ast.Call) and expr.name in _NULL_AT_TIMES:
        return True
    if not ast.columns_of(expr):
        one_row: pa.RecordBatch = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["none"])
        return bool(evaluate_value(expr, one_row).null_count)
    rule = _NULLABLE.get(type(expr))
    return True if rule is None else rule(expr, schema)


def _arithmetic_type(expr: ast.Arithmetic, schema: pa.Schema) -> pa.DataType | None:
    if expr.op == "||":
        return _text_of([expr.left, expr.right], schema)
    if expr.op in ("<<", ">>"):
        return None  # what is computed has the right type
    left, right = (
        _operand(one, other, schema) if expr.bends else stored_type(one, schema)
        for one, other in ((expr.left, expr.right), (expr.right, expr.left))
    )
    if left is None or right is None:
        return None
    if pa.types.is_null(left) != pa.types.is_null(right) and {family_of(left), family_of(right)} <= {"null", "int"}:
        return right if pa.types.is_null(left) else left
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return _float_type(left, right)
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        found = integer_type(left, right)
        if found is not None:
            return found
        left = right = pa.uint64()
    if pa.types.is_decimal(left) and pa.types.is_decimal(right) and left.bit_width != right.bit_width:
        left = right = common_type((left, right))
    first, second = decimal_of(left), decimal_of(right)
    return None if first is None or second is None else decimals.result_of(expr.op, first, second)


def _operand(expr: Expr, other: Expr, schema: pa.Schema) -> pa.DataType | None:
    """The type of one side: a constant takes the type of the column on the other side, when it fits."""
    own = stored_type(expr, schema)
    if is_cast_literal(expr) and isinstance(other, ast.Column):
        beside = stored_type(other, schema)
        if pa.types.is_float16(beside):
            return own
        one_row: pa.RecordBatch = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["none"])
        return beside if fits(evaluate_value(expr, one_row)[0], beside) else own
    if not isinstance(expr, ast.Literal) or not isinstance(other, ast.Column):
        return own
    beside = stored_type(other, schema)
    if isinstance(expr.value, bool) or not isinstance(expr.value, (int, float)):
        return own
    if pa.types.is_floating(beside) or (pa.types.is_decimal(beside) and isinstance(expr.value, int)):
        return beside
    if pa.types.is_integer(beside) and isinstance(expr.value, int):
        try:
            constant(expr.value, beside)
        except (pa.ArrowInvalid, OverflowError):
            return own
        return beside
    return own


def _float_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if not all(family_of(each) in ("float", "int", "decimal") for each in (left, right)):
        return None
    return max((each for each in (left, right) if pa.types.is_floating(each)), key=lambda each: each.bit_width)


def _text_of(parts: list[Expr], schema: pa.Schema) -> pa.DataType | None:
    types = [stored_type(part, schema) for part in parts]
    wide = any(each == pa.large_string() for each in types)
    narrow = not any(family_of(each) == "text" and each != pa.string() for each in types)
    return pa.large_string() if wide else pa.string() if narrow else None


def _constant_of(expr: Expr) -> str:
    return str(expr.value).lower() if isinstance(expr, ast.Literal) else ""


def _call_type(expr: ast.Call, schema: pa.Schema) -> pa.DataType | None:
    if expr.name in ("date_part", "datepart") and _constant_of(expr.arguments[0]) in _FINE_PARTS:
        return None  # what is computed has the right type
    if expr.name in _INT32:
        return pa.int64() if stored_type(expr.arguments[-1], schema) == pa.large_string() else pa.int32()
    if expr.name in _UINT64:
        return pa.uint64()
    if expr.name == "concat":
        is_large = all(stored_type(item, schema) == pa.large_string() for item in expr.arguments)
        return pa.large_string() if is_large else pa.string()
    if expr.name == "concat_ws":
        return pa.string()
    if expr.name in ("abs", "log") and stored_type(expr.arguments[-1], schema) == pa.float16():
        return pa.float16()
    if expr.name == "levenshtein" and _is_view(expr.arguments[-1], schema):
        return pa.int32()
    if expr.name in _COMMON:
        first, last = _COMMON[expr.name]
        kinds = [stored_type(item, schema) for item in expr.arguments[first:last]]
        if expr.name in ("greatest", "least") and len(kinds) == 1:
            return kinds[0]
        if expr.name in ("nvl", "ifnull", "nvl2"):
            return shown_type(kinds)
        return compared_type(kinds) if expr.name in ("nullif", "greatest", "least") else common_type(kinds)
    return _of_arguments(expr, schema)


def _is_view(expr: Expr, schema: pa.Schema) -> bool:
    """Whether a text is a view officially: a part of one, or what a function makes of a dictionary."""
    if not isinstance(expr, ast.Call):
        return False
    names = {name.split(".", 1)[0] for name in ast.columns_of(expr)}
    return expr.name in _VIEWS or any(pa.types.is_dictionary(field.type) for field in schema if field.name in names)


_VIEWS = frozenset({"left", "right", "substr", "substring", "md5"})


def _of_arguments(expr: ast.Call | ast.ListOf | ast.Element, schema: pa.Schema) -> pa.DataType | None:
    """What an expression gives of columns that have the types its arguments are stored with: `abs(-i32)` is int32."""
    fields: list[pa.Field[Any]] = [*schema]

    def stand_in(part: Expr) -> Expr:
        if not ast.columns_of(part):
            return part
        kind = stored_type(part, schema)
        if kind == type_of(part, schema):
            return part
        fields.append(pa.field(f"\0{len(fields)}", kind))
        return ast.Column((fields[-1].name,))

    given = {name: getattr(expr, name) for name in _PARTS[type(expr)]}
    stood_for: dict[str, Any] = {
        name: tuple(map(stand_in, each)) if isinstance(each, tuple) else stand_in(each) for name, each in given.items()
    }
    if len(fields) == len(schema):
        return None  # what is computed has the right type
    found: pa.DataType = type_of(replace(expr, **stood_for), pa.schema(fields))
    return found


_PARTS: Mapping[type, tuple[str, ...]] = MappingProxyType(
    {ast.Call: ("arguments",), ast.ListOf: ("items",), ast.Element: ("item", "index")}
)


_COMMON: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    dict.fromkeys(("coalesce", "nullif", "ifnull", "nvl", "greatest", "least"), (0, None))
    | {"nvl2": (1, None), "if": (1, None)}
)
"""Functions whose result has the common type of their arguments, and which of them."""


_TYPES: Mapping[type, Callable[[Any, pa.Schema], pa.DataType | None]] = MappingProxyType(
    {
        ast.Arithmetic: _arithmetic_type,
        ast.Negate: lambda expr, schema: _own_type(stored_type(expr.item, schema)),
        ast.Call: _call_type,
        ast.ListOf: _of_arguments,
        ast.Element: _of_arguments,
    }
)


def _own_type(kind: pa.DataType) -> pa.DataType | None:
    return kind if kind in _SIGNED or pa.types.is_float16(kind) else None


def _column_nullable(expr: ast.Column, schema: pa.Schema) -> bool:
    if expr.path[0] not in schema.names:
        return False
    field = schema.field(expr.path[0])
    nullable = field.nullable
    for name in expr.path[1:]:
        field = field.type.field(name)
        nullable = nullable or field.nullable
    return bool(nullable)


def _any(*names: str) -> Callable[[Any, pa.Schema], bool]:
    def rule(expr: Any, schema: pa.Schema) -> bool:
        found = [getattr(expr, name) for name in names]
        parts = [part for each in found for part in (each if isinstance(each, tuple) else (each,))]
        return any(is_nullable(part, schema) for part in parts)

    return rule


def _call_nullable(expr: ast.Call, schema: pa.Schema) -> bool:
    if expr.name in ("coalesce", "ifnull", "nvl"):
        return all(is_nullable(item, schema) for item in expr.arguments)
    if expr.name == "nvl2":
        return any(is_nullable(item, schema) for item in expr.arguments[1:])
    if expr.name == "cast_to_type":
        return is_nullable(expr.arguments[0], schema)
    if expr.name in ("map", "make_map", "arrow_field"):
        return any(is_nullable(item, schema) for item in expr.arguments)
    return True


_NULLABLE: Mapping[type, Callable[[Any, pa.Schema], bool]] = MappingProxyType(
    {
        ast.Column: _column_nullable,
        ast.IsNull: lambda _expr, _schema: False,
        ast.IsBool: _any("item"),
        ast.Distinct: _any("left", "right"),
        ast.Compare: _any("left", "right"),
        ast.And: _any("items"),
        ast.Or: _any("items"),
        ast.Not: _any("item"),
        ast.In: _any("item", "values"),
        ast.Like: _any("item", "pattern"),
        ast.Arithmetic: _any("left", "right"),
        ast.Negate: _any("item"),
        ast.Cast: lambda expr, schema: expr.safe or is_nullable(expr.item, schema),
        ast.Call: _call_nullable,
    }
)
