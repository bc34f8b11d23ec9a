"""Spark's predicates, as the jar describes them, -> SQL for a Lance scan; None for one that is left to Spark alone.

::

    {"op": "=", "column": ["s", "k"], "values": [{"type": "integer", "value": 3}]}    ->  "`s`.`k` = 3"
    {"op": "OR", "of": [...]}                                                         ->  "(..) OR (..)"
    {"op": "TRUE"}                                                                    ->  "TRUE"

The rules of `filters` decide what surely means the same. Spark applies all of them again, so a scan may read more rows,
never less.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from lance_core.spark import filters

_EPOCH = dt.date(1970, 1, 1)
_NAMES = {
    "=": "EqualTo",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    "IN": "In",
    "IS_NULL": "IsNull",
    "IS_NOT_NULL": "IsNotNull",
}


def to_sql(described: Mapping[str, Any], schema: pa.Schema) -> str | None:
    """One predicate over a table's Arrow schema."""
    op = described["op"]
    if op == "TRUE":
        return "TRUE"
    if op in ("AND", "OR"):
        parts = [to_sql(part, schema) for part in described["of"]]
        known = [f"({part})" for part in parts if part is not None]
        return f" {op} ".join(known) if len(known) == len(parts) else None
    if op == "NOT":
        inner = to_sql(described["of"][0], schema)
        return None if inner is None else f"NOT ({inner})"
    if op == "<>":
        inner = to_sql({**described, "op": "="}, schema)
        return None if inner is None else f"NOT ({inner})"
    name = _NAMES.get(op)
    if name is None:
        return None
    values = tuple(_value(item) for item in described["values"])
    item: Any = SimpleNamespace(
        attribute=tuple(described["column"]), value=values if name == "In" else next(iter(values), None)
    )
    return filters.sql_of(name, item, schema)


def all_to_sql(described: Sequence[Mapping[str, Any]], schema: pa.Schema) -> str | None:
    """The conjunction of some predicates; None where one of them has no surely equal meaning."""
    parts = [to_sql(item, schema) for item in described]
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else " AND ".join(f"({part})" for part in known) or "TRUE"


def _value(item: Mapping[str, Any]) -> Any:
    value = item["value"]
    if item["type"] != "date":
        return value
    try:
        return _EPOCH + dt.timedelta(days=value)
    except OverflowError:  # Spark's days go further than Python's
        return None
