"""Spark's pushed filters -> SQL for a Lance scan; a filter without exactly the same meaning stays with Spark.

::

    EqualTo(("a",), 3), In(("b", "c"), ("x", "y")), IsNotNull(("a",))
    ->  "(`a` = 3) AND (`b`.`c` IN ('x', 'y')) AND (`a` IS NOT NULL)"

Left to Spark: comparisons of floating-point columns (Spark holds NaN equal to itself and above all numbers), of timestamps
(a literal arrives without saying in which zone) and of decimals.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

_MAX_IN = 1000


def split_filters(filters: Iterable[Any], schema: pa.Schema) -> tuple[str | None, list[Any]]:
    """(SQL of what the scan does, filters that Spark must still evaluate). `schema`: the table's Arrow schema."""
    taken: list[str] = []
    left: list[Any] = []
    for item in filters:
        text = to_sql(item, schema)
        if text is None:
            left.append(item)
        else:
            taken.append(f"({text})")
    return (" AND ".join(taken) or None), left


def to_sql(item: Any, schema: pa.Schema) -> str | None:
    """One filter as SQL, None when it stays with Spark. Nulls: both sides know three values, and null selects nothing."""
    return sql_of(type(item).__name__, item, schema)


def sql_of(name: str, item: Any, schema: pa.Schema) -> str | None:
    """`to_sql` of something with the fields of the filter class of that name."""
    maker = _MAKERS.get(name)
    return None if maker is None else maker(item, schema)


def _column(path: tuple[str, ...], schema: pa.Schema) -> tuple[str, Any] | None:
    """Quoted name and Arrow type of a column, None where the table has no such plain column."""
    kind: Any = None
    fields: Mapping[str, Any] = {field.name: field for field in schema}
    for part in path:
        field = fields.get(part)
        if field is None or "`" in part or "." in part:
            return None
        kind = field.type
        fields = (
            {kind.field(index).name: kind.field(index) for index in range(kind.num_fields)} if pt.is_struct(kind) else {}
        )
    return ".".join(f"`{part}`" for part in path), kind


def _literal(value: Any, kind: Any) -> str | None:
    """SQL text of a value compared with a column of a type, None where the comparison is not surely the same."""
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE") if pt.is_boolean(kind) else None
    if isinstance(value, int):
        return str(value) if pt.is_integer(kind) else None
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'" if pt.is_string(kind) or pt.is_large_string(kind) else None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"DATE '{value.isoformat()}'" if pt.is_date32(kind) else None
    return None


def _comparison(operator: str) -> Callable[[Any, pa.Schema], str | None]:
    def make(item: Any, schema: pa.Schema) -> str | None:
        found = _column(item.attribute, schema)
        literal = None if found is None else _literal(item.value, found[1])
        return None if found is None or literal is None else f"{found[0]} {operator} {literal}"

    return make


def _in(item: Any, schema: pa.Schema) -> str | None:
    found = _column(item.attribute, schema)
    if found is None or not item.value or len(item.value) > _MAX_IN:
        return None
    literals = [_literal(value, found[1]) for value in item.value]
    known = [literal for literal in literals if literal is not None]
    return f"{found[0]} IN ({', '.join(known)})" if len(known) == len(literals) else None


def _null_test(test: str) -> Callable[[Any, pa.Schema], str | None]:
    def make(item: Any, schema: pa.Schema) -> str | None:
        found = _column(item.attribute, schema)
        return None if found is None else f"{found[0]} {test}"

    return make


def _not(item: Any, schema: pa.Schema) -> str | None:
    inner = to_sql(item.child, schema)
    return None if inner is None else f"NOT ({inner})"


_MAKERS: Mapping[str, Callable[[Any, pa.Schema], str | None]] = {
    "EqualTo": _comparison("="),
    "GreaterThan": _comparison(">"),
    "GreaterThanOrEqual": _comparison(">="),
    "LessThan": _comparison("<"),
    "LessThanOrEqual": _comparison("<="),
    "In": _in,
    "IsNull": _null_test("IS NULL"),
    "IsNotNull": _null_test("IS NOT NULL"),
    "Not": _not,
}
"""By class name of `pyspark.sql.datasource`'s filters; what is absent (such as string patterns) stays with Spark."""
