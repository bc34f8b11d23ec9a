"""Staged columns on the newest version: what was computed is adopted, what is missing is computed by the commit.

::

    staged on version 7    fragments 0..3 with their files, by attempt a
    version 8              an append: fragment 4; rows of fragment 2 were deleted
    refreshed on 8         attempt b, which adopts a: the four files of a, and one of its own for fragment 4
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_core.commit.manifests import load_manifest, version_numbers
from lance_core.commit.naming import data_path, is_of_any
from lance_core.commit.transactions import read_transaction_file
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import IncompatibleConflictError, InputError, NotFoundError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.jobs.plans.add_columns import (
    Own,
    Target,
    finish_columns,
    shape_of,
    target_on,
)
from lance_core.jobs.plans.column_parts import adopt_parts, compute_part, read_parts
from lance_core.jobs.plans.edit_fragments import existing
from lance_core.jobs.plans.fill_columns import Filled, existing_names
from lance_core.jobs.plans.spark_columns import engine_work
from lance_core.jobs.runtime.lifecycle import NothingToDoError, ending, look_at, note_nothing_to_do, open_attempt
from lance_core.jobs.runtime.progress import clear_progress
from lance_core.jobs.runtime.protocols import JobSource, Runner
from lance_core.jobs.sources.open_source import LocalSource
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.staged_properties import staged_writers
from lance_core.table.operations.merge import Merge
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


def refresh(store: Store, spec: AddColumnsSpec, ref: StagedTransaction, runner: Runner) -> StagedTransaction:
    """Staged columns on the newest version: fragments that were added or changed since are computed here; the others are
    kept.

    For the commit task. InputError when a column of that name was added in the meantime; NotFoundError when the staged
    files are gone.
    """
    before = read_transaction_file(store, ref.transaction_path)
    if before is None or not isinstance(before.operation, Merge):
        raise NotFoundError(f"{store.uri}: the staged transaction of {ref.identity} no longer exists", uri=store.uri)
    table = look_at(store, spec)
    source = None if spec.source is None else runner.open_source(spec.source)
    rows = None if source is None else _rows_of(source)
    target = target_on(spec, existing(table, spec), rows, runner)
    if not target.part.fields:
        return note_nothing_to_do(store, spec, attempt=ref.attempt)
    attempt = open_attempt(spec, table, adopts=staged_writers(before, ref.attempt))
    try:
        with ending(store, attempt, may_resume=True):
            kept = _kept_files(before, attempt.adopts, existing(table, spec), target)
            adopt_parts(store, attempt, {number: Filled(file, 0, 0) for number, file in kept.items()})
            staged = _fill_in(spec, runner, attempt, existing(table, spec), target, kept)
    except NothingToDoError:
        staged = note_nothing_to_do(store, spec, attempt=attempt.attempt)
    clear_progress(store, ref.attempt)
    return staged


def _kept_files(
    before: Transaction, adopted: Sequence[str], snapshot: Snapshot, target: Target
) -> dict[int, DataFile | None]:
    """Fragment id -> the file that adopted attempts wrote for it, where what they read is still the same."""
    assert isinstance(before.operation, Merge)
    if not adopted:
        return {}
    filled = existing_names(snapshot, target.part)
    old = _adopted_files(before.operation, adopted, target.part)
    if filled:
        old = _filled_files(snapshot.store, before, old, target.part)
    read_ids = _ids_of(snapshot.manifest.schema, [*target.new.reads, *filled])
    files: dict[int, DataFile | None] = {}
    for fragment in snapshot.manifest.fragments:
        kept = old.get(fragment.id)
        if kept is not None and _same_values(kept[0], fragment, read_ids):
            files[fragment.id] = None if kept[1] is None else _renumbered(kept[1], target.part)
    return files


def _fill_in(
    spec: AddColumnsSpec,
    runner: Runner,
    attempt: Attempt,
    snapshot: Snapshot,
    target: Target,
    kept: Mapping[int, DataFile | None],
) -> StagedTransaction:
    """Compute what is missing, here, and stage all of it."""
    store, files = snapshot.store, dict(kept)
    computed = [fragment for fragment in snapshot.manifest.fragments if fragment.id not in files]
    if computed and spec.engine != "lance":
        source, work = engine_work(spec, snapshot, computed, target.part, runner, attempt=attempt.attempt)
        runner.run(work, source, shape_of(spec), lambda: None)
        files.update({number: done.file for number, done in read_parts(store, attempt.attempt).items()})
    elif computed:
        for fragment in computed:
            files[fragment.id] = compute_part(
                snapshot, fragment, target.part, target.new, attempt=attempt.attempt, batch_size=spec.batch_size
            ).file
    staged = finish_columns(spec, snapshot, target, attempt, files)
    log.info("add_columns %s on version %d: %d fragments filled in", spec.uri, snapshot.version, len(computed))
    return staged


def _filled_files(store: Store, before: Transaction, own: Mapping[int, Own], part: Schema) -> dict[int, Own]:
    """As `_adopted_files`, with the fragments as they were before they were filled; those that were left so, too."""
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


def _adopted_files(operation: Merge, adopted: Sequence[str], part: Schema) -> dict[int, Own]:
    """Fragment id -> (the fragment as it was read, the file that one of these attempts wrote for it); none when those were
    other columns than `part`, or in another order."""
    found: dict[int, Own] = {}
    names = [item.name for item in part.top_level if operation.schema.has_column(item.name)]
    staged = operation.schema.project([operation.schema.find(name).id for name in names]).fields
    if [(item.name, item.logical_type) for item in staged] != [(item.name, item.logical_type) for item in part.fields]:
        return found
    for fragment in operation.fragments:
        mine = [file for file in fragment.files if is_of_any(data_path(file.path), adopted)]
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
    if not isinstance(source, LocalSource):
        raise InputError("the source of columns can only be read again in the process of the commit")
    return pa.Table.from_batches(source.batches(), schema=source.schema)
