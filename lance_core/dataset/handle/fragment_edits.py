"""Edits through a fragment's handle: they return the metadata of the changed fragment, for a separate commit.

::

    fragment.delete("x > 3")                    a new deletion file     commit with Delete
    fragment.merge_columns({"y": "2 * x"})      a new data file         commit with Merge
    fragment.update_columns(rows, "id")         the same, for columns that are there: the old ones become dead, -2
                                                                        commit with Update, REWRITE_COLUMNS

Each may run in a process of its own, a fragment each; all must have the same version, because field ids are counted from it.
Nothing is committed, and what never is, is garbage that cleanup takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Ints
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.columns import evolve
from lance_core.dataset.columns.column_files import write_column_file
from lance_core.dataset.columns.from_stream import stage_reader
from lance_core.dataset.columns.join import one_array, stage_join
from lance_core.dataset.columns.udf import BatchUDF
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.deletions import stage_deletions
from lance_core.dataset.write.retry import StagedEdit
from lance_core.dataset.write.sources import open_source
from lance_core.errors import InputError, SchemaMismatchError
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.rowids.bitmap import encode_bitmap
from lance_core.shortage import ARROW_ERRORS
from lance_core.table.edits import with_columns_moved
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge

_KEYS = ("_rowid", "_rowaddr")


def alone(snapshot: Snapshot, fragment: Fragment) -> Snapshot:
    """The version as if it had one fragment; new fields get the ids they would get in the whole version."""
    highest = next_field_id(snapshot.manifest) - 1
    manifest = replace(snapshot.manifest, fragments=(fragment,), max_allocated_field_id=highest)
    return replace(snapshot, manifest=manifest, whole=snapshot.manifest)


def delete_matching(snapshot: Snapshot, fragment: Fragment, predicate: Any) -> Fragment | None:
    """The fragment without the rows a filter selects; None when none is left. Raises FilterError."""
    expr = as_filter(predicate, snapshot.arrow_schema)
    if expr is None:
        raise InputError("delete needs a predicate", cure='Pass "true" to delete all rows.')
    only = alone(snapshot, fragment)
    return _without(only, fragment, matching_offsets(only, expr).get(fragment.id))


def delete_offsets(snapshot: Snapshot, fragment: Fragment, offsets: Iterable[int]) -> Fragment | None:
    """The fragment without rows named by their place in its files; None when none is left."""
    wanted = np.unique(np.fromiter((int(offset) for offset in offsets), np.int64))
    beyond = wanted[(wanted < 0) | (wanted >= fragment.physical_rows)]
    if len(beyond):
        raise InputError(f"fragment {fragment.id} has {fragment.physical_rows} rows, no row {beyond[0]}")
    gone = np.setdiff1d(wanted, read_deleted(snapshot, fragment), assume_unique=True)
    return _without(alone(snapshot, fragment), fragment, gone)


def _without(snapshot: Snapshot, fragment: Fragment, gone: Ints | None) -> Fragment | None:
    if gone is None or len(gone) == 0:
        return fragment
    return next(iter(stage_deletions(snapshot, {fragment.id: gone}).updated), None)


def add_fragment_columns(
    snapshot: Snapshot,
    fragment: Fragment,
    transforms: Any,
    *,
    read_columns: Sequence[str] | None,
    batch_size: int | None,
    reader_schema: pa.Schema | None,
) -> tuple[Fragment, Schema]:
    """The fragment with new columns, and the table's schema with them. What columns may be made of: see `add_columns`."""
    if isinstance(transforms, BatchUDF) and transforms.checkpoint is not None:
        raise InputError(
            "a checkpoint file is only supported by add_columns of a table",
            cure="Keep track of finished fragments in your own code.",
        )
    only = alone(snapshot, fragment)
    if evolve.is_rows(transforms):
        return _merged(stage_reader(only, open_source(transforms, reader_schema)))
    return _merged(evolve.stage_add(only, transforms, read_columns, batch_size))


def join_fragment_columns(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[Fragment, Schema]:
    """The fragment with the columns of another table, and the table's schema with them. See `merge`."""
    return _merged(stage_join(alone(snapshot, fragment), data, left_on, right_on, schema))


def _merged(edit: StagedEdit) -> tuple[Fragment, Schema]:
    operation = edit.transaction.operation
    assert isinstance(operation, Merge)
    return operation.fragments[0], operation.schema


def update_fragment_columns(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[Fragment, list[int], bytes]:
    """The fragment with new values where rows of `data` have the key: it, the fields that changed, the rows that did.

    The rows are offsets in the fragment's files, as a portable Roaring bitmap. Raises InputError, SchemaMismatchError.
    """
    source = open_source(data, schema)
    right = pa.Table.from_batches([*source.batches], schema=source.schema).combine_chunks()
    key = right_on or left_on
    names = _updated_names(snapshot, right, left_on, key)
    keys = one_array(right.column(key))
    values = {name: _as(one_array(right.column(name)), snapshot.arrow_schema.field(name)) for name in names}
    table = snapshot.manifest.schema
    part = table.project(item.id for name in names for item in table.descend(table.find(name).id))
    matched: list[Ints] = []
    rows_before = 0

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal rows_before
        left = {name: batch.column(batch.schema.get_field_index(name)) for name in names}
        found = pc.index_in(batch.column(batch.schema.get_field_index(left_on)), value_set=keys)
        own = np.arange(batch.num_rows, dtype=np.int64)
        picked = np.where(
            pc.is_valid(found), numpy_of(cast("Any", pc.fill_null(cast("Any", found), 0))) + batch.num_rows, own
        )
        matched.append(rows_before + own[picked >= batch.num_rows])
        rows_before += batch.num_rows
        arrays = [pa.concat_arrays([left[name], values[name]]).take(arrow_of(picked)) for name in names]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    file = write_column_file(reader_of(snapshot, fragment), part, reads=[left_on, *names], compute=compute)
    offsets = np.concatenate(matched) if matched else np.empty(0, np.int64)
    living = np.setdiff1d(offsets, read_deleted(snapshot, fragment), assume_unique=True)
    changed = with_columns_moved(fragment, file)
    return changed, [*file.fields], encode_bitmap(living.tolist())


def _as(array: Any, field: Any) -> Any:
    if array.type.equals(field.type):
        return array
    try:
        return array.cast(field.type)
    except ARROW_ERRORS as error:
        raise SchemaMismatchError(f"new values of {field.name!r} are {array.type}, not {field.type}: {error}") from error


def _updated_names(snapshot: Snapshot, right: pa.Table, left_on: str, key: str) -> list[str]:
    here = snapshot.arrow_schema.names
    if left_on not in here and left_on not in _KEYS:
        raise InputError(f"no column {left_on!r} in this table to join on", cure=f"Its columns: {', '.join(here)}.")
    if key not in right.column_names:
        raise InputError(f"no column {key!r} among the new values", cure="Pass right_on.")
    names = [name for name in right.column_names if name != key]
    unknown = [name for name in names if name not in here]
    if unknown or not names:
        what = f"column {unknown[0]!r} is not in this table" if unknown else "there are no new values besides the key"
        raise InputError(f"cannot update columns: {what}", cure="Add columns with merge_columns." if unknown else None)
    if left_on in names:
        raise InputError(f"cannot update {left_on!r}, the key")
    return names
