"""Merge small column files: the columns of several data files of a fragment, written again as one.

::

    fragment 3    a.lance (0, 1)  b.lance (5)  c.lance (6)  d.lance (7)        before
    fragment 3    a.lance (0, 1)  e.lance (5, 6, 7)                            after: one Update

No row moves. The new file has all physical rows, deleted ones too, so the fragment keeps its id, its row ids and its
deletion file, and what indices say about it stays right. The values are the same, so the Update modifies no field.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from lance_core.commit.naming import data_path
from lance_core.dataset.columns.column_files import write_same_columns
from lance_core.dataset.maintain.column_merge_plan import (
    ColumnMerge,
    ColumnMergeOptions,
    ColumnMergePlan,
    plan_column_merges,
)
from lance_core.dataset.scan.plan import DEFAULT_BATCH_ROWS
from lance_core.dataset.snapshot.fragment_reader import reader_of, stored_part
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry, remove_files
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import TOMBSTONE, Schema
from lance_core.progress import CountProgress
from lance_core.table.operations.update import Update
from lance_core.table.transaction import Transaction

_BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ColumnMergeMetrics:
    """What a merge of column files did; bytes are those of data files."""

    fragments: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0


def merge_column_files(
    snapshot: Snapshot, options: ColumnMergeOptions, *, progress: CountProgress = lambda done, total: None
) -> tuple[Snapshot, ColumnMergeMetrics]:
    """Plan, write and commit; the same snapshot and zeros when no fragment has too many files. Raises CommitError.

    `progress(fragments, total)` is called after each fragment.
    """
    if not plan_snapshot_merges(snapshot, options).merges:
        return snapshot, ColumnMergeMetrics()
    committed, edit = commit_with_retry(snapshot, lambda current: stage_column_merges(current, options, progress=progress))
    return committed, ColumnMergeMetrics(**edit.result)


def plan_snapshot_merges(snapshot: Snapshot, options: ColumnMergeOptions) -> ColumnMergePlan:
    """What a merge of this version would read, and why it leaves fragments alone."""
    manifest = snapshot.manifest
    return plan_column_merges(manifest.fragments, manifest.schema, options, read_version=snapshot.version)


def stage_column_merges(
    snapshot: Snapshot,
    options: ColumnMergeOptions,
    *,
    attempt: str | None = None,
    progress: CountProgress = lambda done, total: None,
) -> StagedEdit:
    """Write the merged files of all fragments that are due, and describe the commit."""
    written: list[Fragment] = []
    paths: list[str] = []
    merges = plan_snapshot_merges(snapshot, options).merges
    try:
        for merge in merges:
            written.append(merge_fragment_files(snapshot, merge, attempt=attempt))
            paths += [data_path(file.path) for file in _new_files(merge.fragment, written[-1])]
            progress(len(written), len(merges))
    except BaseException:
        remove_files(snapshot, paths)
        raise
    transaction = Transaction(snapshot.version, str(uuids.uuid4()), operation_of(written))
    return StagedEdit(transaction, tuple(paths), asdict(measure_merges(merges, written)))


def operation_of(fragments: Sequence[Fragment]) -> Update:
    """The commit of fragments with other files for the same values.

    REWRITE_ROWS, which an Update is by default: a concurrent replacement of one of the old files must then be planned again.
    """
    return Update(updated_fragments=tuple(fragments))


def measure_merges(merges: Sequence[ColumnMerge], written: Sequence[Fragment]) -> ColumnMergeMetrics:
    """Removed and added files when merged fragments are committed."""
    added = [file for merge, new in zip(merges, written, strict=True) for file in _new_files(merge.fragment, new)]
    return ColumnMergeMetrics(
        fragments=len(merges),
        files_removed=sum(len(merge.files) for merge in merges),
        files_added=len(added),
        bytes_removed=sum(merge.num_bytes for merge in merges),
        bytes_added=sum(file.file_size_bytes or 0 for file in added),
    )


def merge_fragment_files(snapshot: Snapshot, merge: ColumnMerge, *, attempt: str | None = None) -> Fragment:
    """Write the chosen files' columns as one file; the fragment with it instead of them."""
    fragment = merge.fragment
    schema = snapshot.manifest.schema
    held = _held(schema, merge.files)
    files = _without(fragment.files, merge.files, frozenset(held.ids))
    if not held.fields and files:
        return replace(fragment, files=files)  # the schema has none of their columns any more
    rows = max(1, min(DEFAULT_BATCH_ROWS, _BATCH_BYTES * fragment.physical_rows // max(merge.num_bytes, 1)))
    new = write_same_columns(reader_of(snapshot, fragment), held, batch_size=rows, attempt=attempt)
    return replace(fragment, files=(*files, new))


def _held(schema: Schema, files: Sequence[DataFile]) -> Schema:
    """The part of the schema that the files hold together."""
    leaves = [
        item.id
        for part in (stored_part(schema, file) for file in files)
        for item in part.fields
        if not schema.children(item.id)
    ]
    return schema.project(leaves)


def _without(files: Sequence[DataFile], merged: Sequence[DataFile], moved: frozenset[int]) -> tuple[DataFile, ...]:
    """The other files; a field that moved although one of them lists it is dead there."""
    gone = {file.path for file in merged}
    kept = (file for file in files if file.path not in gone)
    return tuple(
        file
        if moved.isdisjoint(file.fields)
        else replace(file, fields=tuple(TOMBSTONE if number in moved else number for number in file.fields))
        for file in kept
    )


def _new_files(before: Fragment, after: Fragment) -> list[DataFile]:
    there = {file.path for file in before.files}
    return [file for file in after.files if file.path not in there]
