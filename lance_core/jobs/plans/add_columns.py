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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow_numpy import no_rows
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import load_manifest, version_numbers
from lance_core.commit.references import data_paths
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.columns.evolve import NewColumns
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE
from lance_core.errors import LanceError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.many import delete_all
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
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
from lance_core.jobs.plans.spark_columns import engine_columns, run_in_engine
from lance_core.jobs.plans.write_fragments import WriteWork
from lance_core.jobs.runtime.committed_work import after_clear
from lance_core.jobs.runtime.failure_record import clear_failure
from lance_core.jobs.runtime.lifecycle import (
    abort_after,
    clear_dead,
    find_reference,
    look_at,
    note_nothing_to_do,
    on_tick_of,
    open_attempt,
    work_of,
)
from lance_core.jobs.runtime.lost_files import explain_lost_file
from lance_core.jobs.runtime.other_content import with_files_as_read, with_files_of
from lance_core.jobs.runtime.progress import clear_progress
from lance_core.jobs.runtime.protocols import JobSource, Runner, Shape, TableState
from lance_core.jobs.runtime.spool import Spool
from lance_core.jobs.sources.conform import created_schema
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.publish.abort import ITSELF, AbortRequest, remove_attempt, unused_files
from lance_core.publish.attempts import list_staged, read_started
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.records import is_same_work, work_digest
from lance_core.publish.stage import adopt_unfinished, finish_attempt, renew_lease
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


def add_columns(spec: AddColumnsSpec, runner: Runner) -> StagedTransaction:
    """Stage the columns once; fragments that an earlier try finished are not computed again."""
    spec = spec if spec.identity else spec.with_identity(random_identity())
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = after_clear(store, spec)
    done = find_reference(store, spec)
    if done is not None:
        return done
    kept = keep_columns(spec, runner)
    if kept is not None:
        return kept
    clear_failure(store, spec.identity)
    former = _find_unfinished(store, spec)
    clear_dead(store, spec.identity, spare="" if former is None else former.attempt)
    table = look_at(store, spec) if former is None else _table_of(store, spec, former)
    source = None if spec.source is None else runner.open_source(spec.source)
    target = plan_target(spec, existing(table, spec), source, runner)
    if not target.part.fields:
        log.info("add_columns %s: every column exists already, and stays as it is", spec.uri)
        return note_nothing_to_do(store, spec)
    spec = with_files_of(source, spec)
    attempt = open_attempt(spec, table) if former is None else _take_over(spec, table, former)
    with ending(store, attempt):
        staged = _stage(spec, runner, attempt, existing(table, spec), target, source)
        return staged if staged is not None else nothing_to_do(store, spec, attempt.attempt)


@contextmanager
def ending(store: Store, attempt: Attempt) -> Iterator[None]:
    """An attempt that no retry can bring to an end is removed."""
    try:
        yield
    except LanceError as error:
        lost = explain_lost_file(store, attempt, error)
        if lost is not None or not error.retryable:
            abort_after(store, attempt, error)
        if lost is not None:
            raise lost from error
        raise


def _take_over(spec: AddColumnsSpec, table: TableState, former: Attempt) -> Attempt:
    """A new attempt, which goes on with what an unfinished one has finished."""
    store, known = table.store, Asked.from_dict(former.asked).source
    if known and read_spool(store, former.attempt) is not None:
        spec = with_files_as_read(spec, known)
    attempt = open_attempt(spec, table, adopts=(former.attempt, *former.adopts))
    attempt = adopt_unfinished(store, attempt)
    if attempt.adopts:
        # The source first: parts of two readings of it must not come together.
        adopt_spool(store, attempt, former.attempt)
        adopt_parts(store, attempt, read_parts(store, former.attempt))
    clear_dead(store, spec.identity, spare=attempt.attempt)
    return attempt


def _table_of(store: Store, spec: AddColumnsSpec, former: Attempt) -> TableState:
    return TableState(store, spec.uri, load_manifest(store, former.read_version))


def plan_target(spec: AddColumnsSpec, snapshot: Snapshot, source: JobSource | None, runner: Runner) -> Target:
    """The columns on a version, checked. InputError, FilterError before anything is written."""
    rows = None if source is None else no_rows(spooled_schema(source))
    return target_on(spec, snapshot, rows, runner)


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


def _stage(
    spec: AddColumnsSpec, runner: Runner, attempt: Attempt, snapshot: Snapshot, target: Target, source: JobSource | None
) -> StagedTransaction | None:
    """None when every fragment stays as it is."""
    store, manifest = snapshot.store, snapshot.manifest
    on_tick = on_tick_of(store, attempt)
    renew_lease(store, attempt)
    spool = None if source is None else _put_aside(spec, runner, attempt, source, manifest.file_version)
    finished = read_parts(store, attempt.attempt)
    left = [fragment for fragment in manifest.fragments if fragment.id not in finished]
    log.info("add_columns %s: %d of %d fragments are done", spec.uri, len(finished), len(finished) + len(left))
    if left and spec.engine != "lance":
        run_in_engine(
            spec, snapshot, left, target.part, runner, attempt=attempt.attempt, shape=shape_of(spec), on_tick=on_tick
        )
    elif left:
        groups = group_fragments(left, rows=spec.rows_per_task)
        work = ColumnWork(
            uri=spec.uri,
            storage_options=spec.resolved_options(),
            attempt=attempt.attempt,
            version=attempt.read_version,
            groups=groups,
            columns=columns_of(spec),
            part=target.part,
            spool=spool,
            batch_size=spec.batch_size,
            progress_seconds=spec.progress_seconds,
        )
        runner.run(work, runner.open_tasks(len(groups)), shape_of(spec), on_tick)
    if left:
        finished = read_parts(store, attempt.attempt)
    _log_filled(spec, finished.values())
    files = {number: done.file for number, done in finished.items()}
    require_all(manifest.fragments, files)
    if all(file is None for file in files.values()) and existing_names(snapshot, target.part):
        return None
    operation = merge_of(manifest.fragments, target, files)
    transaction = Transaction(attempt.read_version, attempt.identity, operation, properties=dict(spec.properties))
    staged = finish_columns(store, attempt, transaction, files)
    log.info("staged %s: %s for %d fragments", staged.identity, ", ".join(target.new.fields.names), len(finished))
    return staged


def finish_columns(
    store: Store, attempt: Attempt, transaction: Transaction, files: Mapping[int, DataFile | None]
) -> StagedTransaction:
    """Stage them, and remove what the attempt wrote besides."""
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


def nothing_to_do(store: Store, spec: AddColumnsSpec, attempt: str) -> StagedTransaction:
    """Every fragment stays as it is: the identity counts as committed, and the attempt goes."""
    # Noted first: a kill in between leaves what garbage collection knows as committed.
    nothing = note_nothing_to_do(store, spec)
    remove_attempt(store, (spec.identity, attempt), AbortRequest(ITSELF, committed_too=True))
    clear_progress(store, attempt)
    return nothing


def _put_aside(spec: AddColumnsSpec, runner: Runner, attempt: Attempt, source: JobSource, version: FileVersion) -> Spool:
    """The source's rows, once for all tries of the attempt."""
    store = resolve_store(spec.uri, spec.resolved_options())
    schema = schema_from_arrow(spooled_schema(source), version=version)
    fragments = read_spool(store, attempt.attempt)
    if fragments is None:
        work = WriteWork(
            uri=spec.uri,
            storage_options=spec.resolved_options(),
            attempt=attempt.attempt,
            schema=schema,
            target=schema_to_arrow(schema),
            version=version,
            max_rows_per_file=MAX_ROWS_PER_FILE,
            max_bytes_per_file=None,
            progress_seconds=spec.progress_seconds,
        )
        results = runner.run(work, source, shape_of(spec), on_tick_of(store, attempt))
        fragments = record_spool(store, attempt.attempt, [data for result in results for data in result.fragments])
    return Spool(spec.uri, spec.resolved_options(), schema, version.text, fragments)


def require_all(fragments: Sequence[Fragment], done: Container[int]) -> None:
    """LanceError when nothing is known of what became of a fragment."""
    missing = [fragment.id for fragment in fragments if fragment.id not in done]
    if missing:
        raise LanceError(f"no file was written for fragment(s) {missing[:5]}, so nothing is staged")


def merge_of(fragments: Sequence[Fragment], target: Target, files: Mapping[int, DataFile | None]) -> Merge:
    """The operation that adds each file to its fragment."""
    require_all(fragments, files)
    changed = tuple(item if (file := files[item.id]) is None else with_columns_moved(item, file) for item in fragments)
    nullable = all(item.nullable for item in target.part.top_level)
    return Merge(changed, target.schema, preserves_nullability=nullable)


def _find_unfinished(store: Store, spec: AddColumnsSpec) -> Attempt | None:
    """The newest attempt of this very work that never finished, on a version that can still be read."""
    digest = work_digest(work_of(spec))
    for entry in reversed(list_staged(store, identity=spec.identity)):
        attempt = read_started(store, entry.identity, entry.attempt)
        if attempt is None or entry.state not in ("running", "expired"):
            continue
        is_same = is_same_work(attempt.digest, digest)
        if is_same and attempt.read_version in version_numbers(store):
            log.info("add_columns %s: going on with what attempt %s has finished", spec.uri, attempt.attempt)
            return attempt
    return None


def shape_of(spec: AddColumnsSpec) -> Shape:
    """How its tasks are run."""
    return Shape(tick_seconds=spec.progress_seconds, title=f"add_columns {spec.uri}")
