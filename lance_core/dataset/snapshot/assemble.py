"""Assemble the columns of a fragment from several data files, nulls where no file has a field.

::

    file 1 has a, s.x      file 2 has s.y, b      the table wants a, s{x, y, z}, c
    -> a from file 1, s zipped from both with z null, c null

Files agree on the rows; structs and lists of one column agree on their shape, so the first file that has one gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.pick import take


def assemble(parts: Sequence[pa.RecordBatch], target: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """One batch of `target` from batches of the same rows. `num_rows` counts when there are no parts at all."""
    for part in parts:
        if part.num_rows != num_rows:
            raise CorruptFileError(f"the data files of a fragment have {part.num_rows} and {num_rows} rows")
    if len(parts) == 1 and parts[0].schema.equals(target):
        return parts[0]
    arrays = [_column(field, [_find(part, field.name) for part in parts], num_rows) for field in target]
    if not arrays:
        return empty_columns(num_rows)
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def side_by_side(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[Sequence[pa.RecordBatch]]:
    """Batches of the same rows from each stream, however each of them is cut. CorruptFileError where one has fewer rows."""
    if len(streams) == 1:
        yield from ((batch,) for batch in streams[0])
        return
    held: list[pa.RecordBatch | None] = [None] * len(streams)
    while True:
        for number, stream in enumerate(streams):
            if held[number] is None:
                held[number] = next(stream, None)
        found = [batch for batch in held if batch is not None]
        if not found:
            return
        if len(found) < len(streams):
            raise CorruptFileError("the data files of a fragment have different numbers of rows")
        count = min(batch.num_rows for batch in found)
        yield [batch if batch.num_rows == count else batch.slice(0, count) for batch in found]
        held = [batch.slice(count) if batch.num_rows > count else None for batch in found]


def empty_columns(num_rows: int) -> pa.RecordBatch:
    """A batch without columns that still knows its number of rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(num_rows)], names=["_"]).select([])


def joined_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables one below the other. Without columns there are rows all the same, which pyarrow would forget."""
    if tables[0].num_columns:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return pa.Table.from_batches([empty_columns(sum(table.num_rows for table in tables))])


def _find(part: pa.RecordBatch, name: str) -> Any:
    index = part.schema.get_field_index(name)
    return None if index < 0 else part.column(index)


def _column(field: pa.Field[Any], found: Sequence[Any], num_rows: int) -> Any:
    """The column from those files that have some of it."""
    present = [array for array in found if array is not None]
    nulls: Any = pa.nulls
    if not present:
        return nulls(num_rows, field.type)
    if len(present) == 1 and present[0].type.equals(field.type):
        return present[0]
    first = present[0]
    if pa.types.is_struct(field.type):
        return _struct(field.type, present)
    if isinstance(first, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        return _list(field.type, present)
    return first.cast(field.type)


def _struct(target: Any, present: Sequence[Any]) -> Any:
    first = present[0]
    children = []
    for child in target:
        found = [_child(array, child.name) for array in present]
        children.append(_column(child, found, len(first)))
    return pa.StructArray.from_arrays(children, fields=list(target), mask=first.is_null())


def _child(array: Any, name: str) -> Any:
    index = array.type.get_field_index(name)
    return None if index < 0 else array.field(index)


def _list(target: Any, present: Sequence[Any]) -> Any:
    first = present[0]
    if isinstance(first, pa.FixedSizeListArray):
        values = _column(target.value_field, [array.flatten() for array in present], len(first.flatten()))
        return pa.FixedSizeListArray.from_arrays(values, type=target, mask=first.is_null())
    # Lists that start at zero: offsets of slices would not fit their flattened values.
    compact = [pa.concat_arrays([array]) if array.offset == 0 else _compact(array) for array in present]
    values = _column(target.value_field, [array.values for array in compact], len(compact[0].values))
    return type(first).from_arrays(compact[0].offsets, values, type=target, mask=compact[0].is_null())


def _compact(array: Any) -> Any:
    return take(array, pa.array(range(len(array)), pa.int64()))
