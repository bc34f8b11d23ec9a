"""What becomes of columns that a table has already when they are added once more: left as they are, or filled where null.

::

    fragment 0    embedding [v v v v]         nothing is null: the fragment stays as it is, the function is not called
    fragment 1    no file has `embedding`     4 rows are given to the function; a new file holds what it answers
    fragment 2    embedding [v null v null]   2 rows are given to the function; a new file holds [v w v w] instead

Deleted rows are not computed. Whether a function was tried on a row before is not known: a null is tried again by each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.columns.column_files import write_batches
from lance_core.dataset.columns.declared_rules import refuse_values
from lance_core.dataset.columns.evolve import NewColumns
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, SchemaMismatchError, UnsupportedFeatureError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.jobs.specs.edits import IfExists
from lance_core.pages.rows import RowSelection
from lance_core.pick import keep

Mask = npt.NDArray[np.bool_]
CURE = (
    'Pass if_exists="fill" to compute the rows in which it is null, or if_exists="skip" to leave it as it is; with '
    'if_exists="fail", the default, drop or rename it first.'
)


@dataclass(frozen=True)
class Filled:
    """What filling a fragment gave: its new file (None: it stays as it is), the rows tried, those that have a value now."""

    file: DataFile | None
    num_tried: int
    num_filled: int


def reconciled(new: NewColumns, snapshot: Snapshot, *, if_exists: IfExists, keeps_reads: bool) -> NewColumns:
    """The columns that are to be computed, given those that the table has; none are left where all are skipped.

    `keeps_reads`: the columns to read were named, not all of them. InputError for a column that exists where that fails;
    SchemaMismatchError for one of another type, InputError for one that is declared, which a refresh fills.
    """
    taken = [name for name in new.fields.names if name in snapshot.arrow_schema.names]
    if not new.fields.names:
        raise InputError("cannot add columns: no column was passed")
    if taken and if_exists == "fail":
        raise InputError(f"cannot add columns: column {taken[0]!r} already exists", uri=snapshot.uri, cure=CURE)
    if if_exists == "skip":
        return _only(new, [name for name in new.fields.names if name not in taken])
    refuse_values(snapshot.manifest.schema, taken)
    for name in taken:
        _require_type(snapshot, new.fields.field(name))
    if taken and not keeps_reads:
        # What the function is given is what it was given when it added the column.
        new = replace(new, reads=tuple(name for name in new.reads if name not in taken))
    return new


def _only(new: NewColumns, names: Sequence[str]) -> NewColumns:
    fields = pa.schema([new.fields.field(name) for name in names])
    compute = new.compute
    return NewColumns(fields, new.reads, None if compute is None else lambda batch: compute(batch).select(names))


def _require_type(snapshot: Snapshot, field: pa.Field[pa.DataType]) -> None:
    version = snapshot.manifest.file_version
    if version.is_legacy:
        raise UnsupportedFeatureError(
            f"column {field.name!r} cannot be filled in a table of file version {version.text}",
            uri=snapshot.uri,
            cure="Overwrite the table with a newer data_storage_version.",
        )
    there = snapshot.arrow_schema.field(field.name).type
    stored = schema_to_arrow(schema_from_arrow(pa.schema([field]), version=version)).field(0).type
    if stored != there:
        raise SchemaMismatchError(
            f"cannot fill column {field.name!r}: it is {there} in the table, but {stored} is computed for it",
            uri=snapshot.uri,
            cure="Return the table's type, or add a column of another name.",
        )


def existing_names(snapshot: Snapshot, part: Schema) -> list[str]:
    """Which columns of a part the version has already: those to fill."""
    there = set(snapshot.arrow_schema.names)
    return [item.name for item in part.top_level if item.name in there]


def fill_fragment(
    snapshot: Snapshot, fragment: Fragment, part: Schema, new: NewColumns, *, attempt: str, batch_size: int | None
) -> Filled:
    """Compute the living rows of a fragment in which a column of `part` is null, and write the columns as a new file."""
    work = _Filling(reader_of(snapshot, fragment), part, new, batch_size or DEFAULT_BATCH_ROWS)
    if not work.is_needed():
        return Filled(None, 0, 0)
    file = write_batches(work.reader, part, work.batches(), attempt=attempt)
    return Filled(file, work.num_tried, work.num_filled)


def rows_to_fill(snapshot: Snapshot, fragment: Fragment, part: Schema, batch_size: int) -> Mask:
    """Which physical rows of a fragment lack a value of a column of `part` and are not deleted."""
    return _Filling(reader_of(snapshot, fragment), part, NewColumns(schema_to_arrow(part), ()), batch_size).lacking()


def fill_with(
    snapshot: Snapshot, fragment: Fragment, part: Schema, values: Sequence[pa.RecordBatch], *, attempt: str
) -> Filled:
    """`fill_fragment` with values that are computed already: a row for each of `rows_to_fill`, in their order."""
    new = NewColumns(schema_to_arrow(part), ())
    work = _Given(reader_of(snapshot, fragment), part, new, DEFAULT_BATCH_ROWS, values)
    file = write_batches(work.reader, part, work.batches(), attempt=attempt)
    return Filled(file, work.num_tried, work.num_filled)


class _Filling:
    """One pass over the physical rows of a fragment."""

    def __init__(self, reader: FragmentReader, part: Schema, new: NewColumns, batch_size: int) -> None:
        self.reader, self._part, self._new, self._batch_size = reader, part, new, batch_size
        self._target = schema_to_arrow(part)
        self._held = existing_names(reader.snapshot, part)
        self._is_living = np.ones(reader.fragment.physical_rows, np.bool_)
        self._is_living[reader.deleted] = False
        self.num_tried = self.num_filled = 0

    def is_needed(self) -> bool:
        """Whether a living row has a null. Reads the columns to fill, and of them those that the fragment has."""
        manifest = self.reader.snapshot.manifest
        in_files = {number for file in self.reader.fragment.files for number in file.fields}
        ids = [manifest.schema.find(name).id for name in self._held]
        has_all = all(any(item.id in in_files for item in manifest.schema.descend(number)) for number in ids)
        if not has_all or len(self._held) < len(self._target.names):
            return bool(self._is_living.any())
        return any(mask.any() for _, mask in self._read(self._held))

    def lacking(self) -> Mask:
        """Which physical rows are to be computed."""
        if not self._held:
            return self._is_living
        if self.is_needed():
            masks = [mask for _, mask in self._read(self._held)]
            return np.concatenate(masks) if masks else np.zeros(0, np.bool_)
        return np.zeros(len(self._is_living), np.bool_)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The columns of the part for every physical row."""
        for batch, mask in self._read([*self._held, *self._new.reads]):
            yield self._filled(batch, mask)

    def _read(self, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """Batches, and which of their rows are to be computed."""
        schema = self.reader.snapshot.manifest.schema
        needs = needs_of(schema, [*dict.fromkeys(names)])
        rows = RowSelection.span(0, self.reader.fragment.physical_rows)
        source = schema.project(needs.field_ids)
        first = 0
        for batch in self.reader.read(source, rows, batch_size=self._batch_size, system=needs.system):
            lacks = np.zeros(batch.num_rows, np.bool_)
            if len(self._held) < len(self._target.names):
                lacks[:] = True
            for name in self._held:
                lacks |= numpy_of(batch.column(name).is_null(), may_copy=True)
            yield batch, lacks & self._is_living[first : first + batch.num_rows]
            first += batch.num_rows

    def _filled(self, batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
        computed = self._compute(batch, mask)
        places = np.flatnonzero(mask)
        gained = np.zeros(len(places), np.bool_)
        columns = []
        for field in self._target:
            is_held = field.name in self._held
            old = batch.column(field.name) if is_held else pa.nulls(batch.num_rows, field.type)
            if computed is None:
                columns.append(old)
                continue
            answer = computed.column(field.name)
            answer = answer if answer.type == field.type else answer.cast(field.type)
            is_null = numpy_of(old.is_null(), may_copy=True)[places]
            index = np.arange(batch.num_rows)
            index[places[is_null]] = batch.num_rows + np.flatnonzero(is_null)
            columns.append(pa.concat_arrays([old, answer]).take(arrow_of(index)))
            gained |= is_null & numpy_of(answer.is_valid(), may_copy=True)
        self.num_filled += int(gained.sum())
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _compute(self, batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch | None:
        num_rows = int(mask.sum())
        if not num_rows:
            return None
        self.num_tried += num_rows
        assert self._new.compute is not None
        given = batch.select([*dict.fromkeys(self._new.reads)])
        computed = self._new.compute(given if num_rows == batch.num_rows else keep(given, pa.array(mask)))
        if computed.num_rows != num_rows:
            raise InputError(f"the function returned {computed.num_rows} rows, expected {num_rows}")
        return computed


class _Given(_Filling):
    """One pass with values that were computed elsewhere."""

    def __init__(
        self, reader: FragmentReader, part: Schema, new: NewColumns, batch_size: int, values: Sequence[pa.RecordBatch]
    ) -> None:
        super().__init__(reader, part, new, batch_size)
        self._values = pa.Table.from_batches(values, schema=self._target).combine_chunks()

    def _compute(self, batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch | None:
        num_rows = int(mask.sum())
        if not num_rows:
            return None
        part = self._values.slice(self.num_tried, num_rows)
        self.num_tried += num_rows
        arrays = [pa.concat_arrays(column.chunks) for column in part.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)
