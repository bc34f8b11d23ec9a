"""Columns as Python's values, row by row, and back, for functions that Arrow has no kernel for.

::

    [1969-12-31, null] (date32) -> -1, None -> [1969-12-31, null]        a list of timestamps -> a list of their ticks

Points in time and lengths of it are their ticks: Python has no value for the year 10000, nor for a nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat as forever
from typing import Any

import pyarrow as pa

Value = Any
_repeat: Any = pa.repeat


def bare(kind: Any) -> Any:
    """A type with integers in place of times, at any depth."""
    types = pa.types
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind) or types.is_date64(kind):
        return pa.int64()
    if types.is_list(kind):
        return pa.list_(_bare_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_bare_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_bare_field(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([_bare_field(kind.field(number)) for number in range(kind.num_fields)])
    if types.is_map(kind):
        make: Any = pa.map_
        return make(_bare_field(kind.key_field), _bare_field(kind.item_field), keys_sorted=kind.keys_sorted)
    return kind


def _bare_field(field: Any) -> Any:
    return field.with_type(bare(field.type))


def items_of(value: Value) -> list[Any]:
    """The values of a column; of a constant, the one."""
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return [None]
        return [value.as_py()] if bare(value.type) == value.type else items_of(_repeat(value, 1))
    kind = bare(value.type)
    return list((value if kind == value.type else value.view(kind)).to_pylist())


def rows_of(values: Sequence[Value]) -> Iterable[tuple[Any, ...]]:
    """The values of each row; of one row, when all are constants."""
    if all(isinstance(value, pa.Scalar) for value in values):
        return [tuple(items_of(value)[0] for value in values)]
    columns = (forever(items_of(value)[0]) if isinstance(value, pa.Scalar) else items_of(value) for value in values)
    return zip(*columns, strict=False)


def array_of_rows(found: Iterable[Any], kind: pa.DataType) -> Any:
    """A column of values as `items_of` gives them."""
    made = pa.array([*found], bare(kind))
    return made if made.type == kind else made.view(kind)


def made_of(found: Iterable[Any], kind: pa.DataType, values: Sequence[Value]) -> Value:
    """The results as a column; as a constant, when all values are."""
    made = array_of_rows(found, kind)
    return made[0] if all(isinstance(value, pa.Scalar) for value in values) else made
