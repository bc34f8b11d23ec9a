"""Decide by minimum, maximum and null count whether a page or a zone may hold rows that satisfy a test.

::

    a > 3            ->  max > 3
    a = 3            ->  (min IS NULL OR min <= 3) AND max >= 3
    a IS NULL        ->  null_count > 0

The question is put as a filter over the summaries and evaluated like any other, so that both follow one set of rules. A
minimum of null says nothing (pages of a B-tree begin with their nulls); a maximum of null says that there are only nulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow_numpy import true_of
from lance_core.expr import ast, evaluate
from lance_core.expr.ast import Expr
from lance_core.index.scalar.predicates import comparison_of

MIN, MAX, NULLS, NANS = (ast.Column((name,)) for name in ("min", "max", "null_count", "nan_count"))
_PRESENT: Expr = ast.Not(ast.IsNull(MAX))
_ANY: Expr = ast.Literal(True)
_INVERSE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MANY_VALUES = 200


def may_match(part: Expr, summaries: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """For each row of `summaries` (min, max, null_count[, nan_count]) whether rows behind it may satisfy `part`."""
    if summaries.num_rows == 0:
        return np.zeros(0, np.bool_)
    question = _may(part, has_nans="nan_count" in summaries.schema.names)
    known: Any = evaluate(question, summaries)
    found: npt.NDArray[np.bool_] = true_of(known)
    return found


def prefix_of(pattern: str, escape: str) -> str:
    """The text every match of a LIKE pattern begins with.

    >>> prefix_of("ab%c", "")
    'ab'
    """
    end = min((pattern.index(mark) for mark in ("%", "_", escape) if mark and mark in pattern), default=len(pattern))
    return pattern[:end]


def _may(part: Expr, *, has_nans: bool) -> Expr:
    if isinstance(part, (ast.And, ast.Or)):
        return type(part)(tuple(_may(item, has_nans=has_nans) for item in part.items))
    if isinstance(part, ast.Not):
        return _may_not(part.item, has_nans=has_nans)
    comparison = comparison_of(part)
    if comparison is not None:
        return _or_nan(_compared(*comparison), has_nans)
    if isinstance(part, ast.In):
        if len(part.values) > _MANY_VALUES:
            return _or_nan(_PRESENT, has_nans)
        return _or_nan(ast.Or(tuple(_compared("=", value) for value in part.values)), has_nans)
    if isinstance(part, ast.IsNull):
        return ast.Compare(">", NULLS, ast.Literal(0))
    if isinstance(part, ast.Like) and isinstance(part.pattern, ast.Literal):
        return _begins(part.pattern.value, part.escape) if not part.ignore_case else _PRESENT
    if isinstance(part, ast.Call) and part.name == "starts_with" and isinstance(part.arguments[1], ast.Literal):
        return _begins(part.arguments[1].value, "", whole=True)
    return _ANY


def _may_not(item: Expr, *, has_nans: bool) -> Expr:
    """A negated test. Comparisons, IN and LIKE are null for null, so neither they nor their contraries select nulls."""
    if isinstance(item, ast.Not):
        return _may(item.item, has_nans=has_nans)
    if isinstance(item, (ast.And, ast.Or)):
        other = ast.Or if isinstance(item, ast.And) else ast.And
        return other(tuple(_may_not(child, has_nans=has_nans) for child in item.items))
    comparison = comparison_of(item)
    if comparison is not None:
        return _or_nan(_compared(_INVERSE[comparison[0]], comparison[1]), has_nans)
    return _or_nan(_PRESENT, has_nans) if isinstance(item, (ast.In, ast.Like, ast.IsNull)) else _ANY


def _compared(op: str, value: Expr) -> Expr:
    at_most = ast.Or((ast.IsNull(MIN), ast.Compare("<=", MIN, value)))
    if op == "=":
        return ast.And((at_most, ast.Compare(">=", MAX, value)))
    if op == "<":
        return ast.And((_PRESENT, ast.Or((ast.IsNull(MIN), ast.Compare("<", MIN, value)))))
    if op == "<=":
        return ast.And((_PRESENT, at_most))
    return _PRESENT if op == "!=" else ast.Compare(op, MAX, value)


def _or_nan(question: Expr, has_nans: bool) -> Expr:
    return ast.Or((question, ast.Compare(">", NANS, ast.Literal(0)))) if has_nans else question


def _begins(value: object, escape: str, *, whole: bool = False) -> Expr:
    if not isinstance(value, str):
        return _PRESENT
    prefix = value if whole else prefix_of(value, escape)
    if not prefix:
        return _PRESENT
    above = ast.Compare(">=", MAX, ast.Literal(prefix))
    last = ord(prefix[-1]) + 1
    if last > 0x10FFFF or 0xD800 <= last <= 0xDFFF:
        return above
    after = ast.Literal(prefix[:-1] + chr(last))
    return ast.And((above, ast.Or((ast.IsNull(MIN), ast.Compare("<", MIN, after)))))
