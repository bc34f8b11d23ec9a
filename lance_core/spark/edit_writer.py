"""Rows that Spark's tasks delete, change and add, as one transaction: SQL's DELETE, UPDATE and MERGE.

::

    writer = EditWriter(options, target, at=(place, 7))       on the driver; version 7 is what the statement read
    result = writer.write(partition, task, batches)           in a task: rows that changed, or rows that are new
    writer.commit([RowChanges(deleted, moved, moved_rows, new_rows), ...])        on the driver

A row goes by its address at the version that was read. What changed is written again and keeps its id. Whoever added or
changed rows between that version and the commit may have made the statement wrong, so the commit refuses then, and the
statement can be run again. Writer and results pickle; nothing of PySpark is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lance_core.arrays import Addresses
from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import numpy_of
from lance_core.dataset.edit.update import with_row_ids
from lance_core.dataset.scan.take import projection_of, take_addresses
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_offsets import by_fragment
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.write.deletions import Deletions, stage_deletions
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.assumptions import assumes_predicate
from lance_core.jobs.plans.write_fragments import fragments_of, make_work
from lance_core.jobs.runtime.lifecycle import NothingToDoError, abort_after, clear_dead, close_attempt, look_at, open_attempt
from lance_core.jobs.runtime.protocols import StagedOperation, TableState, TaskResult
from lance_core.jobs.sources.conform import check_schema
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.secret import as_secret
from lance_core.jobs.specs.spec import SourceSpec, WriteSpec
from lance_core.spark.options import SourceOptions
from lance_core.spark.table_writer import (
    UNSEEN_SECONDS,
    asked_by_statement,
    filled_by_refresh,
    is_staged,
    publish,
    table_of,
    without_columns,
)
from lance_core.table.operations.base import Operation
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.update import Update

ADDRESS_FIELD = pa.field("_rowaddr", pa.int64(), nullable=False)
"""The address that a changed row had, as Spark's signed number, behind its columns."""


@dataclass(frozen=True, kw_only=True)
class EditRowsSpec(WriteSpec):
    """What an attempt's record says of a statement. It has no row in the table of kinds: only Spark can do it again."""

    kind: ClassVar[str] = "edit_rows"

    statement: str
    source: SourceSpec = field(default_factory=lambda: SourceSpec(format="dataframe"))
    progress_seconds: float = UNSEEN_SECONDS


@dataclass(frozen=True)
class RowChanges:
    """What one task tells: addresses (uint64) of the rows that go, and of those that changed, in the order in which
    `moved_rows` has them; and what it wrote."""

    deleted: Addresses
    moved: Addresses
    moved_rows: TaskResult | None = None
    new_rows: TaskResult | None = None

    @property
    def written(self) -> list[TaskResult]:
        """Its results, as far as it wrote rows."""
        return [result for result in (self.moved_rows, self.new_rows) if result is not None]


@dataclass(frozen=True)
class _Outcome:
    """What staging makes of the results of tasks, when all rows that go are known."""

    operation: Operation
    num_rows: int
    num_deleted: int

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        return StagedOperation(self.operation, self.num_rows, num_deleted=self.num_deleted)


class EditWriter:
    """Stages and commits one statement on a table, at the version that it read. `statement`: "delete", "update" or "merge";
    `target`: the Arrow schema of the rows that tasks write.

    Raises NotFoundError without a table, SchemaMismatchError for rows that do not fit it.
    """

    def __init__(self, options: SourceOptions, target: pa.Schema, *, at: tuple[str, int], statement: str) -> None:
        self._options, self._version = options, at[1]
        self._spec = EditRowsSpec(
            uri=table_of(options),
            storage_options={name: as_secret(text, where=name) for name, text in options.storage.items()},
            identity=options.identity or random_identity(),
            statement=statement,
            asked=asked_by_statement(options, statement),
            max_rows_per_file=options.max_rows_per_file,
            max_bytes_per_file=options.max_bytes_per_file,
        )
        store = self._store()
        clear_dead(store, self._spec.identity)
        now = look_at(store, self._spec)
        snapshot = snapshot_of(store, version=self._version, storage_options=options.storage)
        manifest = snapshot.manifest
        schema = manifest.schema
        self._refreshed = sorted(filled_by_refresh(manifest))
        target = without_columns(target, frozenset(self._refreshed))
        arrow = schema_to_arrow(schema)
        hidden = [name for name in arrow.names if name not in target.names]
        if any(not arrow.field(name).nullable for name in hidden):
            raise InputError(f"the statement brings no values for column {hidden[0]!r}, which must not be null")
        check_schema(target, arrow, drift="fill_missing", uri=self._spec.uri)
        self._attempt = open_attempt(self._spec, TableState(store, now.uri, manifest))
        self._work = make_work(
            self._spec, self._attempt, schema=schema, target=arrow, version=manifest.file_version, bases=manifest.base_paths
        )

    @property
    def carries(self) -> bool:
        """Whether rows that changed take values along that a refresh computed: `write` is then given the address of each."""
        return bool(self._refreshed)

    def write(self, partition: int, task: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Rows of one task: those that changed, or those that are new.

        In columns that a refresh fills, what the statement has is dropped. Rows that come with the address (`ADDRESS_FIELD`)
        that they had keep the value, and the evidence that says what it was computed from; others have none.
        """
        return self._work(partition, task, self._conformed(batches) if self.carries else batches)

    def _conformed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        snapshot: Snapshot | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            given = batch.drop_columns([name for name in self._refreshed if name in batch.schema.names])
            if ADDRESS_FIELD.name not in given.schema.names:
                yield given
                continue
            if snapshot is None:
                snapshot = snapshot_of(self._store(), version=self._version, storage_options=self._options.storage)
            addresses = numpy_of(given.column(ADDRESS_FIELD.name)).astype(np.uint64)
            computed = take_addresses(snapshot, addresses, projection_of(snapshot, self._refreshed))
            yield _beside(given.drop_columns([ADDRESS_FIELD.name]), computed)

    def commit(self, changes: Sequence[RowChanges], *, again: bool = False) -> None:
        """Write the deletion files, stage one transaction and publish it; nothing without a row that changes.

        `again`: who was asked first has died, at whatever step.

        RetryableConflictError or IncompatibleConflictError where others changed the same rows; the table is as it was.
        """
        store = self._store()
        if not (again and is_staged(store, self._attempt)):
            outcome = self._outcome(changes)
            if outcome is None:
                abort_after(store, self._attempt, NothingToDoError("no row changes"))
                return
            results = [result for item in changes for result in item.written]
            properties = assumes_predicate("TRUE") if self._spec.statement == "merge" else {}
            attempt = replace(self._attempt, has_more=again)  # deletion files of the first commit
            close_attempt(store, attempt, results, conclude=outcome, properties=properties)
        if not self._options.stage_only:
            publish(self._spec, self._attempt.attempt)

    def abort(self) -> None:
        """Remove what the tasks wrote, when it certainly is in no version."""
        abort_after(self._store(), self._attempt, InputError("Spark aborted the statement"))

    def _outcome(self, changes: Sequence[RowChanges]) -> _Outcome | None:
        snapshot = snapshot_of(self._store(), version=self._version, storage_options=self._options.storage)
        gone = _distinct([part for item in changes for part in (item.deleted, item.moved)], self._spec.uri)
        fragments = [fragment for item in changes for fragment in _new_fragments(snapshot, item)]
        if not len(gone) and not fragments:
            return None
        deletions = stage_deletions(snapshot, by_fragment(gone), attempt=self._attempt.attempt)
        operation = _operation(snapshot, deletions, fragments, self._spec.statement)
        rows = sum(fragment.physical_rows for fragment in fragments)
        return _Outcome(operation, rows, deletions.num_rows)

    def _store(self) -> Any:
        return resolve_store(table_of(self._options), self._options.storage)


def _beside(rows: pa.RecordBatch, more: pa.Table) -> pa.RecordBatch:
    """Rows with further columns, which one fragment or several gave."""
    [joined] = more.combine_chunks().to_batches()
    return pa.RecordBatch.from_arrays([*rows.columns, *joined.columns], schema=pa.schema([*rows.schema, *joined.schema]))


def _distinct(parts: Sequence[Addresses], uri: str) -> Addresses:
    every = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)
    if len(every) and bool((every[1:] == every[:-1]).any()):
        raise InputError(
            "the statement changes one row of the table twice",
            uri=uri,
            cure="Let at most one row of the source match each row of the table.",
        )
    return every


def _new_fragments(snapshot: Snapshot, item: RowChanges) -> list[Fragment]:
    """The fragments of one task; where rows have ids of their own, those that changed keep them."""
    moved = list(fragments_of([item.moved_rows])) if item.moved_rows is not None else []
    if moved and snapshot.manifest.uses_stable_row_ids:
        moved = with_row_ids(moved, _row_ids(snapshot, item.moved))
    new = fragments_of([item.new_rows]) if item.new_rows is not None else ()
    return [*moved, *new]


def _row_ids(snapshot: Snapshot, addresses: Addresses) -> Any:
    """Stable ids (uint64) of rows by address, in the order of the addresses."""
    order = np.argsort(addresses, kind="stable")
    fragments = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    found = [
        reader_of(snapshot, fragments[number]).row_ids[offsets] for number, offsets in by_fragment(addresses[order]).items()
    ]
    ids = np.empty(len(addresses), np.uint64)
    ids[order] = np.concatenate(found)
    return ids


def _operation(snapshot: Snapshot, deletions: Deletions, fragments: Sequence[Fragment], statement: str) -> Operation:
    if not fragments:
        return Delete(deletions.updated, deletions.removed, f"rows chosen by a {statement.upper()} of Spark SQL")
    return Update(
        removed_fragment_ids=deletions.removed,
        updated_fragments=deletions.updated,
        new_fragments=tuple(fragments),
        # Any column may have changed: no index covers a row because it covered the one that went.
        fields_for_preserving_frag_bitmap=tuple(item.id for item in snapshot.manifest.schema.fields),
    )
