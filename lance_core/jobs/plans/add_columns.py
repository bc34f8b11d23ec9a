"""Add columns: a new data file beside the others of every fragment, as one Merge. A retry goes on where the last try ended.

::

    try 1 on version 7     fragments 0 1 of 0..3 get their file, each put on record; the worker dies
    try 2                  an attempt of its own on version 7 again, which adopts those files, and computes 2 and 3
    staged                 Merge(all fragments with their files, schema with the new columns)
    the commit meets an append                 computes the new fragments, and nothing else  (`refresh_columns`)

Unlike other attempts, one of this kind outlives its driver: it is aborted when the work cannot succeed, and by
`lance staged gc` when nobody came back within its lease. No two tries share an attempt: the first may only be stopped, and
would remove by its name what the second has published.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow_numpy import no_rows
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import load_manifest
from lance_core.commit.references import data_paths
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.columns.evolve import NewColumns
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE
from lance_core.errors import LanceError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.io.many import delete_all
from lance_core.jobs.plans.column_parts import (
    ColumnWork,
    adopt_parts,
    adopt_spool,
    bytes_of,
    columns_of,
    read_parts,
    read_spool,
    record_spool,
)
from lance_core.jobs.plans.edit_fragments import existing, group_fragments
from lance_core.jobs.plans.fill_columns import Filled, existing_names
from lance_core.jobs.plans.maintained_columns import keep_columns
from lance_core.jobs.plans.spark_columns import engine_columns, engine_work
from lance_core.jobs.plans.write_fragments import WriteWork
from lance_core.jobs.runtime.lifecycle import NothingToDoError
from lance_core.jobs.runtime.progress import clear_progress
from lance_core.jobs.runtime.protocols import JobSource, PartPlan, Pass, Runner, Shape, TableState, TaskResult, Work
from lance_core.jobs.runtime.spool import Spool
from lance_core.jobs.sources.conform import created_schema
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.publish.abort import unused_files
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.stage import finish_attempt
from lance_core.table.edits import with_columns_moved
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """What the columns become on one version: the schema with them, the new fields alone, how they are computed."""

    schema: Schema
    part: Schema
    new: NewColumns


Own = tuple[Fragment, DataFile | None]
"""A fragment as it was read, and the file that was written for it; None for one that was left as it is."""


def plan_columns(spec: AddColumnsSpec, table: TableState, runner: Runner) -> PartPlan | None:
    """Check source and columns; None when all of them are there, or are kept (see `maintained_columns`), which is done here.

    InputError, FilterError before anything is written.
    """
    if keep_columns(spec, existing(table, spec), runner):
        return None
    former, spooled, read_before = table.former, None, ""
    if former is not None:
        table = replace(table, manifest=load_manifest(table.store, former.read_version))
        spooled = None if spec.source is None else read_spool(table.store, former.attempt)
        read_before = "" if spooled is None else Asked.from_dict(former.asked).source
    source = None if spec.source is None else runner.open_source(spec.source)
    rows = None if source is None else no_rows(spooled_schema(source))
    snapshot = existing(table, spec)
    target = target_on(spec, snapshot, rows, runner)
    if not target.part.fields:
        log.info("add_columns %s: every column exists already, and stays as it is", spec.uri)
        return None
    tasks = _Tasks(spec, snapshot, target, runner, source)
    return PartPlan(
        table=table,
        source=source,
        shape=shape_of(spec),
        then=(Pass(tasks.put_aside), Pass(tasks.compute)),
        adopt=lambda attempt: _adopt(table, attempt, spooled or ()),
        finish=lambda attempt: _stage(spec, snapshot, target, attempt),
        read_before=read_before,
    )


def _adopt(table: TableState, attempt: Attempt, spooled: Sequence[bytes]) -> None:
    # The source first: parts of two readings of it must not come together.
    adopt_spool(table.store, attempt, spooled)
    adopt_parts(table.store, attempt)


def target_on(spec: AddColumnsSpec, snapshot: Snapshot, rows: pa.Table | None, runner: Runner) -> Target:
    """The columns on a version; `rows` are those to join, where they are joined."""
    in_engine = spec.engine != "lance"
    new = engine_columns(spec, snapshot, runner) if in_engine else columns_of(spec).on_table(snapshot, rows)
    manifest = snapshot.manifest
    there = [name for name in new.fields.names if manifest.schema.has_column(name)]
    fields = pa.schema([item for item in new.fields if item.name not in there])
    added = schema_from_arrow(fields, version=manifest.file_version)
    schema, part = append_fields(manifest, added, FirstId(next_field_id(manifest)))
    filled = manifest.schema.project([manifest.schema.find(name).id for name in there])
    return Target(schema, Schema(filled.fields + part.fields), new)


def spooled_schema(source: JobSource) -> pa.Schema:
    """The source's columns as they are put aside."""
    return source.schema if source.strict_nullability else created_schema(source.schema)


@dataclass(frozen=True)
class _Tasks:
    """The passes of a plan: the source's rows are put aside, once for all tries; then a file for each fragment left."""

    spec: AddColumnsSpec
    snapshot: Snapshot
    target: Target
    runner: Runner
    source: JobSource | None

    def put_aside(self, attempt: Attempt, results: Sequence[TaskResult]) -> tuple[JobSource, Work] | None:
        if self.source is None or read_spool(self.snapshot.store, attempt.attempt) is not None:
            return None
        schema = self._spooled(self.source)
        work = WriteWork(
            uri=self.spec.uri,
            storage_options=self.spec.resolved_options(),
            attempt=attempt.attempt,
            schema=schema,
            target=schema_to_arrow(schema),
            version=self.snapshot.manifest.file_version,
            max_rows_per_file=MAX_ROWS_PER_FILE,
            max_bytes_per_file=None,
            progress_seconds=self.spec.progress_seconds,
        )
        return self.source, work

    def _spooled(self, source: JobSource) -> Schema:
        return schema_from_arrow(spooled_schema(source), version=self.snapshot.manifest.file_version)

    def _spool(self, attempt: Attempt, results: Sequence[TaskResult]) -> Spool | None:
        """The rows that were put aside, by these tasks or an earlier try."""
        if self.source is None:
            return None
        store, version = self.snapshot.store, self.snapshot.manifest.file_version
        fragments = None if results else read_spool(store, attempt.attempt)
        if fragments is None:
            fragments = record_spool(store, attempt.attempt, [data for result in results for data in result.fragments])
        return Spool(self.spec.uri, self.spec.resolved_options(), self._spooled(self.source), version.text, fragments)

    def compute(self, attempt: Attempt, results: Sequence[TaskResult]) -> tuple[JobSource, Work] | None:
        spec, fragments = self.spec, self.snapshot.manifest.fragments
        spool = self._spool(attempt, results)
        finished = read_parts(self.snapshot.store, attempt.attempt)
        left = [fragment for fragment in fragments if fragment.id not in finished]
        log.info("add_columns %s: %d of %d fragments are done", spec.uri, len(finished), len(finished) + len(left))
        if not left:
            return None
        if spec.engine != "lance":
            return engine_work(spec, self.snapshot, left, self.target.part, self.runner, attempt=attempt.attempt)
        groups = group_fragments(left, rows=spec.rows_per_task)
        work = ColumnWork(
            uri=spec.uri,
            storage_options=spec.resolved_options(),
            attempt=attempt.attempt,
            version=attempt.read_version,
            groups=groups,
            columns=columns_of(spec),
            part=self.target.part,
            spool=spool,
            batch_size=spec.batch_size,
            progress_seconds=spec.progress_seconds,
        )
        return self.runner.open_tasks(len(groups)), work


def _stage(spec: AddColumnsSpec, snapshot: Snapshot, target: Target, attempt: Attempt) -> StagedTransaction:
    """All that is on record, as one operation. NothingToDoError when every fragment stays as it is."""
    finished = read_parts(snapshot.store, attempt.attempt)
    _log_filled(spec, finished.values())
    staged = finish_columns(spec, snapshot, target, attempt, {number: part.file for number, part in finished.items()})
    log.info("staged %s: %s for %d fragments", staged.identity, ", ".join(target.new.fields.names), len(finished))
    return staged


def finish_columns(
    spec: AddColumnsSpec, snapshot: Snapshot, target: Target, attempt: Attempt, files: Mapping[int, DataFile | None]
) -> StagedTransaction:
    """Stage the files, and remove what the attempt wrote besides. NothingToDoError when every fragment stays as it is."""
    store, fragments = snapshot.store, snapshot.manifest.fragments
    missing = [fragment.id for fragment in fragments if fragment.id not in files]
    if missing:
        raise LanceError(f"no file was written for fragment(s) {missing[:5]}, so nothing is staged")
    if existing_names(snapshot, target.part) and all(file is None for file in files.values()):
        raise NothingToDoError
    changed = tuple(item if (file := files[item.id]) is None else with_columns_moved(item, file) for item in fragments)
    nullable = all(item.nullable for item in target.part.top_level)
    operation = Merge(changed, target.schema, preserves_nullability=nullable)
    transaction = Transaction(attempt.read_version, attempt.identity, operation, properties=dict(spec.properties))
    unused = unused_files(store, attempt.attempt, keep=frozenset(data_paths(transaction, writers=(attempt.attempt,))))
    size = sum(map(bytes_of, files.values()))
    has_more = bool(unused or attempt.adopts)
    staged = finish_attempt(store, replace(attempt, has_more=has_more), transaction, rows=0, bytes=size)
    if staged.attempt == attempt.attempt:
        # Only now, because nobody adopts anything of one that has finished but what its transaction names.
        delete_all(store, unused)
    clear_progress(store, attempt.attempt)
    return staged


def _log_filled(spec: AddColumnsSpec, parts: Iterable[Filled]) -> None:
    tried = filled = 0
    for part in parts:
        tried, filled = tried + part.num_tried, filled + part.num_filled
    if spec.if_exists == "fill":
        log.info(
            "add_columns %s: %d rows had no value and were computed, %d of them have one now; the others are null, and are "
            "computed again by each run",
            spec.uri, tried, filled,
        )  # fmt: skip


def shape_of(spec: AddColumnsSpec) -> Shape:
    """How its tasks are run."""
    return Shape(tick_seconds=spec.progress_seconds, title=f"add_columns {spec.uri}")
