"""Add columns: a new data file beside the others of every fragment, as one Merge. A retry goes on where the last try ended.

::

    try 1 on version 7     fragments 0 1 of 0..3 get their file, each put on record; the worker dies
    try 2                  finds the attempt, plans on version 7 again, computes 2 and 3
    staged                 Merge(all fragments with their files, schema with the new columns)
    the commit meets an append                 computes the new fragments, and nothing else     (`refresh`)

Unlike other attempts, one of this kind outlives its driver: it is aborted when the work cannot succeed, and by
`lance staged gc` when nobody came back within its lease.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.arrow_numpy import no_rows
from lance_core.commit.log.manifests import load_manifest, version_numbers
from lance_core.commit.log.transactions import read_transaction_file
from lance_core.commit.model import Attempt, StagedTransaction
from lance_core.commit.naming import data_path, is_of_attempt
from lance_core.commit.record_types import is_same_work, work_digest
from lance_core.commit.references import data_paths
from lance_core.commit.registry.attempts import is_withdrawn, list_staged, read_started
from lance_core.commit.staging.remove import remove_attempt, remove_unused
from lance_core.commit.staging.staged import finish_attempt, renew_lease, replace_staged
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.columns.evolve import NewColumns
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE
from lance_core.errors import IncompatibleConflictError, InputError, LanceError, NotFoundError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.failure_record import clear_failure
from lance_core.jobs.runtime.landed_work import after_clear
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
from lance_core.jobs.runtime.local_runner import LocalRows
from lance_core.jobs.runtime.lost_files import explain_lost_file
from lance_core.jobs.runtime.progress import clear_progress
from lance_core.jobs.runtime.protocols import JobSource, Runner, Shape, TableState
from lance_core.jobs.runtime.spool import Spool
from lance_core.jobs.sources.conform import created_schema
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.staging.column_parts import (
    ColumnWork,
    bytes_of,
    columns_of,
    compute_part,
    read_parts,
    read_spool,
    record_spool,
)
from lance_core.jobs.staging.edit_fragments import existing, group_fragments
from lance_core.jobs.staging.fill_columns import Filled, existing_names, with_file
from lance_core.jobs.staging.spark_columns import engine_columns, run_in_engine
from lance_core.jobs.staging.write_fragments import WriteWork
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


class AddColumnsJob:
    """Carries out an `AddColumnsSpec`."""

    kind: ClassVar[str] = "add_columns"
    needs_runner: ClassVar[bool] = True

    def run(self, spec: AddColumnsSpec, runner: Runner) -> StagedTransaction:
        """Stage the columns once; fragments that an earlier try finished are not computed again."""
        spec = spec if spec.identity else spec.with_identity(random_identity())
        store = resolve_store(spec.uri, spec.resolved_options())
        spec = after_clear(store, spec)
        done = find_reference(store, spec)
        if done is not None:
            return done
        clear_failure(store, spec.identity)
        attempt = _find_unfinished(store, spec)
        clear_dead(store, spec.identity, spare="" if attempt is None else attempt.attempt)
        table = (
            look_at(store, spec)
            if attempt is None
            else TableState(store, spec.uri, load_manifest(store, attempt.read_version))
        )
        source = None if spec.source is None else runner.open_source(spec.source)
        target = plan_target(spec, existing(table, spec), source, runner)
        if not target.part.fields:
            log.info("add_columns %s: every column exists already, and stays as it is", spec.uri)
            return note_nothing_to_do(store, spec)
        if attempt is None:
            attempt = open_attempt(spec, table)
        try:
            staged = _stage(spec, runner, attempt, existing(table, spec), target, source)
            return staged if staged is not None else _nothing_to_do(store, spec, attempt.attempt)
        except LanceError as error:
            lost = explain_lost_file(store, attempt, error)
            if lost is not None or not error.retryable:
                abort_after(store, attempt, error)
            if lost is not None:
                raise lost from error
            raise


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
    schema, part = append_fields(manifest.schema, added, FirstId(next_field_id(manifest)))
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
            spec, snapshot, left, target.part, runner, attempt=attempt.attempt, shape=_shape(spec), on_tick=on_tick
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
        runner.run(work, runner.open_tasks(len(groups)), _shape(spec), on_tick)
    if left:
        finished = read_parts(store, attempt.attempt)
    _log_filled(spec, finished.values())
    files = {number: done.file for number, done in finished.items()}
    if all(file is None for file in files.values()) and existing_names(snapshot, target.part):
        return None
    operation = _merge(manifest.fragments, target, files)
    transaction = Transaction(attempt.read_version, attempt.identity, operation, properties=dict(spec.properties))
    remove_unused(store, attempt.attempt, keep=frozenset(data_paths(transaction, attempt=attempt.attempt)))
    size = sum(map(bytes_of, files.values()))
    staged = finish_attempt(store, attempt, transaction, rows=0, bytes=size, fragments=0)
    clear_progress(store, attempt.attempt)
    log.info("staged %s: %s for %d fragments", staged.identity, ", ".join(target.new.fields.names), len(finished))
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


def _nothing_to_do(store: Store, spec: AddColumnsSpec, attempt: str) -> StagedTransaction:
    # Noted first: a kill in between leaves what garbage collection knows as landed.
    nothing = note_nothing_to_do(store, spec)
    remove_attempt(store, spec.identity, attempt, by="nothing to do", landed_too=True)
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
        results = runner.run(work, source, _shape(spec), on_tick_of(store, attempt))
        fragments = record_spool(store, attempt.attempt, [data for result in results for data in result.fragments])
    return Spool(spec.uri, spec.resolved_options(), schema, version.text, fragments)


def _merge(fragments: Sequence[Fragment], target: Target, files: Mapping[int, DataFile | None]) -> Merge:
    missing = [fragment.id for fragment in fragments if fragment.id not in files]
    if missing:
        raise LanceError(f"no file was written for fragment(s) {missing[:5]}, so nothing is staged")
    changed = tuple(item if (file := files[item.id]) is None else with_file(item, file) for item in fragments)
    nullable = all(item.nullable for item in target.part.top_level)
    return Merge(changed, target.schema, preserves_nullability=nullable)


def refresh(store: Store, spec: AddColumnsSpec, ref: StagedTransaction, runner: Runner) -> StagedTransaction:
    """Staged columns on the newest version: fragments that were added or changed since are computed here; the others are
    kept.

    For the commit task. InputError when a column of that name was added in the meantime; NotFoundError when the staged
    files are gone.
    """
    before = read_transaction_file(store, ref.transaction_path)
    if before is None or not isinstance(before.operation, Merge):
        raise NotFoundError(f"{store.uri}: the staged transaction of {ref.identity} no longer exists", uri=store.uri)
    snapshot = existing(look_at(store, spec), spec)
    source = None if spec.source is None else runner.open_source(spec.source)
    rows = None if source is None else _rows_of(source)
    target = target_on(spec, snapshot, rows, runner)
    if not target.part.fields:
        return _nothing_to_do(store, spec, ref.attempt)
    filled = existing_names(snapshot, target.part)
    old = _own_files(before.operation, ref.attempt, target.part)
    if filled:
        old = _filled_files(store, before, old, ref.attempt, target.part)
    read_ids = _ids_of(snapshot.manifest.schema, [*target.new.reads, *filled])
    files: dict[int, DataFile | None] = {}
    for fragment in snapshot.manifest.fragments:
        kept = old.get(fragment.id)
        if kept is not None and _same_values(kept[0], fragment, read_ids):
            files[fragment.id] = None if kept[1] is None else _renumbered(kept[1], target.part)
    computed = [fragment for fragment in snapshot.manifest.fragments if fragment.id not in files]
    if computed and spec.engine != "lance":
        run_in_engine(spec, snapshot, computed, target.part, runner, attempt=ref.attempt, shape=_shape(spec))
        files.update({number: done.file for number, done in read_parts(store, ref.attempt).items()})
    elif computed:
        for fragment in computed:
            files[fragment.id] = compute_part(
                snapshot, fragment, target.part, target.new, attempt=ref.attempt, batch_size=spec.batch_size
            ).file
    if filled and all(file is None for file in files.values()):
        return _nothing_to_do(store, spec, ref.attempt)
    log.info("add_columns %s on version %d: %d fragments filled in", spec.uri, snapshot.version, len(computed))
    transaction = Transaction(
        snapshot.version,
        ref.identity,
        _merge(snapshot.manifest.fragments, target, files),
        properties=dict(spec.properties),
    )
    size = sum(map(bytes_of, files.values()))
    staged = replace_staged(store, ref, transaction, rows=0, bytes=size, fragments=0)
    clear_progress(store, ref.attempt)
    return staged


def _filled_files(store: Store, before: Transaction, own: Mapping[int, Own], attempt: str, part: Schema) -> dict[int, Own]:
    """As `_own_files`, with the fragments as they were before they were filled; those that were left as they are, too."""
    assert isinstance(before.operation, Merge)
    staged = {item.name: item.id for item in before.operation.schema.top_level}
    if before.read_version not in version_numbers(store) or any(staged.get(item.name) != item.id for item in part.top_level):
        return {}
    read = load_manifest(store, before.read_version)
    changed = {item.id: item for item in before.operation.fragments}
    found: dict[int, Own] = {}
    for fragment in read.fragments:
        after = changed.get(fragment.id)
        if after is not None and after.files == fragment.files:
            found[fragment.id] = (fragment, None)
        elif fragment.id in own:
            found[fragment.id] = (fragment, own[fragment.id][1])
    return found


def _own_files(operation: Merge, attempt: str, part: Schema) -> dict[int, Own]:
    """Fragment id -> (the fragment as it was read, the file this attempt wrote for it); none when it wrote other columns
    than `part`, or in another order."""
    found: dict[int, Own] = {}
    names = [item.name for item in part.top_level if operation.schema.has_column(item.name)]
    staged = operation.schema.project([operation.schema.find(name).id for name in names]).fields
    if [(item.name, item.logical_type) for item in staged] != [(item.name, item.logical_type) for item in part.fields]:
        return found
    for fragment in operation.fragments:
        mine = [file for file in fragment.files if is_of_attempt(data_path(file.path), attempt)]
        if mine:
            base = tuple(file for file in fragment.files if file not in mine)
            found[fragment.id] = (replace(fragment, files=base), mine[0])
    return found


def _same_values(read: Fragment, now: Fragment, field_ids: frozenset[int]) -> bool:
    """Whether the columns that were read are still the same cells: rows may have been deleted, columns added."""
    if read.physical_rows != now.physical_rows:
        return False
    return _holders(read, field_ids) == _holders(now, field_ids)


def _holders(fragment: Fragment, field_ids: frozenset[int]) -> dict[int, str]:
    return {number: file.path for file in fragment.files for number in file.fields if number in field_ids}


def _ids_of(schema: Schema, names: Sequence[str]) -> frozenset[int]:
    return frozenset(item.id for name in names for item in schema.descend(schema.find(name).id))


def _renumbered(file: DataFile, part: Schema) -> DataFile:
    """The file under the ids its columns get now: fields are in the same order."""
    ids = tuple(item.id for item in part.fields)
    if len(file.fields) > len(ids):
        raise IncompatibleConflictError(f"the staged file {file.path} has {len(file.fields)} fields, expected {len(ids)}")
    shift = ids[0] - min(file.fields)
    return file if shift == 0 else replace(file, fields=tuple(number + shift for number in file.fields))


def _rows_of(source: JobSource) -> pa.Table:
    if not isinstance(source, LocalRows):
        raise InputError("the source of columns can only be read again in the process of the commit")
    return pa.Table.from_batches(source.rows.batches(), schema=source.schema)


def _find_unfinished(store: Store, spec: AddColumnsSpec) -> Attempt | None:
    """The newest attempt of this very work that never finished, on a version that can still be read."""
    digest = work_digest(work_of(spec))
    for entry in reversed(list_staged(store, identity=spec.identity)):
        attempt = read_started(store, entry.identity, entry.attempt)
        if attempt is None or entry.staged is not None or is_withdrawn(store, entry.identity, entry.attempt):
            continue
        is_same = is_same_work(attempt.digest or attempt.spec_digest, digest)
        if is_same and attempt.read_version in version_numbers(store):
            log.info("add_columns %s: resuming attempt %s", spec.uri, attempt.attempt)
            return attempt
    return None


def _shape(spec: AddColumnsSpec) -> Shape:
    return Shape(tick_seconds=spec.progress_seconds, title=f"add_columns {spec.uri}")
