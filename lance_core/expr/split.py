"""Which parts of a filter an index or a zone map may answer, and what is left for the scan.

::

    split(a > 3 AND s LIKE 'x%' AND a < b, {"a", "s"})
    -> answerable (a > 3, s LIKE 'x%')     residual a < b

A filter is a conjunction of parts; a part is answerable when it tests exactly one indexed column against constants.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lance_core.expr import ast
from lance_core.expr.ast import Expr


@dataclass(frozen=True, slots=True)
class Split:
    """`answerable` parts must all hold, and so must `residual` (None when nothing is left)."""

    answerable: tuple[Expr, ...]
    residual: Expr | None


@dataclass(frozen=True, slots=True)
class Bound:
    """`column op value`, the column on the left: what page statistics and ordered indices understand."""

    column: str
    op: str
    value: object


def split(expr: Expr, indexed: Collection[str]) -> Split:
    """Divide a filter by whether an index on one of the `indexed` columns (dotted paths) may answer each part."""
    answerable: list[Expr] = []
    rest: list[Expr] = []
    for part in ast.conjuncts(expr):
        (answerable if _is_answerable(part, indexed) else rest).append(part)
    return Split(tuple(answerable), _join(rest))


def _join(parts: list[Expr]) -> Expr | None:
    if len(parts) > 1:
        return ast.And(tuple(parts))
    return parts[0] if parts else None


def _is_answerable(part: Expr, indexed: Collection[str]) -> bool:
    columns = ast.columns_of(part)
    return len(columns) == 1 and columns[0] in indexed and _is_test(part)


def _is_test(part: Expr) -> bool:
    """A test of a column against constants, or AND, OR, NOT of such tests."""
    if isinstance(part, (ast.And, ast.Or)):
        return all(_is_test(item) for item in part.items)
    if isinstance(part, ast.Not):
        return _is_test(part.item)
    if isinstance(part, ast.Compare):
        return bound_of(part) is not None
    if isinstance(part, ast.In):
        return isinstance(part.item, ast.Column) and all(isinstance(value, ast.Literal) for value in part.values)
    if isinstance(part, ast.Like):
        return isinstance(part.item, ast.Column) and isinstance(part.pattern, ast.Literal)
    if isinstance(part, ast.IsNull):
        return isinstance(part.item, ast.Column)
    if isinstance(part, ast.Call):
        return _is_indexable_call(part)
    return isinstance(part, (ast.Column, ast.IsBool))


_INDEXABLE_CALLS = frozenset(
    {"array_has", "array_contains", "list_has", "list_contains", "array_has_any", "array_has_all", "contains", "starts_with"}
)


def _is_indexable_call(part: ast.Call) -> bool:
    first, *others = part.arguments or (ast.Literal(None),)
    constants = all(isinstance(other, (ast.Literal, ast.ListOf)) for other in others)
    return part.name in _INDEXABLE_CALLS and isinstance(first, ast.Column) and constants


_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bound_of(part: Expr) -> Bound | None:
    """The part as `column op constant` whichever side the column is written on; None when it is something else.

    >>> bound_of(ast.Compare("<", ast.Literal(1), ast.Column(("a",))))
    Bound(column='a', op='>', value=1)
    """
    if not isinstance(part, ast.Compare):
        return None
    if isinstance(part.left, ast.Column) and isinstance(part.right, ast.Literal):
        return Bound(part.left.name, part.op, part.right.value)
    if isinstance(part.right, ast.Column) and isinstance(part.left, ast.Literal):
        return Bound(part.right.name, _MIRRORED[part.op], part.left.value)
    return None
