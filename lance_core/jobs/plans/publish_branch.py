r"""Publish a branch: its changes since it was created, as one transaction for the main line.

::

    main      v4 ---------- v5 (others) ---- v6: the branch's changes, planned on v4 and judged against v5
                \                           /
    branch       v4 -- v5 -- v6 ----------

    new fragments of the branch      -> their live rows, written again below the main table     Append | Update
    rows it deleted in old fragments -> deletion files of the main table                         Delete | Update
    other files for old fragments    -> columns changed in place: as if all its rows were new, and the old ones deleted
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lance_core.commit.manifests import load_manifest
from lance_core.dataset.refs.branches import MAIN, read_branch
from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.write.deletions import stage_deletions
from lance_core.dataset.write.retry import StagedEdit
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE, stage_fragments
from lance_core.errors import InputError, NotFoundError
from lance_core.file.blob.external import KEEP
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.jobs.plans.assumptions import assumes_keys
from lance_core.jobs.plans.edit_fragments import (
    StageEdit,
    count_taken,
    edit_work,
    existing,
    group_fragments,
    operations_of,
    part_of,
)
from lance_core.jobs.runtime.protocols import Plan, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.table.operations.append import Append
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.update import Update
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class Changes:
    """What a branch changed: the version it began from, its newest, new fragments, and old ones that lost rows or went.

    A fragment whose columns were changed in place went, and is new.
    """

    base: Manifest
    head: int
    new: tuple[Fragment, ...]
    marked: tuple[Fragment, ...]
    removed: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.marked or self.removed)


@dataclass(frozen=True)
class CopyRows:
    """Writes the live rows of some of the branch's fragments below the main table. Pickles."""

    branch: str
    head: int
    fragments: tuple[int, ...]

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """An Update with new fragments only; `snapshot` is of the main line."""
        source = part_of(snapshot.at((self.branch, self.head)), self.fragments)
        schema = source.manifest.schema
        plan = plan_scan(schema, source.manifest.fragments, plan_projection(schema, None, with_evidence=True))
        fragments = stage_fragments(
            snapshot.store,
            scan(source, plan),
            schema,
            version=source.manifest.file_version,
            max_rows_per_file=MAX_ROWS_PER_FILE,
            attempt=attempt,
            external=KEEP,
        )
        return StagedEdit(_transaction(snapshot, Update(new_fragments=tuple(fragments))))


@dataclass(frozen=True)
class TakeDeletions:
    """Deletes in fragments of the main line the rows that the branch deleted in them. Pickles."""

    branch: str
    head: int

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """A Delete; `snapshot` is of the main line, at the version where the branch began."""
        theirs = snapshot.at((self.branch, self.head))
        here = FragmentList.of(theirs.manifest.fragments).pick({item.id for item in snapshot.manifest.fragments})
        gone = {
            item.id: np.setdiff1d(read_deleted(theirs, here[item.id]), read_deleted(snapshot, item), assume_unique=True)
            for item in snapshot.manifest.fragments
        }
        deletions = stage_deletions(snapshot, gone, attempt=attempt)
        operation = Delete(deletions.updated, deletions.removed, f"deleted on branch {self.branch}")
        return StagedEdit(_transaction(snapshot, operation), deletions.files)


@dataclass(frozen=True)
class Publishes:
    """What the tasks staged becomes one operation: the simplest that says it, because it meets the fewest conflicts."""

    changes: Changes
    branch: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation and its counts."""
        new = tuple(item for operation in operations_of(results, Update) for item in operation.new_fragments)
        deletes = operations_of(results, Delete)
        updated = tuple(item for operation in deletes for item in operation.updated_fragments)
        emptied = (number for operation in deletes for number in operation.deleted_fragment_ids)
        removed = (*self.changes.removed, *emptied)
        rows = sum(item.physical_rows for item in new)
        taken = count_taken(self.changes.base, updated, removed)
        operation: Append | Delete | Update
        if not updated and not removed:
            operation = Append(new)
        elif not new:
            operation = Delete(updated, removed, f"deleted on branch {self.branch}")
        else:
            fields = tuple(item.id for item in self.changes.base.schema.fields)
            operation = Update(removed, updated, new, fields_for_preserving_frag_bitmap=fields)
        return StagedOperation(operation, rows, num_deleted=taken)


def plan_publish(spec: PublishBranchSpec, table: TableState, runner: Runner) -> Plan | None:
    """Compare the branch with where it began; None when it changed nothing. InputError, NotFoundError before any write."""
    changes = changes_of(existing(table, spec), spec)
    if not changes:
        return None
    copied = group_fragments(changes.new, rows=spec.rows_per_task)
    marked = group_fragments(changes.marked, rows=spec.rows_per_task)
    stages: tuple[StageEdit, ...] = (
        *(CopyRows(spec.branch, changes.head, group) for group in copied),
        *(TakeDeletions(spec.branch, changes.head) for _ in marked),
    )
    groups = (*(() for _ in copied), *marked)
    return Plan(
        table=replace(table, manifest=changes.base),
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"publish branch {spec.branch} of {spec.uri}"),
        make_work=lambda attempt: edit_work(
            spec, attempt, groups, _nothing, progress_seconds=spec.progress_seconds, stages=stages
        ),
        conclude=Publishes(changes, spec.branch),
        properties={**spec.properties, **_assumed(spec, changes)},
    )


def changes_of(snapshot: Snapshot, spec: PublishBranchSpec) -> Changes:
    """What the branch changed. InputError for what cannot be said as a change of rows, NotFoundError without the branch."""
    branch = read_branch(snapshot.store, spec.branch)
    if branch.parent_branch not in (None, MAIN):
        raise _refusal(spec, f"it was created from branch {branch.parent_branch!r}", "Publish a branch of the main line.")
    try:
        base = load_manifest(snapshot.store, branch.parent_version)
    except NotFoundError as error:
        raise _refusal(
            spec,
            f"its parent version {branch.parent_version} was removed by the cleanup of another library",
            "Create a new branch from the newest version, and write and check there again.",
        ) from error
    head = snapshot_of(snapshot.store, version=(spec.branch, spec.version), storage_options=snapshot.storage_options)
    if head.manifest.schema != base.schema:
        raise _refusal(
            spec,
            "its columns differ from those of its parent version",
            "Change the columns of the main branch first, then create a branch.",
        )
    before = {item.id: item for item in base.fragments}
    after = {item.id: item for item in head.manifest.fragments}
    gone = {number for number, item in before.items() if number not in after or not _same_columns(item, after[number])}
    kept = before.keys() - gone
    return Changes(
        base=base,
        head=head.version,
        new=tuple(item for number, item in after.items() if number not in kept),
        marked=tuple(
            before[number] for number in sorted(kept) if before[number].num_deleted_rows != after[number].num_deleted_rows
        ),
        removed=tuple(sorted(gone)),
    )


def _same_columns(before: Fragment, after: Fragment) -> bool:
    """Whether no column was changed in place, as a refresh of a declared column or an added overlay does."""
    return _files(before) == _files(after) and before.overlays == after.overlays


def _files(fragment: Fragment) -> tuple[DataFile, ...]:
    """A branch finds the same files below a base path."""
    return tuple(replace(item, base_id=None) for item in fragment.files)


def _assumed(spec: PublishBranchSpec, changes: Changes) -> Mapping[str, str]:
    """A branch that replaced rows decided on the rows that it saw."""
    replaces = bool(changes.new) and bool(changes.marked or changes.removed)
    return assumes_keys((), all_rows=True) if replaces and spec.if_moved == "fail" else {}


def _transaction(snapshot: Snapshot, operation: Update | Delete) -> Transaction:
    return Transaction(snapshot.version, str(uuids.uuid4()), operation)


def _nothing(snapshot: Snapshot, attempt: str) -> StagedEdit:  # pragma: no cover - every group has a stage of its own
    raise AssertionError("a published branch cannot be re-executed as a whole")


def _refusal(spec: PublishBranchSpec, why: str, cure: str) -> InputError:
    return InputError(f"branch {spec.branch!r} of {spec.uri} cannot be published: {why}", uri=spec.uri, cure=cure)
