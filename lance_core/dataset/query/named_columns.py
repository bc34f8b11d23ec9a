"""Which columns of a table a query may want, by its text alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COUNT_ALL = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|[()*]", re.DOTALL)
_STANDS_FOR_COLUMNS = frozenset({"*", "natural", "columns", "table", "pivot", "unpivot", "describe", "summarize"})
_NEXT_QUERY = frozenset({"union", "except", "intersect"})


def named_columns(sql: str, names: Sequence[str]) -> list[str]:
    """The columns that a query may want: those whose names are in it; all if it may mean columns without naming them, by a
    star except in count(*), NATURAL JOIN, FROM without SELECT and the like."""
    text = _COUNT_ALL.sub(" count ", sql).lower()
    named = [*names] if _means_all(text) else [name for name in names if name.lower() in text]
    return named or [*names][:1]  # an engine needs a column to count rows


def _means_all(text: str) -> bool:
    """Whether a query may mean columns that it does not name; FROM without a SELECT before it means all."""
    has_select = [False]
    for word in _WORD.findall(text):
        if word in _STANDS_FOR_COLUMNS or (word == "from" and not has_select[-1]):
            return True
        if word == "(":
            has_select.append(False)
        elif word == ")" and len(has_select) > 1:
            has_select.pop()
        elif word == "select" or word in _NEXT_QUERY:
            has_select[-1] = word == "select"
    return False
