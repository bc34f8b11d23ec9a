"""Rows in the order of their values: `order_by` of a scan.

::

    order_by=["name", ColumnOrdering("x", ascending=False, nulls_first=True)]
    floats      -nan < -inf < -0.0 < 0.0 < inf < nan, as the official library sorts them
    nulls       last unless nulls_first, whichever way the values go

Only the columns sorted by and the rows' addresses are read first when there is a limit; then the rows that are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import InputError


@dataclass(frozen=True, slots=True)
class ColumnOrdering:
    """A column (dotted for fields of structs) that rows are sorted by."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


def parse_order(value: Any) -> tuple[ColumnOrdering, ...]:
    """What a user gave as `order_by`: names and orderings, or one of them. Raises InputError."""
    if value is None:
        return ()
    items = [value] if isinstance(value, str) or hasattr(value, "column_name") else value
    if not isinstance(items, Iterable):
        raise InputError(f"order_by must be a list of columns, got {value!r}", cure='Write order_by=["name"].')
    return tuple(_parsed(item) for item in items)


def _parsed(item: Any) -> ColumnOrdering:
    if isinstance(item, str):
        return ColumnOrdering(item)
    name = getattr(item, "column_name", None)
    if not isinstance(name, str):
        raise InputError(f"order_by may contain names and ColumnOrdering, got {item!r}", cure='Write order_by=["name"].')
    # Another library's ordering has the same fields.
    return ColumnOrdering(name, bool(getattr(item, "ascending", True)), bool(getattr(item, "nulls_first", False)))


def key_columns(order: Iterable[ColumnOrdering]) -> list[str]:
    """The columns sorted by, each once."""
    return [*dict.fromkeys(item.column_name for item in order)]


def sorted_indices(table: pa.Table, order: Iterable[ColumnOrdering]) -> Any:
    """The positions of the rows in order; rows that are equal keep theirs. InputError for types that have no order."""
    keys: dict[str, Any] = {}
    directions: list[tuple[str, str]] = []
    for number, item in enumerate(order):
        if item.column_name not in table.column_names:
            raise InputError(f"no column {item.column_name!r} to sort by", cure="Pass a column of the table.")
        column = table.column(item.column_name)
        if column.null_count:
            # Where nulls go is a key of its own, because the sort puts those of all columns on the same side.
            keys[f"{number}?"] = column.is_null().cast(pa.int8())
            directions.append((f"{number}?", "descending" if item.nulls_first else "ascending"))
        if not pa.types.is_null(column.type):
            keys[str(number)] = _comparable(column, item.column_name)
            directions.append((str(number), "ascending" if item.ascending else "descending"))
    if not directions:
        return arrow_of(np.arange(table.num_rows))
    return pc.sort_indices(pa.table(keys), sort_keys=cast("Any", directions))


def _comparable(column: Any, name: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        return _bits(column)
    if pa.types.is_nested(column.type) or isinstance(column.type, pa.ExtensionType):
        raise InputError(f"column {name!r} ({column.type}) cannot be sorted by", cure="Sort by one of its fields.")
    return column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column


def _bits(column: Any) -> Any:
    """Whole numbers that compare as the floats do, nan and the two zeros included."""
    filled = column.combine_chunks().fill_null(0)
    array = filled if isinstance(filled, pa.Array) else pa.concat_arrays(filled.chunks)
    values: Any = numpy_of(array, may_copy=True)
    size = values.dtype.itemsize
    bits = values.view(f"i{size}").astype(np.int64)
    return arrow_of(np.where(bits < 0, bits ^ ((1 << (8 * size - 1)) - 1), bits))
