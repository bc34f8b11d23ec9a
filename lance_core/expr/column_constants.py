"""Arithmetic on constants right of a column: each constant takes the type of the column first, as officially.

::

    f64 * (1 / 2) -> f64 * 0.5       i64 * (1 / 2) -> i64 * 0       dec + (7 / 2) -> dec + 3.500000, a decimal(16, 6)
    f64 = 1 / 2   -> f64 = 0.5       f64 IN (1 / 2, 3) -> f64 IN (0.5, 3)

Left of a column, and beside anything else than one, constants keep their own types: (1 / 2) * f64 is 0. So they do in
arithmetic that is part of something: abs(f64 * (1 / 2)) is 0. A comparison means the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow_numpy import constant
from lance_core.errors import FilterError
from lance_core.expr import ast
from lance_core.expr.arithmetic import calculate
from lance_core.expr.ast import Expr
from lance_core.expr.coerce import Value, cast
from lance_core.expr.evaluate import type_of
from lance_core.shortage import ARROW_ERRORS

_OPS = frozenset("+-*/%")


def beside_columns(expr: Expr, schema: pa.Schema, *, whole: bool = True) -> Expr:
    """The expression with one constant for all arithmetic on constants that stands right of a column.

    `whole`: the expression stands alone, or below AND and OR.
    """
    if isinstance(expr, (ast.Column, ast.Literal, ast.ArrowExpression)):
        return expr
    if isinstance(expr, (ast.Compare, ast.Distinct)) or (whole and isinstance(expr, ast.Arithmetic)):
        if isinstance(expr.left, ast.Column):
            return replace(expr, right=_typed(expr.left, expr.right, schema))
    elif isinstance(expr, ast.In):
        if isinstance(expr.item, ast.Column) and any(type(value) is ast.Arithmetic for value in expr.values):
            return replace(expr, values=tuple(_typed(expr.item, value, schema) for value in expr.values))
        return expr
    below = whole and isinstance(expr, (ast.And, ast.Or))
    changed: dict[str, Any] = {}
    for field in fields(expr):
        value = getattr(expr, field.name)
        if isinstance(value, ast.NODES):
            changed[field.name] = beside_columns(value, schema, whole=below)
        elif isinstance(value, tuple) and any(isinstance(entry, ast.NODES) for entry in value):
            changed[field.name] = tuple(beside_columns(entry, schema, whole=below) for entry in value)
    return replace(expr, **changed) if changed else expr


def _typed(column: ast.Column, right: Expr, schema: pa.Schema) -> Expr:
    """What stands right of a column: one constant, where it is arithmetic on numbers that are written out."""
    if not isinstance(right, ast.Arithmetic) or ast.columns_of(right):
        return right if isinstance(right, ast.Literal) else beside_columns(right, schema, whole=False)
    return constant_beside(type_of(column, schema), right)


def constant_beside(kind: pa.DataType, right: Expr) -> Expr:
    """The constant that arithmetic on numbers is beside a column of a type; what is none stays as it is.

    >>> constant_beside(pa.float64(), ast.Arithmetic("/", ast.Literal(1), ast.Literal(2)))
    Literal(value=0.5)
    """
    if pa.types.is_floating(kind):
        found = _value_of(right, lambda number: cast(constant(float(number), pa.float64()), kind, safe=False))
        return right if found is None else ast.Literal(found.as_py())
    if pa.types.is_decimal(kind):
        found = _value_of(right, lambda number: _exactly(number, kind))
        if found is not None:
            return ast.Cast(ast.Literal(str(found)), "decimal", (found.type.precision, found.type.scale))
    found = _value_of(right, _own)
    return right if found is None else ast.Literal(found.as_py())


def _own(number: float) -> Any:
    return constant(number, pa.int64() if isinstance(number, int) else pa.float64())


def _exactly(number: float, kind: Any) -> Any:
    if isinstance(number, float):
        raise FilterError("a float is no decimal")
    return cast(cast(constant(number, pa.int64()), pa.decimal128(20, 0)), kind)


def _value_of(expr: Expr, convert: Callable[[float], Value]) -> Any:
    """The value of arithmetic on numbers; None of anything else, and where it has none."""
    try:
        return _reckoned(expr, convert)
    except (*ARROW_ERRORS, FilterError, ValueError, OverflowError):
        return None


def _reckoned(expr: Expr, convert: Callable[[float], Value]) -> Any:
    if isinstance(expr, ast.Literal) and isinstance(expr.value, (int, float)) and not isinstance(expr.value, bool):
        return convert(expr.value)
    if not isinstance(expr, ast.Arithmetic) or expr.op not in _OPS:
        raise FilterError("no arithmetic on numbers")
    return calculate(expr.op, _reckoned(expr.left, convert), _reckoned(expr.right, convert), bends=False)
