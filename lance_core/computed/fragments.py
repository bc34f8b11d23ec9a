"""One fragment of one declared column: which of its rows are fresh, and a file in which all of them are.

::

    x          1     2     3            evidence fits row 0 only; row 2 was deleted
    doubled    2     null  null         row 1 is given to the function
    new file   2     4     null         with evidence for rows 0 and 1: the other columns stay where they are

A pass reads physical rows in order and holds one batch, or some small ones; a rewrite reads the next one while it computes.
Inputs, value and evidence are of one version; whoever changes them in the meantime writes other files, whose rows this
evidence does not fit. Blobs are read of rows that need them (`judged_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.computed.blob_inputs import blob_fields
from lance_core.computed.call_sizes import CallBounds
from lance_core.computed.calls import Engine, settle
from lance_core.computed.declaration import Declaration, declaration_of
from lance_core.computed.evidence import (
    FAILED,
    HEAD_BYTES,
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
from lance_core.computed.judged_rows import JudgedColumns, JudgedRows, Need, RowJudge
from lance_core.computed.lancedb_record import proof_of
from lance_core.computed.moves import MovedRows
from lance_core.computed.results import Results
from lance_core.computed.signatures import FreshNote
from lance_core.dataset.columns.column_files import write_batches
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.expr import evaluate, parse_filter
from lance_core.format.declared import evidence_of, has_path
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Field, Schema
from lance_core.io.ahead import ahead
from lance_core.pick import take
from lance_core.shortage import batch_bytes

SQL_BATCH_ROWS, FUNCTION_BATCH_ROWS = 65_536, 1_024


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

    @property
    def bounds(self) -> CallBounds:
        """What one call of the function gets, at most."""
        return CallBounds(self.batch_rows, self.declaration.batch_bytes, self.declaration.batch_tokens)

    def written_ids(self, schema: Schema) -> frozenset[int]:
        """The fields that a refresh writes."""
        return frozenset(item.id for item in schema.descend(self.value.id)) | {self.evidence.id}

    def all_ids(self, schema: Schema) -> frozenset[int]:
        """Those, and the fields that it reads."""
        return self.written_ids(schema) | needs_of(schema, self.declaration.inputs).field_ids

    def blobs(self, schema: Schema) -> tuple[Field, ...]:
        """The blob columns among its inputs."""
        return blob_fields(schema, self.declaration.inputs)

    def moved_rows(self, snapshot: Snapshot) -> MovedRows | None:
        """What the log proves of rows whose blobs were read before; None where no blobs are read."""
        schema = snapshot.manifest.schema
        if not self.blobs(schema):
            return None
        note = FreshNote(snapshot.store, self.declaration.id, self.declaration.identity)
        return MovedRows(snapshot, note, self.all_ids(schema))

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
    if declaration.kind == "sql" and blob_fields(schema, declaration.inputs):
        raise InputError(
            f"the declared column {item.name!r} reads blobs by SQL, which this release cannot compute",
            cure="Refresh it with the library that declared it, or declare a function.",
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
    `kept_failed`: the inputs (hex digits of the first half of their digest) of failed rows that were not tried.
    `is_checked`: the evidence of its living rows, where they have some, is of their inputs as they are."""

    counts: RowCounts = field(default_factory=RowCounts)
    is_whole: bool = True
    is_checked: bool = True
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
    """A fragment of a column. `moves`: what the log proves of its rows, where blobs are among the inputs."""

    def __init__(
        self,
        reader: FragmentReader,
        column: DeclaredColumn,
        *,
        trusts_values: bool = False,
        moves: MovedRows | None = None,
    ) -> None:
        self.reader, self._column = reader, column
        self._snapshot: Snapshot = reader.snapshot
        schema = self._snapshot.manifest.schema
        self._written = column.written_ids(schema)
        living = np.ones(reader.fragment.physical_rows, np.bool_)
        living[reader.deleted] = False
        where = column.declaration.where
        self._where = parse_filter(where, self._snapshot.arrow_schema) if where else None
        blobs = column.blobs(schema)
        unread = frozenset(item.id for blob in blobs for item in schema.descend(blob.id))
        source = (needs_of(schema, column.declaration.inputs).field_ids - unread) | self._written
        names = column.input_names, blobs, column.value.name, column.evidence.name
        self._judge = RowJudge(
            reader,
            schema.project(source),
            JudgedColumns(*names, column.declaration.identity),
            living=living,
            is_wanted=self._wanted,
            prove=lambda: np.zeros(len(living), np.bool_) if moves is None else moves.of(reader.fragment),
            trusts_values=trusts_values,
        )

    @property
    def has_evidence(self) -> bool:
        """Whether any file holds evidence; without one no row is fresh, which is known without reading."""
        return any(self._column.evidence.id in file.fields for file in self.reader.fragment.files)

    def examine(self, *, estimates: bool = False) -> PassResult:
        """Read inputs, values and evidence, and count. Nothing is computed. `estimates`: what computing would be given."""
        seen = PassResult()
        for rows in self._rows("known"):
            states, living = rows.states, rows.living
            self._count(seen, states, living)
            seen.is_checked = seen.is_checked and not bool((states.changed & living).any())
            seen.kept_failed += _told(rows.digests[np.flatnonzero(states.failed & living)])
            if estimates:
                self._estimate(rows, seen.counts)
        return seen

    def _estimate(self, rows: JudgedRows, counts: RowCounts) -> None:
        """Count what computing would be given."""
        batch, stale = rows.batch, np.flatnonzero(~rows.states.fresh & rows.living)
        wanted = stale[self._is_wanted(batch, stale)]
        counts.not_wanted += len(stale) - len(wanted)
        blobs = {item.name for item in self._column.blobs(self._snapshot.manifest.schema)}
        size = batch.select([name for name in self._column.input_names if name not in blobs]).nbytes
        counts.bytes_wanted += size * len(wanted) // max(1, batch.num_rows)
        if blobs:
            needed = np.zeros(batch.num_rows, np.bool_)
            needed[wanted] = True
            counts.bytes_wanted += self._judge.blob_bytes(rows.first, needed)

    def rewrite(self, engine: Engine) -> tuple[DataFile, PassResult]:
        """Write value and evidence of all physical rows, those that are not fresh computed; the file and what was done."""
        seen = PassResult()
        calls, rows = engine.meter.calls, engine.meter.rows
        part = self._snapshot.manifest.schema.project(self._written)
        file = write_batches(self.reader, part, self._rewritten(schema_to_arrow(part), engine, seen))
        seen.counts.calls, seen.counts.rows_given = engine.meter.calls - calls, engine.meter.rows - rows
        return file, seen

    def first_rows(self, most: int, *, retry_failed: bool) -> Iterator[tuple[JudgedRows, Ints]]:
        """The first rows that a rewrite would compute: some rows of the fragment, and which of them."""
        for judged in self._rows("computed", retry_failed=retry_failed):
            stale = _stale(judged.states, judged.living, retry_failed=retry_failed)
            rows = stale[self._is_wanted(judged.batch, stale)][:most]
            most -= len(rows)
            if len(rows):
                yield judged, rows
            if not most:
                return

    def adopt(self, *, takes_all: bool = False, former: bytes = b"") -> tuple[DataFile, PassResult]:
        """Write evidence for the values as they are, where there is none: they are trusted, nothing is computed.
        `takes_all`: also where there is other evidence, which is of the values before. `former`: also where the evidence
        says that they were fresh by the definition of this identity."""
        seen = PassResult()
        part = self._snapshot.manifest.schema.project(self._written)
        return write_batches(self.reader, part, self._adopted(schema_to_arrow(part), seen, takes_all, former)), seen

    def _rows(self, need: Need, at_once: int = 1, *, retry_failed: bool = True) -> Iterator[JudgedRows]:
        bounds = self._column.bounds
        most = max(batch_bytes(), (bounds.bytes or 0) * at_once)
        return self._judge.rows(need, batch_rows=bounds.rows * at_once, blob_bytes=most, retry_failed=retry_failed)

    def _was_fresh(self, rows: JudgedRows, former: bytes) -> Bools:
        """Which rows hold a value that was computed by another definition, from the inputs as they are."""
        evidence, values = rows.batch.column(self._column.evidence.name), rows.batch.column(self._column.value.name)
        states = judge(evidence, input_digests(rows.told, self._column.input_names, former), values)
        return states.fresh & ~is_not_wanted(evidence)

    def _count(self, seen: PassResult, states: RowStates, living: Bools) -> None:
        counts = seen.counts
        counts.rows_read += len(living)
        for name in ("fresh", "new", "changed", "failed", "overwritten"):
            setattr(counts, name, getattr(counts, name) + int((getattr(states, name) & living).sum()))
        seen.is_whole = seen.is_whole and bool((states.fresh | living).all())

    def _rewritten(self, target: pa.Schema, engine: Engine, seen: PassResult) -> Iterator[pa.RecordBatch]:
        with closing(ahead(self._rows("computed", engine.concurrency, retry_failed=engine.retry_failed))) as coming:
            for judged in coming:
                states, living = judged.states, judged.living
                self._count(seen, states, living)
                if not engine.retry_failed:
                    kept = np.flatnonzero(states.failed & living)
                    seen.kept_failed += _told(judged.digests[kept])
                    seen.counts.left += len(kept)
                stale = _stale(states, living, retry_failed=engine.retry_failed)
                rows, values, marks = self._computed(judged, stale, engine, seen)
                seen.written.append(judged.first + rows)
                left = states.changed & living
                left[rows] = False
                seen.is_checked = seen.is_checked and not bool(left.any())
                yield self._overlaid(judged.batch, target, rows, values, evidence_array(judged.digests[rows], marks))

    def _computed(self, judged: JudgedRows, stale: Any, engine: Engine, seen: PassResult) -> tuple[Any, Any, Any]:
        """Of the stale rows those that are settled now, their values, and what their evidence says."""
        first, digests = judged.first, judged.digests
        wanted = self._is_wanted(judged.batch, stale)
        asked = stale[wanted]
        keys = None if engine.results is None else self.keys_of(judged, asked, engine.results)
        found = settle(engine, self.inputs_of(judged.batch), asked, keys, bounds=self._column.bounds)
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

    def keys_of(self, judged: JudgedRows, rows: Any, results: Results) -> Any:
        """What the values of some rows are found by among values that were computed before."""
        column, told = self._column, judged.told
        if not results.is_lasting:
            return pad_keys(judged.digests[rows])
        inputs = told if len(rows) == told.num_rows else take(told.select([*column.input_names]), arrow_of(rows))
        return input_keys(inputs, column.input_names, column.declaration.identity, judged.digests[rows])

    def _is_wanted(self, batch: pa.RecordBatch, rows: Any) -> Bools:
        wanted: Bools = self._wanted(batch)[rows]
        return wanted

    def _wanted(self, batch: pa.RecordBatch) -> Bools:
        """What `where` says of each row."""
        if self._where is None:
            return np.ones(batch.num_rows, np.bool_)
        return numpy_of(evaluate(self._where, batch).fill_null(False), may_copy=True)

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
        for judged in self._rows("computed"):
            states, living = judged.states, judged.living
            self._count(seen, states, living)
            trusted = ~states.fresh if takes_all else states.new
            if former:
                trusted = trusted | self._was_fresh(judged, former)
            rows = np.flatnonzero(trusted & living)
            seen.written.append(judged.first + rows)
            seen.is_checked = seen.is_checked and not bool((states.changed & living & ~trusted).any())
            values = take(judged.batch.column(self._column.value.name), arrow_of(rows))
            evidence = evidence_array(judged.digests[rows], value_marks(values))
            yield self._overlaid(judged.batch, target, rows, values, evidence)


def _told(digests: Any) -> list[str]:
    """Of each digest what evidence has of it, in hex."""
    return [row[:HEAD_BYTES].tobytes().hex() for row in digests]


def _stale(states: RowStates, living: Bools, *, retry_failed: bool) -> Any:
    """The living rows that are to be computed."""
    is_due = ~states.fresh & living
    return np.flatnonzero(is_due if retry_failed else is_due & ~states.failed)
