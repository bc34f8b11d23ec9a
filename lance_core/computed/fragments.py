"""One fragment of one declared column: which of its rows are fresh, and a file in which all of them are.

::

    x          1     2     3            evidence fits row 0 only; row 2 was deleted
    doubled    2     null  null         row 1 is given to the function
    new file   2     4     null         with evidence for rows 0 and 1: the other columns stay where they are

A pass reads physical rows in order and holds one batch. Inputs, value and evidence are of one version; whoever changes them
in the meantime writes other files, whose rows this evidence does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.computed.declaration import Declaration, declaration_of
from lance_core.computed.evidence import FAILED, NOT_WANTED, RowStates, evidence_array, input_digests, judge, value_marks
from lance_core.computed.functions import Computation, row_by_row
from lance_core.computed.results import Results
from lance_core.dataset.columns.column_files import write_batches
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import evaluate, parse_filter
from lance_core.format.declared import evidence_of, has_path
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Field, Schema
from lance_core.pages.rows import RowSelection

SQL_BATCH_ROWS, FUNCTION_BATCH_ROWS = 65_536, 1_024


@dataclass(frozen=True)
class DeclaredColumn:
    """A declared column of one version, with the evidence beside it."""

    value: Field
    evidence: Field
    declaration: Declaration

    @property
    def batch_rows(self) -> int:
        """Rows that one call of the function gets, at most."""
        plain = SQL_BATCH_ROWS if self.declaration.kind == "sql" else FUNCTION_BATCH_ROWS
        return self.declaration.batch_size or plain

    def written_ids(self, schema: Schema) -> frozenset[int]:
        """The fields that a refresh writes."""
        return frozenset(item.id for item in schema.descend(self.value.id)) | {self.evidence.id}

    def all_ids(self, schema: Schema) -> frozenset[int]:
        """Those, and the fields that it reads."""
        return self.written_ids(schema) | needs_of(schema, self.declaration.inputs).field_ids

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns that a batch of inputs has."""
        return tuple(dict.fromkeys(path.partition(".")[0] for path in self.declaration.inputs))


def declared_column(schema: Schema, item: Field) -> DeclaredColumn:
    """A declared column as it is in a schema. InputError where an input is gone, or where there is no evidence column."""
    declaration = declaration_of(item)
    for path in declaration.inputs:
        if not has_path(schema, path):
            raise InputError(
                f"the declared column {item.name!r} reads {path!r}, which the table has no more",
                cure="Add or rename that column back, or declare the column again.",
            )
    evidence = evidence_of(schema, item)
    if evidence is None:
        raise InputError(f"the declared column {item.name!r} has no evidence", cure="Refresh it.")
    return DeclaredColumn(item, evidence, declaration)


@dataclass
class RowCounts:
    """Rows of a column: fresh before, and computed because they were new, changed, failed before or written over.

    `failed_now`: the function failed for them. `not_wanted`: `where` leaves them out. `reused`: a value that was computed
    before was there. `rows_read`: whose inputs were read.
    """

    fresh: int = 0
    new: int = 0
    changed: int = 0
    failed: int = 0
    overwritten: int = 0
    failed_now: int = 0
    not_wanted: int = 0
    reused: int = 0
    calls: int = 0
    rows_given: int = 0
    rows_read: int = 0

    @property
    def stale(self) -> int:
        """Rows that were not fresh."""
        return self.new + self.changed + self.failed + self.overwritten

    def add(self, other: RowCounts) -> None:
        """Add another one's numbers to these."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


@dataclass
class PassResult:
    """What a pass over a fragment found. `is_whole`: its deleted rows are as fresh as the living ones; `written`:
    the offsets of the rows that got another value or other evidence."""

    counts: RowCounts = field(default_factory=RowCounts)
    is_whole: bool = True
    written: list[Ints] = field(default_factory=list)


class FragmentWork:
    """A fragment of a column."""

    def __init__(self, reader: FragmentReader, column: DeclaredColumn, *, trusts_values: bool = False) -> None:
        self.reader, self._column, self._trusts_values = reader, column, trusts_values
        self._snapshot: Snapshot = reader.snapshot
        schema = self._snapshot.manifest.schema
        self._input_ids = needs_of(schema, column.declaration.inputs).field_ids
        self._written = column.written_ids(schema)
        self._living = np.ones(reader.fragment.physical_rows, np.bool_)
        self._living[reader.deleted] = False
        where = column.declaration.where
        self._where = parse_filter(where, self._snapshot.arrow_schema) if where else None

    @property
    def has_evidence(self) -> bool:
        """Whether any file holds evidence; without one no row is fresh, which is known without reading."""
        return any(self._column.evidence.id in file.fields for file in self.reader.fragment.files)

    def examine(self) -> PassResult:
        """Read inputs, values and evidence, and count. Nothing is computed."""
        seen = PassResult()
        for batch, living in self._batches():
            states = self._judge(batch)[0]
            self._count(seen, states, living)
        return seen

    def count_new(self) -> PassResult:
        """The counts where there is no evidence."""
        return PassResult(RowCounts(new=int(self._living.sum())))

    def rewrite(self, compute: Computation, results: Results) -> tuple[DataFile, PassResult]:
        """Write value and evidence of all physical rows, those that are not fresh computed; the file and what was done."""
        seen = PassResult()
        part = self._snapshot.manifest.schema.project(self._written)
        file = write_batches(self.reader, part, self._rewritten(schema_to_arrow(part), compute, results, seen))
        return file, seen

    def adopt(self) -> tuple[DataFile, PassResult]:
        """Write evidence for the values as they are, where there is none: they are trusted, nothing is computed."""
        seen = PassResult()
        part = self._snapshot.manifest.schema.project(self._written)
        return write_batches(self.reader, part, self._adopted(schema_to_arrow(part), seen)), seen

    def _batches(self) -> Iterator[tuple[pa.RecordBatch, Bools]]:
        source = self._snapshot.manifest.schema.project(self._input_ids | self._written)
        rows = RowSelection.span(0, self.reader.fragment.physical_rows)
        first = 0
        for batch in self.reader.read(source, rows, batch_size=self._column.batch_rows):
            yield batch, self._living[first : first + batch.num_rows]
            first += batch.num_rows

    def _judge(self, batch: pa.RecordBatch) -> tuple[RowStates, Any]:
        digests = input_digests(batch, self._column.input_names, self._column.declaration.identity)
        values = None if self._trusts_values else batch.column(self._column.value.name)
        return judge(batch.column(self._column.evidence.name), digests, values), digests

    def _count(self, seen: PassResult, states: RowStates, living: Bools) -> None:
        counts = seen.counts
        counts.rows_read += len(living)
        for name in ("fresh", "new", "changed", "failed", "overwritten"):
            setattr(counts, name, getattr(counts, name) + int((getattr(states, name) & living).sum()))
        seen.is_whole = seen.is_whole and bool((states.fresh | living).all())

    def _rewritten(
        self, target: pa.Schema, compute: Computation, results: Results, seen: PassResult
    ) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch, living in self._batches():
            states, digests = self._judge(batch)
            self._count(seen, states, living)
            stale = np.flatnonzero(~states.fresh & living)
            seen.written.append(first + stale)
            first += batch.num_rows
            values, marks = self._computed(batch, stale, digests, compute, results, seen.counts)
            yield self._overlaid(batch, target, stale, values, evidence_array(digests[stale], marks))

    def _computed(
        self, batch: pa.RecordBatch, stale: Any, digests: Any, compute: Computation, results: Results, counts: RowCounts
    ) -> tuple[Any, Any]:
        """Values for the stale rows, and what their evidence says of them."""
        kind = compute.kind
        wanted = self._is_wanted(batch, stale)
        counts.not_wanted += len(stale) - int(wanted.sum())
        rows = stale[wanted]
        known, reused = results.find(digests[rows])
        counts.reused += len(reused)
        given = rows[~known]
        made, failed = self._call(batch, given, digests[given], compute, results)
        counts.failed_now += int(failed.sum())
        # In the order of the stale rows: those not wanted, those known, those computed.
        joined = pa.concat_arrays([pa.nulls(1, kind), reused, made])
        index = np.zeros(len(stale), np.int64)
        at = np.flatnonzero(wanted)
        index[at[known]] = 1 + np.arange(len(reused))
        index[at[~known]] = 1 + len(reused) + np.arange(len(made))
        values = joined.take(arrow_of(index))
        marks = value_marks(values)
        marks[~wanted] = NOT_WANTED
        marks[at[~known][failed]] = FAILED
        return values, marks

    def _is_wanted(self, batch: pa.RecordBatch, rows: Any) -> Bools:
        if self._where is None:
            return np.ones(len(rows), np.bool_)
        wanted: Bools = numpy_of(evaluate(self._where, batch).fill_null(False), may_copy=True)[rows]
        return wanted

    def _call(
        self, batch: pa.RecordBatch, rows: Any, digests: Any, compute: Computation, results: Results
    ) -> tuple[Any, Bools]:
        if not len(rows):
            return pa.nulls(0, compute.kind), np.zeros(0, np.bool_)
        names = [*self._column.input_names]
        inputs = batch.select(names) if names else pa.RecordBatch.from_arrays([batch.column(0)], names=["_"])
        inputs = inputs if len(rows) == batch.num_rows else inputs.take(arrow_of(rows))
        if self._column.declaration.on_error == "fail":
            made, failed = compute(inputs), np.zeros(len(rows), np.bool_)
        else:
            pieces, told = row_by_row(compute, inputs)
            made, failed = pa.concat_arrays(pieces), np.array(told, np.bool_)
        fine = np.flatnonzero(~failed)
        results.add(digests[fine], made if len(fine) == len(made) else made.take(arrow_of(fine)))
        return made, failed

    def _overlaid(self, batch: pa.RecordBatch, target: pa.Schema, rows: Any, values: Any, evidence: Any) -> pa.RecordBatch:
        new = {self._column.value.name: values, self._column.evidence.name: evidence}
        columns = []
        for item in target:
            old = batch.column(item.name)
            if not len(rows):
                columns.append(old)
                continue
            index = np.arange(batch.num_rows)
            index[rows] = batch.num_rows + np.arange(len(rows))
            columns.append(pa.concat_arrays([old, new[item.name].cast(item.type)]).take(arrow_of(index)))
        return pa.RecordBatch.from_arrays(columns, schema=target)

    def _adopted(self, target: pa.Schema, seen: PassResult) -> Iterator[pa.RecordBatch]:
        for batch, living in self._batches():
            states, digests = self._judge(batch)
            self._count(seen, states, living)
            rows = np.flatnonzero(states.new & living)
            values = batch.column(self._column.value.name).take(arrow_of(rows))
            yield self._overlaid(batch, target, rows, values, evidence_array(digests[rows], value_marks(values)))
