"""Filters: SQL text or pyarrow expressions in, selected rows out.

::

    expr = parse_filter("a > 3 and b is not null", schema)
    columns_of(expr)         -> ("a", "b")
    evaluate(expr, batch)    -> pa.BooleanArray, null where not known
"""

from __future__ import annotations

from lance_core.expr.ast import Expr, columns_of, conjuncts
from lance_core.expr.evaluate import evaluate, evaluate_value, type_of
from lance_core.expr.from_arrow import from_pyarrow
from lance_core.expr.parse import parse_filter, parse_value
from lance_core.expr.result_type import field_of
from lance_core.expr.split import Bound, Split, bound_of, split
from lance_core.expr.system import SYSTEM_COLUMNS

__all__ = [
    "SYSTEM_COLUMNS",
    "Bound",
    "Expr",
    "Split",
    "bound_of",
    "columns_of",
    "conjuncts",
    "evaluate",
    "evaluate_value",
    "field_of",
    "from_pyarrow",
    "parse_filter",
    "parse_value",
    "split",
    "type_of",
]
