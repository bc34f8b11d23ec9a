"""Classify the parts of a filter by the kinds of index that can answer them.

::

    a > 3 OR a IS NULL          a test of values
    array_has(tags, 'x')        a test of a list's elements
    contains(s, 'abc')          a test of a text's inside
"""

from __future__ import annotations

from collections.abc import Callable

from lance_core.expr import ast
from lance_core.expr.ast import Expr


def is_value_test(part: Expr) -> bool:
    """A test of one column's values against constants; not of what is inside lists."""
    return len(ast.columns_of(part)) == 1 and _is_value_test(part)


def _is_value_test(part: Expr) -> bool:
    if isinstance(part, (ast.And, ast.Or)):
        return all(_is_value_test(item) for item in part.items)
    if isinstance(part, ast.Not):
        return _is_value_test(part.item)
    if isinstance(part, ast.Compare):
        return comparison_of(part) is not None
    if isinstance(part, ast.In):
        return isinstance(part.item, ast.Column) and all(is_constant(value) for value in part.values)
    if isinstance(part, ast.Like):
        return isinstance(part.item, ast.Column) and isinstance(part.pattern, ast.Literal)
    if isinstance(part, (ast.IsNull, ast.IsBool)):
        return isinstance(part.item, ast.Column)
    if isinstance(part, ast.Call):
        return part.name in _TEXT_TESTS and isinstance(part.arguments[0], ast.Column) and is_constant(part.arguments[1])
    return isinstance(part, ast.Column)


def is_constant(expr: Expr) -> bool:
    """Whether it is made of constants alone: `timestamp '2020-01-01'`, `2 + 3`."""
    return all(isinstance(node, (ast.Literal, ast.Cast, ast.Negate, ast.Arithmetic)) for node in ast.walk(expr))


def comparison_of(part: Expr) -> tuple[str, Expr] | None:
    """`column op constant` as (op, constant), whichever side the column is written on."""
    if not isinstance(part, ast.Compare):
        return None
    if isinstance(part.left, ast.Column) and is_constant(part.right):
        return part.op, part.right
    if isinstance(part.right, ast.Column) and is_constant(part.left):
        return _MIRRORED[part.op], part.left
    return None


_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = ("starts_with", "contains")
HAS_ONE = ("array_has", "array_contains", "list_has", "list_contains")
HAS_ANY, HAS_ALL = "array_has_any", "array_has_all"


def elements_of(part: Expr) -> tuple[ast.Literal, ...] | None:
    """The constants a list is searched for; None when the part is no such test, or one of them is null."""
    if not isinstance(part, ast.Call) or len(part.arguments) != 2 or not isinstance(part.arguments[0], ast.Column):
        return None
    wanted = part.arguments[1]
    items: tuple[Expr, ...]
    if part.name in HAS_ONE:
        items = (wanted,)
    elif part.name in (HAS_ANY, HAS_ALL) and isinstance(wanted, ast.ListOf):
        items = wanted.items
    else:
        return None
    found = tuple(item for item in items if isinstance(item, ast.Literal) and item.value is not None)
    return found if found and len(found) == len(items) else None


def text_inside(part: Expr) -> str | None:
    """The text that `contains(column, text)` looks for."""
    if not isinstance(part, ast.Call) or part.name != "contains" or len(part.arguments) != 2:
        return None
    column, text = part.arguments
    if isinstance(column, ast.Column) and isinstance(text, ast.Literal) and isinstance(text.value, str):
        return text.value
    return None


def made_of(part: Expr, is_leaf: Callable[[Expr], bool]) -> bool:
    """Whether the part is such a test, or AND, OR of such tests."""
    if isinstance(part, (ast.And, ast.Or)):
        return all(made_of(item, is_leaf) for item in part.items)
    return is_leaf(part)
