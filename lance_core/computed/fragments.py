"""One fragment of one declared column: which of its rows are fresh, and a file in which all of them are.

::

    x          1     2     3            evidence fits row 0 only; row 2 was deleted
    doubled    2     null  null         row 1 is given to the function
    new file   2     4     null         with evidence for rows 0 and 1: the other columns stay where they are

A pass reads physical rows in order and holds one batch, or some small ones. Inputs, value and evidence are of one version;
whoever changes them in the meantime writes other files, whose rows this evidence does not fit.
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
from lance_core.computed.calls import Engine, settle
from lance_core.computed.declaration import Declaration, declaration_of
from lance_core.computed.evidence import (
    FAILED,
    NOT_WANTED,
    RowStates,
    evidence_array,
    input_digests,
    input_keys,
    is_not_wanted,
    judge,
    pad_keys,
    value_marks,
)
from lance_core.computed.lancedb_record import proof_of
from lance_core.computed.results import Results
from lance_core.dataset.columns.column_files import write_batches
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import evaluate, parse_filter
from lance_core.format.declared import evidence_of, has_path
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Field, Schema
from lance_core.pages.rows import RowSelection
from lance_core.pick import take

SQL_BATCH_ROWS, FUNCTION_BATCH_ROWS = 65_536, 1_024
_GROUP_ROWS, _GROUP_BYTES = 16_384, 8 << 20
"""Batches that are judged and written together have no more rows and bytes than this, unless one alone has."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A declared column of one version, with the evidence beside it."""

    value: Field
    evidence: Field
    declaration: Declaration
    proven: frozenset[bytes] = frozenset()
    """Fragments whose values another library's record proves: `lancedb_record.proof_of` each."""

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

    def is_proven(self, fragment: Fragment, schema: Schema) -> bool:
        """Whether the values of a fragment are taken over as they are."""
        if not self.proven:
            return False
        value_ids = frozenset(item.id for item in schema.descend(self.value.id))
        return proof_of(fragment, value_ids | needs_of(schema, self.declaration.inputs).field_ids) in self.proven

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
    """Rows of a column: fresh before, and stale because they were new, changed, failed before or written over.

    `failed_now`: the function failed for them. `not_wanted`: `where` leaves them out. `reused`: a value that was computed
    before was there. `left`: stale still, because the budget was used up or failed rows are not to be tried; `unseen` are
    those of them that were not read and may be fresh. `calls`, `rows_given`: of the function, those made in vain too.
    `rows_read`: whose inputs were read. `bytes_wanted`, of a dry run: of the inputs in the rows that would be given to the
    function, as Arrow holds them.
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
    left: int = 0
    unseen: int = 0
    bytes_wanted: int = 0

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
    the offsets of the rows that got another value or other evidence; `failed`: those for which the function failed;
    `kept_failed`: the inputs (hex digits of their digest) of failed rows that were not tried."""

    counts: RowCounts = field(default_factory=RowCounts)
    is_whole: bool = True
    written: list[Ints] = field(default_factory=list)
    failed: list[FailedRow] = field(default_factory=list)
    kept_failed: list[str] = field(default_factory=list)

    @property
    def is_fresh(self) -> bool:
        """Whether every living row is fresh now."""
        return not self.counts.left and not self.counts.failed_now


@dataclass(frozen=True)
class FailedRow:
    """A row for which the function failed: its place in the fragment, its inputs' digest in hex, the error's words."""

    offset: int
    digest: str
    error: str


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

    def examine(self, *, estimates: bool = False) -> PassResult:
        """Read inputs, values and evidence, and count. Nothing is computed. `estimates`: what computing would be given."""
        seen = PassResult()
        for batch, living in self._batches():
            states, digests = self._judge(batch)
            self._count(seen, states, living)
            failed = np.flatnonzero(states.failed & living)
            seen.kept_failed += [row.tobytes().hex() for row in digests[failed]]
            if estimates:
                stale = np.flatnonzero(~states.fresh & living)
                wanted = stale[self._is_wanted(batch, stale)]
                seen.counts.not_wanted += len(stale) - len(wanted)
                size = batch.select([*self._column.input_names]).nbytes
                seen.counts.bytes_wanted += size * len(wanted) // max(1, batch.num_rows)
        return seen

    def rewrite(self, engine: Engine) -> tuple[DataFile, PassResult]:
        """Write value and evidence of all physical rows, those that are not fresh computed; the file and what was done."""
        seen = PassResult()
        calls, rows = engine.meter.calls, engine.meter.rows
        part = self._snapshot.manifest.schema.project(self._written)
        file = write_batches(self.reader, part, self._rewritten(schema_to_arrow(part), engine, seen))
        seen.counts.calls, seen.counts.rows_given = engine.meter.calls - calls, engine.meter.rows - rows
        return file, seen

    def first_rows(self, most: int, *, retry_failed: bool) -> Iterator[tuple[pa.RecordBatch, Ints, Any]]:
        """The first rows that a rewrite would compute: batches, which of their rows, the digests of all rows' inputs."""
        for batch, living in self._batches():
            states, digests = self._judge(batch)
            stale = _stale(states, living, retry_failed=retry_failed)
            rows = stale[self._is_wanted(batch, stale)][:most]
            most -= len(rows)
            if len(rows):
                yield batch, rows, digests
            if not most:
                return

    def adopt(self, *, takes_all: bool = False, former: bytes = b"") -> tuple[DataFile, PassResult]:
        """Write evidence for the values as they are, where there is none: they are trusted, nothing is computed.
        `takes_all`: also where there is other evidence, which is of the values before. `former`: also where the evidence
        says that they were fresh by the definition of this identity."""
        seen = PassResult()
        part = self._snapshot.manifest.schema.project(self._written)
        return write_batches(self.reader, part, self._adopted(schema_to_arrow(part), seen, takes_all, former)), seen

    def _batches(self, at_once: int = 1) -> Iterator[tuple[pa.RecordBatch, Bools]]:
        source = self._snapshot.manifest.schema.project(self._input_ids | self._written)
        rows = RowSelection.span(0, self.reader.fragment.physical_rows)
        first = 0
        for batch in _grouped(self.reader.read(source, rows, batch_size=self._column.batch_rows * at_once)):
            yield batch, self._living[first : first + batch.num_rows]
            first += batch.num_rows

    def _judge(self, batch: pa.RecordBatch) -> tuple[RowStates, Any]:
        digests = input_digests(batch, self._column.input_names, self._column.declaration.identity)
        values = None if self._trusts_values else batch.column(self._column.value.name)
        return judge(batch.column(self._column.evidence.name), digests, values), digests

    def _was_fresh(self, batch: pa.RecordBatch, former: bytes) -> Bools:
        """Which rows hold a value that was computed by another definition, from the inputs as they are."""
        evidence, values = batch.column(self._column.evidence.name), batch.column(self._column.value.name)
        states = judge(evidence, input_digests(batch, self._column.input_names, former), values)
        return states.fresh & ~is_not_wanted(evidence)

    def _count(self, seen: PassResult, states: RowStates, living: Bools) -> None:
        counts = seen.counts
        counts.rows_read += len(living)
        for name in ("fresh", "new", "changed", "failed", "overwritten"):
            setattr(counts, name, getattr(counts, name) + int((getattr(states, name) & living).sum()))
        seen.is_whole = seen.is_whole and bool((states.fresh | living).all())

    def _rewritten(self, target: pa.Schema, engine: Engine, seen: PassResult) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch, living in self._batches(engine.concurrency):
            states, digests = self._judge(batch)
            self._count(seen, states, living)
            if not engine.retry_failed:
                kept = np.flatnonzero(states.failed & living)
                seen.kept_failed += [row.tobytes().hex() for row in digests[kept]]
                seen.counts.left += len(kept)
            stale = _stale(states, living, retry_failed=engine.retry_failed)
            rows, values, marks = self._computed(batch, stale, digests, engine, seen, first)
            seen.written.append(first + rows)
            first += batch.num_rows
            yield self._overlaid(batch, target, rows, values, evidence_array(digests[rows], marks))

    def _computed(
        self, batch: pa.RecordBatch, stale: Any, digests: Any, engine: Engine, seen: PassResult, first: int
    ) -> tuple[Any, Any, Any]:
        """Of the stale rows those that are settled now, their values, and what their evidence says."""
        wanted = self._is_wanted(batch, stale)
        asked = stale[wanted]
        keys = None if engine.results is None else self.keys_of(batch, asked, digests, engine.results)
        found = settle(engine, self.inputs_of(batch), asked, keys, call_rows=self._column.batch_rows)
        counts = seen.counts
        counts.not_wanted += len(stale) - len(asked)
        counts.reused += found.num_reused
        counts.failed_now += len(found.errors)
        counts.left += len(asked) - len(found.places)
        marks = value_marks(found.values)
        for place, error in sorted(found.errors.items()):
            seen.failed.append(FailedRow(first + int(asked[place]), digests[asked[place]].tobytes().hex(), error))
            marks[np.searchsorted(found.places, place)] = FAILED
        unwanted = stale[~wanted]
        if not len(unwanted):
            return asked[found.places], found.values, marks
        values = pa.concat_arrays([found.values, pa.nulls(len(unwanted), engine.compute.kind)])
        marks = np.concatenate([marks, np.full(len(unwanted), NOT_WANTED, marks.dtype)])
        return np.concatenate([asked[found.places], unwanted]), values, marks

    def keys_of(self, batch: pa.RecordBatch, rows: Any, digests: Any, results: Results) -> Any:
        """What the values of some rows of a batch are found by among values that were computed before."""
        column = self._column
        if not results.is_lasting:
            return pad_keys(digests[rows])
        inputs = batch if len(rows) == batch.num_rows else take(batch.select([*column.input_names]), arrow_of(rows))
        return input_keys(inputs, column.input_names, column.declaration.identity, digests[rows])

    def _is_wanted(self, batch: pa.RecordBatch, rows: Any) -> Bools:
        if self._where is None:
            return np.ones(len(rows), np.bool_)
        wanted: Bools = numpy_of(evaluate(self._where, batch).fill_null(False), may_copy=True)[rows]
        return wanted

    def inputs_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the function is given. Rows without columns are counted by a column that it does not know."""
        names = [*self._column.input_names]
        return batch.select(names) if names else pa.RecordBatch.from_arrays([batch.column(0)], names=["_"])

    def _overlaid(self, batch: pa.RecordBatch, target: pa.Schema, rows: Any, values: Any, evidence: Any) -> pa.RecordBatch:
        new = {self._column.value.name: values, self._column.evidence.name: evidence}
        columns = []
        is_all = len(rows) == batch.num_rows and bool((rows == np.arange(len(rows))).all())
        for item in target:
            old = batch.column(item.name)
            if is_all or not len(rows):
                columns.append(new[item.name].cast(item.type) if is_all else old)
                continue
            index = np.arange(batch.num_rows)
            index[rows] = batch.num_rows + np.arange(len(rows))
            columns.append(take(pa.concat_arrays([old, new[item.name].cast(item.type)]), arrow_of(index)))
        return pa.RecordBatch.from_arrays(columns, schema=target)

    def _adopted(self, target: pa.Schema, seen: PassResult, takes_all: bool, former: bytes) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch, living in self._batches():
            states, digests = self._judge(batch)
            self._count(seen, states, living)
            trusted = ~states.fresh if takes_all else states.new
            if former:
                trusted = trusted | self._was_fresh(batch, former)
            rows = np.flatnonzero(trusted & living)
            seen.written.append(first + rows)
            first += batch.num_rows
            values = take(batch.column(self._column.value.name), arrow_of(rows))
            yield self._overlaid(batch, target, rows, values, evidence_array(digests[rows], value_marks(values)))


def _stale(states: RowStates, living: Bools, *, retry_failed: bool) -> Any:
    """The living rows that are to be computed."""
    is_due = ~states.fresh & living
    return np.flatnonzero(is_due if retry_failed else is_due & ~states.failed)


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Neighbours as one batch, as long as they are small together: what is done for a batch takes as long for a few rows."""
    held, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        if held and (rows + batch.num_rows > _GROUP_ROWS or size + batch.nbytes > _GROUP_BYTES):
            yield _joined(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(place) for batch in batches]) for place in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
