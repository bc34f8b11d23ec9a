"""New columns from a stream of batches that has as many rows as the table, in its order.

::

    rows of the table, one of them deleted    1  2  x  4        a file's rows    a  b  b  c
    rows of the stream                        a  b     c        what a deleted row gets nobody reads
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow import schema_from_arrow
from lance_core.arrow.cast import without_views
from lance_core.arrow_numpy import arrow_of
from lance_core.commit.naming import data_file_name, data_path
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, remove_files
from lance_core.dataset.write.sources import DataSource
from lance_core.errors import InputError, LanceError
from lance_core.file.writer import FileWriter
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.pick import take
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge
from lance_core.table.transaction import Transaction

_BATCH_ROWS = 8192


def stage_reader(snapshot: Snapshot, source: DataSource) -> StagedEdit:
    """Write the columns of a stream beside the others and describe the commit. InputError when the rows are not as many."""
    taken = [name for name in source.schema.names if name in snapshot.arrow_schema.names]
    if taken or not source.schema.names:
        raise InputError(f"column {taken[0]!r} already exists" if taken else "the stream has no columns")
    manifest = snapshot.manifest
    added = schema_from_arrow(source.schema, version=manifest.file_version)
    schema, part = append_fields(manifest, added, FirstId(next_field_id(manifest)))
    rows = _Rows(source)
    fragments: list[Fragment] = []
    written: list[str] = []
    try:
        for fragment in manifest.fragments:
            file = _write(snapshot, fragment, part, rows)
            written.append(data_path(file.path))
            fragments.append(replace(fragment, files=(*fragment.files, file)))
        if rows.has_more():
            raise InputError(
                "the stream has more rows than the table", cure="Pass one row for each row of the table, in its order."
            )
    except BaseException:
        remove_files(snapshot, written)
        raise
    nullable = all(item.nullable for item in part.top_level)
    operation = Merge(tuple(fragments), schema, preserves_nullability=nullable)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), tuple(written))


class _Rows:
    """A stream that is taken from in pieces of any size."""

    def __init__(self, source: DataSource) -> None:
        self._schema = source.schema
        self._batches: Iterator[pa.RecordBatch] = iter(source.batches)
        self._rest: pa.RecordBatch | None = None

    def take(self, count: int) -> pa.Table:
        parts, left = [], count
        while left:
            batch = self._next()
            if batch is None:
                raise InputError(
                    f"the stream ends {left} rows before the end of the fragment",
                    cure="Pass one row for each row of the table.",
                )
            parts.append(batch.slice(0, left))
            self._rest = batch.slice(left) if batch.num_rows > left else None
            left -= parts[-1].num_rows
        return pa.Table.from_batches(parts, schema=self._schema)

    def peek(self) -> pa.Table:
        """The next row, which stays."""
        self._rest = self._next()
        if self._rest is None:
            raise InputError("the stream has fewer rows than the table", cure="Pass one row for each row of the table.")
        return pa.Table.from_batches([self._rest.slice(0, 1)])

    def has_more(self) -> bool:
        self._rest = self._next()
        return self._rest is not None

    def _next(self) -> pa.RecordBatch | None:
        if self._rest is not None:
            return self._rest
        return next((batch for batch in self._batches if batch.num_rows), None)


def _write(snapshot: Snapshot, fragment: Fragment, part: Schema, rows: _Rows) -> DataFile:
    """A row of the file for every physical row; those that are deleted repeat the living row before them."""
    alive = np.ones(fragment.physical_rows, dtype=bool)
    alive[read_deleted(snapshot, fragment)] = False
    path = data_path(data_file_name(None))
    writer = FileWriter(snapshot.store, path, part, version=snapshot.manifest.file_version)
    last: Any = None
    try:
        for start in range(0, fragment.physical_rows, _BATCH_ROWS):
            living = alive[start : start + _BATCH_ROWS]
            table = without_views(rows.take(int(living.sum())))
            if last is not None:
                table = pa.concat_tables([last, table])
            elif not table.num_rows:  # deleted from the first row on: they take after the first that lives
                table = without_views(rows.peek())
            indices = np.maximum(np.cumsum(living) - (0 if last is not None else 1), 0)
            last = table.slice(table.num_rows - 1)
            for batch in take(table, arrow_of(indices)).combine_chunks().to_batches():
                writer.write(batch)
        return writer.finish().data_file
    except BaseException:
        with suppress(LanceError, OSError):
            writer.abort()
        raise
