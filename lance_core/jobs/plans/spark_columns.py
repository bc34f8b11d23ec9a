"""New columns in Spark's SQL: Spark evaluates the expressions, this library reads the input and writes the result.

::

    task 0 (fragments 3 4)     read    _lance_row, text      of every physical row, in order
                               engine  _lance_row, length(text) AS n, sha2(text, 256) AS h
                               write   a file of n, h for fragment 3, one for fragment 4, each put on record

`_lance_row` is the row's address (fragment << 32 | offset). It comes back with the values, so an expression that changes the
number or the order of rows is noticed, not written.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.arrow.buffers import numbers_of
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.commit.naming import data_file_name, data_path
from lance_core.dataset.columns.evolve import NewColumns
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.errors import InputError, LanceError
from lance_core.file.writer import FileWriter
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.plans.column_parts import bytes_of, put_filled, put_on_record
from lance_core.jobs.plans.edit_fragments import group_fragments, part_of
from lance_core.jobs.plans.fill_columns import Filled, Mask, existing_names, fill_with, reconciled, rows_to_fill
from lance_core.jobs.runtime.progress import ProgressReport
from lance_core.jobs.runtime.protocols import ROW, JobSource, Runner, TaskResult, Work
from lance_core.jobs.sources.conform import Conformer, created_schema
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.pages.rows import RowSelection
from lance_core.pick import keep

Offsets = npt.NDArray[np.int64]
_STAR = re.compile(r"(?:^|[(,.])\s*\*")
"""A star that stands for columns, not for a product."""


@dataclass(frozen=True)
class ReadRows:
    """The rows of the groups whose numbers come in: their addresses as `_lance_row`, then `columns`. Pickles.

    Where columns are filled (`fills`, those of the table and the new ones), only the living rows that lack a value; a
    fragment without such a row is put on record at once, as one that stays as it is.
    """

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    version: int
    groups: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    batch_size: int
    attempt: str = ""
    fills: Schema | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Deleted rows as well, unless columns are filled: a file of new columns has a value for every physical row."""
        store = resolve_store(self.uri, self.storage_options)
        snapshot = snapshot_of(store, version=self.version, storage_options=self.storage_options)
        schema = snapshot.manifest.schema
        part = schema.project(needs_of(schema, self.columns).field_ids)
        for number in [number for batch in batches for number in numbers_of(batch.column("id"))]:
            for fragment in part_of(snapshot, self.groups[number]).manifest.fragments:
                lacks = None if self.fills is None else rows_to_fill(snapshot, fragment, self.fills, self.batch_size)
                if lacks is not None and not lacks.any():
                    put_on_record(store, self.attempt, fragment, Filled(None, 0, 0))
                    continue
                yield from self._rows(reader_of(snapshot, fragment), part, lacks)

    def _rows(self, reader: FragmentReader, part: Schema, wanted: Mask | None) -> Iterator[pa.RecordBatch]:
        """The rows of one fragment: all of them, or those that a mask has."""
        offset, first = 0, reader.fragment.id << 32
        rows = RowSelection.span(0, reader.fragment.physical_rows)
        for batch in reader.read(part, rows, batch_size=self.batch_size):
            addresses = arrow_of(np.arange(first + offset, first + offset + batch.num_rows, dtype=np.int64))
            arrays = [addresses, *(batch.column(name) for name in self.columns)]
            made = pa.RecordBatch.from_arrays(arrays, names=[ROW, *self.columns])
            mask = None if wanted is None else wanted[offset : offset + batch.num_rows]
            offset += batch.num_rows
            yield made if mask is None else keep(made, arrow_of(mask))


@dataclass(frozen=True)
class WriteColumns:
    """Writes what the engine made of `ReadRows`: a file and a record for each fragment. Pickles."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    attempt: str
    version: int
    part: Schema
    progress_seconds: float

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Nothing is returned but counts. InputError when rows are missing, or not in their order."""
        store = resolve_store(self.uri, self.storage_options)
        snapshot = snapshot_of(store, version=self.version, storage_options=self.storage_options)
        fragments = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
        # The job looks through all of its files at its end, for those that are not on record.
        report = ProgressReport(
            store, self.attempt, partition=partition, task_attempt=task_attempt, seconds=self.progress_seconds, begins=False
        )
        rows = size = 0
        make = _FilledFile if existing_names(snapshot, self.part) else _FragmentFile
        current: _FragmentFile | None = None
        try:
            for number, piece in _pieces(batches):
                if current is None:
                    current = make(snapshot, fragments[number], self.part, self.attempt)
                current.write(number, piece)
                if current.is_whole:
                    size += current.finish()
                    rows, current = rows + fragments[number].physical_rows, None
                    report.update(rows, 0, size)
            if current is not None:
                raise current.misfit("the expressions returned fewer rows than they received")
        finally:
            if current is not None:
                current.abort()
        return TaskResult(partition, task_attempt, rows, rows, size)


class _FragmentFile:
    """The new file of one fragment while its values arrive."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment, part: Schema, attempt: str) -> None:
        self._store: Store = snapshot.store
        self._fragment, self._attempt = fragment, attempt
        self._num_rows = 0
        self._offsets = self._expected(snapshot, part)
        # An engine says the same in other words: timestamps of its session's zone, say.
        self._conformer = Conformer(schema_to_arrow(part), uri=snapshot.store.uri)
        self._begin(snapshot, part)

    def _expected(self, snapshot: Snapshot, part: Schema) -> Offsets:
        """The offsets of the rows that are to come."""
        return np.arange(self._fragment.physical_rows)

    def _begin(self, snapshot: Snapshot, part: Schema) -> None:
        path = data_path(data_file_name(self._attempt))
        self._writer = FileWriter(self._store, path, part, version=snapshot.manifest.file_version)

    @property
    def is_whole(self) -> bool:
        return self._num_rows == len(self._offsets)

    def write(self, number: int, batch: pa.RecordBatch) -> None:
        offsets = numpy_of(batch.column(0)) & 0xFFFFFFFF
        expected = self._offsets[self._num_rows : self._num_rows + batch.num_rows]
        if number != self._fragment.id or not np.array_equal(offsets, expected):
            raise self.misfit("the expressions returned rows in another order, or more rows than they received")
        self._take(self._conformer.apply(batch))
        self._num_rows += batch.num_rows

    def _take(self, batch: pa.RecordBatch) -> None:
        self._writer.write_exact(batch)

    def finish(self) -> int:
        """Put it on record; its bytes."""
        file = put_on_record(self._store, self._attempt, self._fragment, Filled(self._writer.finish().data_file, 0, 0)).file
        return bytes_of(file)

    def abort(self) -> None:
        with suppress(LanceError, OSError):
            self._writer.abort()

    def misfit(self, what: str) -> InputError:
        return InputError(
            f"add_columns: at row {self._num_rows} of fragment {self._fragment.id} {what}",
            cure="Use expressions with one value per row, without explode, window or aggregate functions.",
        )


class _FilledFile(_FragmentFile):
    """The same where columns are filled: the values of rows that lack one, put between those that are there."""

    def _expected(self, snapshot: Snapshot, part: Schema) -> Offsets:
        return np.flatnonzero(rows_to_fill(snapshot, self._fragment, part, DEFAULT_BATCH_ROWS))

    def _begin(self, snapshot: Snapshot, part: Schema) -> None:
        self._snapshot, self._part = snapshot, part
        self._values: list[pa.RecordBatch] = []

    def _take(self, batch: pa.RecordBatch) -> None:
        self._values.append(batch)

    def finish(self) -> int:
        filled = fill_with(self._snapshot, self._fragment, self._part, self._values, attempt=self._attempt)
        return bytes_of(put_filled(self._store, self._attempt, self._fragment, filled).file)

    def abort(self) -> None:
        """Nothing is written before all values are there."""


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches cut where another fragment begins, each with the fragment's id."""
    for batch in batches:
        numbers = numpy_of(batch.column(0)) >> 32
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), batch.num_rows]
        for start, stop in itertools.pairwise(starts):
            if stop > start:
                yield int(numbers[start]), batch.slice(start, stop - start)


def columns_named(columns: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    """The table's columns that the engine is given: those whose name stands in an expression, all where a star does.

    >>> columns_named({"n": "length(Text) * 2"}, ["id", "text", "vector"])
    ('text',)
    """
    texts = [sql.lower() for sql in columns.values()]
    if any(_STAR.search(text) for text in texts):
        return tuple(names)
    return tuple(name for name in names if any(name.lower() in text for text in texts))


def engine_columns(spec: AddColumnsSpec, snapshot: Snapshot, runner: Runner) -> NewColumns:
    """What the engine says its expressions give. InputError when it refuses them, or when there is no engine."""
    source = _open(spec, snapshot, (), runner, spec.columns)
    fields = [item for item in created_schema(source.schema) if item.name != ROW]
    new = NewColumns(pa.schema(fields), _reads(spec, snapshot))
    return reconciled(new, snapshot, if_exists=spec.if_exists, keeps_reads=True)


def engine_work(
    spec: AddColumnsSpec, snapshot: Snapshot, fragments: Sequence[Fragment], part: Schema, runner: Runner, *, attempt: str
) -> tuple[JobSource, Work]:
    """What evaluates the columns for these fragments, and what puts each on record."""
    groups = group_fragments(fragments, rows=spec.rows_per_task)
    work = WriteColumns(
        spec.uri, spec.resolved_options(), attempt, snapshot.version, part, progress_seconds=spec.progress_seconds
    )
    fills = part if existing_names(snapshot, part) else None
    wanted = {name: sql for name, sql in spec.columns.items() if any(item.name == name for item in part.top_level)}
    return _open(spec, snapshot, groups, runner, wanted, attempt=attempt, fills=fills), work


def _open(
    spec: AddColumnsSpec,
    snapshot: Snapshot,
    groups: tuple[tuple[int, ...], ...],
    runner: Runner,
    columns: Mapping[str, str],
    *,
    attempt: str = "",
    fills: Schema | None = None,
) -> JobSource:
    names = _reads(spec, snapshot)
    size = spec.batch_size or DEFAULT_BATCH_ROWS
    read = ReadRows(spec.uri, spec.resolved_options(), snapshot.version, groups, names, size, attempt, fills)
    schema = pa.schema([pa.field(ROW, pa.int64()), *(snapshot.arrow_schema.field(name) for name in names)])
    return runner.open_expressions(read, len(groups), schema, dict(columns))


def _reads(spec: AddColumnsSpec, snapshot: Snapshot) -> tuple[str, ...]:
    names = snapshot.arrow_schema.names
    if spec.reads is None:
        return columns_named(spec.columns, names)
    missing = [name for name in spec.reads if name not in names]
    if missing:
        raise InputError(f"add_columns: no column {missing[0]!r} to read", cure=f"Its columns: {', '.join(names)}.")
    return spec.reads
