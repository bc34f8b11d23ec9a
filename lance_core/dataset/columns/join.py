"""`merge`: new columns from another table, found by a key. A left join that keeps this table's rows where they are.

::

    a   b         k    z                  a   b   z
    1   x         3    c        on a = k  1   x   null
    3   y                                 3   y   c

Null keys find null keys. Keys that occur more than once in the other table are refused: which row would count?
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.cast import without_views
from lance_core.arrow.shown import shown
from lance_core.arrow_numpy import numpy_of
from lance_core.dataset.columns.evolve import NewColumns, add_columns, stage_add
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.dataset.write.sources import open_source
from lance_core.errors import InputError
from lance_core.pick import take


def join_columns(snapshot: Snapshot, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None) -> Snapshot:
    """Add the columns of `data`, which is held in memory. Rows without a partner get nulls.

    Raises InputError for columns that are not there or there already, keys of other types, keys that occur twice.
    """
    return add_columns(snapshot, _joining(snapshot, data, left_on, right_on, schema), read_columns=[left_on])


def stage_join(snapshot: Snapshot, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None) -> StagedEdit:
    """Write the columns of `data` and describe the commit."""
    return stage_add(snapshot, _joining(snapshot, data, left_on, right_on, schema), [left_on])


def _joining(snapshot: Snapshot, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None) -> Any:
    source = open_source(data, schema)
    right = pa.Table.from_batches([*source.batches], schema=source.schema)
    new = joined_columns(snapshot.arrow_schema, right, left_on, right_on)
    compute: Any = new.compute
    compute.output_schema = new.fields
    return compute


def joined_columns(schema: pa.Schema, data: pa.Table, left_on: str, right_on: str | None) -> NewColumns:
    """The columns of `data` as columns computed from `left_on`, of a table with that schema. InputError as above."""
    right = without_views(data).combine_chunks()
    key = right_on or left_on
    _check(schema, right, left_on, key)
    keys = one_array(right.column(key))
    others = right.drop_columns([key])
    fields = pa.schema([field.with_nullable(True) for field in others.schema])

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = pc.index_in(batch.column(0), value_set=keys)
        return pa.RecordBatch.from_arrays(
            [one_array(take(others.column(name), found)) for name in others.column_names], schema=fields
        )

    return NewColumns(fields, (left_on,), compute)


def one_array(column: Any) -> Any:
    """A chunked column as one array."""
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _check(left: pa.Schema, right: pa.Table, left_on: str, key: str) -> None:
    for name, names, side in ((left_on, left.names, "this table"), (key, right.column_names, "the other table")):
        if name not in names:
            raise InputError(f"no column {name!r} in {side} to merge on", cure=f"Its columns: {', '.join(names)}.")
    taken = [name for name in right.column_names if name != key and name in left.names]
    if taken:
        raise InputError(f"column {taken[0]!r} is in both tables", cure="Rename or drop it in one of them.")
    ours, theirs = left.field(left_on).type, right.schema.field(key).type
    if not ours.equals(theirs):
        raise InputError(f"cannot merge {left_on!r} ({ours}) with {key!r} ({theirs})", cure="Cast the key.")
    if right.num_columns < 2:
        raise InputError("the other table has no columns besides the key")
    keys = right.column(key)
    counts = pc.value_counts(keys)
    repeated = np.flatnonzero(numpy_of(counts.field("counts")) > 1)
    if len(repeated):
        value = shown(counts.field("values")[int(repeated[0])])
        raise InputError(f"key {value} occurs more than once in the other table", cure="Keep one row per key.")
