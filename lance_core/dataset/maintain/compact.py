"""Compaction: rewrite the live rows of small fragments, or fragments with many deleted rows, into fewer fragments.

::

    compact_files(snapshot, CompactionOptions(target_rows_per_fragment=1000))
    -> ReserveFragments (version n + 1), Rewrite (version n + 2), CompactionMetrics(fragments_removed=10, …)

Row ids, where the table keeps them, and the versions rows were made and changed in move along. Indices that refer
to moved rows by address are built again in the same commit; fragments of indices that we cannot build stay as they are.

A compaction that copies pages: for groups of fragments that need no decoding.

::

    compact_files(compaction_mode="try_binary_copy")     copies where it can, encodes the rest again
    compact_files(compaction_mode="force_binary_copy")   InputError where it cannot

It cannot where rows are deleted, where files are of several versions or of 2.0, where a fragment lacks a column (it reads
as null), and where there are blobs. Pages stay as small as they were: many tiny fragments are better encoded again.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lance_core.commit.loop import commit_transaction
from lance_core.commit.naming import data_file_name, data_path
from lance_core.dataset.indexing.fragment_reuse import deferred_index
from lance_core.dataset.indexing.maintain import moves_by_rebuilding, rebuild_moved
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import CompactionGroups, bytes_of, plan_compaction
from lance_core.dataset.scan.blobs import largest_blob
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.deletion_vectors import living_offsets
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.dataset.write.stage import discard_fragments, stage_fragments
from lance_core.errors import CorruptFileError, InputError, LanceError, UnsupportedFeatureError
from lance_core.file.blob.external import KEEP
from lance_core.file.copy_pages import COPYABLE, FilePart, RowRun, copy_pages
from lance_core.format.fragment import Fragment
from lance_core.format.version import FileVersion, parse_storage_version
from lance_core.progress import CountProgress
from lance_core.rowids.message import encode_row_ids, encode_versions
from lance_core.rowids.sequence import sequence_of
from lance_core.rowids.versions import versions_of
from lance_core.table.coverage import is_address_based
from lance_core.table.operations.reserve_fragments import ReserveFragments
from lance_core.table.operations.rewrite import Rewrite, RewriteGroup
from lance_core.table.transaction import Transaction

_MAX_BLOB_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """What a compaction did; files count data files and deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


def compact_files(
    snapshot: Snapshot, options: CompactionOptions, *, progress: CountProgress = lambda done, total: None
) -> tuple[Snapshot, CompactionMetrics]:
    """Plan, rewrite and commit; the same snapshot and zeros when there is nothing to do. Raises CommitError.

    `progress(rows, total)` is called after each group.
    """
    if not plan_snapshot(snapshot, options).groups:
        return snapshot, CompactionMetrics()
    committed, edit = commit_with_retry(snapshot, lambda current: stage_compaction(current, options, progress=progress))
    return committed, CompactionMetrics(**edit.result)


def plan_snapshot(snapshot: Snapshot, options: CompactionOptions) -> CompactionGroups:
    """What a compaction of this version would rewrite, and why it leaves the rest alone."""
    manifest = snapshot.manifest
    pinned: set[int] = set()
    for index in manifest.indices:
        if options.defer_index_remap or moves_by_rebuilding(snapshot, index):
            continue
        if not manifest.uses_stable_row_ids or is_address_based(index):
            everything = frozenset(fragment.id for fragment in manifest.fragments)
            pinned |= everything if index.fragment_bitmap is None else index.fragment_bitmap

    def coverage(fragment: Fragment) -> frozenset[str]:
        # A group must be inside or outside of every index, so that its bitmap can follow.
        return frozenset(index.uuid for index in manifest.indices if fragment.id in (index.fragment_bitmap or ()))

    return plan_compaction(manifest.fragments, options, read_version=snapshot.version, pinned=pinned, coverage=coverage)


def stage_compaction(
    snapshot: Snapshot, options: CompactionOptions, *, progress: CountProgress = lambda done, total: None
) -> StagedEdit:
    """Rewrite the groups, reserve ids for their fragments, and describe the commit."""
    plan = plan_snapshot(snapshot, options)
    groups: list[RewriteGroup] = []
    written: list[Fragment] = []
    try:
        for group in plan.groups:
            new = rewrite_group(snapshot, group, options)
            written.extend(new)
            groups.append(RewriteGroup(group, tuple(new)))
            progress(sum(fragment.num_rows for fragment in written), plan.num_rows)
        edit = stage_rewrite(snapshot, groups, options)
    except BaseException:
        discard_fragments(snapshot.store, written)
        raise
    files = tuple(data_path(file.path) for item in written for file in item.files)
    return replace(edit, files=(*files, *edit.files))


def stage_rewrite(snapshot: Snapshot, groups: Sequence[RewriteGroup], options: CompactionOptions) -> StagedEdit:
    """Describe the commit of rewritten groups: ids are reserved, indices built again. The edit's files are the indices'."""
    numbered = _with_ids(snapshot, groups)
    metrics = asdict(measure(groups))
    if options.defer_index_remap and numbered and not snapshot.manifest.uses_stable_row_ids:
        operation = Rewrite(tuple(numbered), (), deferred_index(snapshot, numbered))
        return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), (), metrics)
    indices, files = rebuild_moved(snapshot, numbered)
    operation = Rewrite(tuple(numbered), indices)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), files, metrics)


def measure(groups: Sequence[RewriteGroup]) -> CompactionMetrics:
    """Removed and added fragments when groups are committed."""
    old = [fragment for group in groups for fragment in group.old_fragments]
    new = [fragment for group in groups for fragment in group.new_fragments]
    return CompactionMetrics(
        fragments_removed=len(old),
        fragments_added=len(new),
        files_removed=sum(len(item.files) + (item.deletion_file is not None) for item in old),
        files_added=sum(len(item.files) for item in new),
    )


def rewrite_group(
    snapshot: Snapshot, group: Sequence[Fragment], options: CompactionOptions, *, attempt: str | None = None
) -> list[Fragment]:
    """Write the live rows of a group into as few fragments of about the target size as there can be."""
    manifest = snapshot.manifest
    copied = copy_group(snapshot, group, options, attempt=attempt)
    if copied is not None:
        return _with_identity(snapshot, group, copied) if manifest.uses_stable_row_ids else copied
    rows = sum(fragment.num_rows for fragment in group)
    num_files = max(1, rows // options.target_rows_per_fragment)
    plan = plan_scan(manifest.schema, group, plan_projection(manifest.schema, None, with_evidence=True))
    fragments = stage_fragments(
        snapshot.store,
        scan(snapshot, plan, batch_size=options.batch_size or _batch_rows(snapshot, group)),
        manifest.schema,
        version=target_version(snapshot, options),
        max_rows_per_file=max(1, -(-rows // num_files)),
        max_bytes_per_file=options.max_bytes_per_file,
        attempt=attempt,
        external=KEEP,
    )
    return _with_identity(snapshot, group, fragments) if manifest.uses_stable_row_ids else fragments


def target_version(snapshot: Snapshot, options: CompactionOptions) -> FileVersion:
    """The version of new files: that of the table, or the requested one. InputError across the legacy format."""
    own = snapshot.manifest.file_version
    if options.data_storage_version is None:
        return own
    if own.is_legacy:
        raise InputError(
            f"compaction cannot change the storage version of a table of version {own.text}",
            cure="Write the rows to a new table.",
        )
    return parse_storage_version(options.data_storage_version)


def _batch_rows(snapshot: Snapshot, group: Sequence[Fragment]) -> int:
    """Rows at a time: as many as there can be, fewer where large blobs would fill the memory."""
    return max(1, min(LARGE_BATCH_ROWS, _MAX_BLOB_BYTES // max(1, largest_blob(snapshot, group))))


def _with_identity(snapshot: Snapshot, group: Sequence[Fragment], fragments: Sequence[Fragment]) -> list[Fragment]:
    """Row ids and versions of the rows, carried over."""
    ids: Any = _gather(snapshot, group, "row_ids")
    if ids is None:
        raise CorruptFileError(
            f"{snapshot.uri}: the table has stable row ids, but not each of the fragments "
            f"{[fragment.id for fragment in group]} has them",
            uri=snapshot.uri,
            version=snapshot.version,
        )
    created: Any = _gather(snapshot, group, "created_at")
    updated: Any = _gather(snapshot, group, "last_updated_at")
    result, start = [], 0
    for fragment in fragments:
        mine = slice(start, start + fragment.physical_rows)
        start += fragment.physical_rows
        result.append(
            replace(
                fragment,
                row_ids=encode_row_ids(sequence_of(ids[mine])),
                created_at_versions=None if created is None else encode_versions(versions_of(created[mine])),
                last_updated_at_versions=None if updated is None else encode_versions(versions_of(updated[mine])),
            )
        )
    return result


def _gather(snapshot: Snapshot, group: Sequence[Fragment], name: str) -> Any:
    """One value per living row of a group; None when a fragment does not record them."""
    parts = []
    for fragment in group:
        values = getattr(reader_of(snapshot, fragment), name)
        if values is None:
            return None
        parts.append(values[living_offsets(snapshot, fragment)])
    return np.concatenate(parts)


def _with_ids(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> list[RewriteGroup]:
    """Groups whose new fragments have real ids, which are reserved by a commit of their own."""
    count = sum(len(group.new_fragments) for group in groups)
    if count == 0:
        return [*groups]
    reserve = Transaction(snapshot.version, str(uuids.uuid4()), ReserveFragments(count))
    highest = commit_transaction(snapshot.store, reserve, opened=snapshot.opened).max_fragment_id
    assert highest is not None
    ids = iter(range(highest - count + 1, highest + 1))
    return [
        replace(group, new_fragments=tuple(replace(fragment, id=next(ids)) for fragment in group.new_fragments))
        for group in groups
    ]


def copy_group(
    snapshot: Snapshot, group: Sequence[Fragment], options: CompactionOptions, *, attempt: str | None = None
) -> list[Fragment] | None:
    """The group's rows in as few fragments as there can be; None when they have to be encoded again."""
    if options.compaction_mode == "reencode":
        return None
    written: list[Fragment] = []
    try:
        _require_plain(snapshot, group, options)
        for part in _cut(group, options):
            path = data_path(data_file_name(attempt))
            runs = [_run_of(snapshot, fragment) for fragment in part]
            file = copy_pages(runs, snapshot.store, path, snapshot.manifest.schema, snapshot.manifest.file_version)
            written.append(Fragment(0, (file.data_file,), file.num_rows))
    except UnsupportedFeatureError as error:
        discard_fragments(snapshot.store, written)
        if options.compaction_mode == "force_binary_copy":
            raise InputError(
                f"fragments cannot be copied: {error}", cure='Pass compaction_mode="try_binary_copy".'
            ) from error
        return None
    except BaseException:
        with suppress(LanceError, OSError):
            discard_fragments(snapshot.store, written)
        raise
    return written


def _require_plain(snapshot: Snapshot, group: Sequence[Fragment], options: CompactionOptions) -> None:
    version: FileVersion = snapshot.manifest.file_version
    if options.data_storage_version is not None and parse_storage_version(options.data_storage_version) is not version:
        raise UnsupportedFeatureError(f"the table has version {version.text}, not {options.data_storage_version}")
    if version not in COPYABLE:
        raise UnsupportedFeatureError(f"the table has version {version.text}")
    for fragment in group:
        if fragment.deletion_file is not None:
            raise UnsupportedFeatureError(f"fragment {fragment.id} has deleted rows")
        if fragment.overlays:
            raise UnsupportedFeatureError(f"fragment {fragment.id} has overlays")


def _cut(group: Sequence[Fragment], options: CompactionOptions) -> Iterator[list[Fragment]]:
    """Whole fragments, as many as make a file of the target's size."""
    rows = sum(fragment.physical_rows for fragment in group)
    per_file = -(-rows // max(1, rows // options.target_rows_per_fragment))
    part: list[Fragment] = []
    num_rows = size = 0
    for fragment in group:
        if part and options.max_bytes_per_file is not None and size + bytes_of(fragment) > options.max_bytes_per_file:
            yield part
            part, num_rows, size = [], 0, 0
        part.append(fragment)
        num_rows, size = num_rows + fragment.physical_rows, size + bytes_of(fragment)
        if num_rows >= per_file:
            yield part
            part, num_rows, size = [], 0, 0
    if part:
        yield part


def _run_of(snapshot: Snapshot, fragment: Fragment) -> RowRun:
    live = snapshot.manifest.schema.by_id
    parts = []
    for file in fragment.files:
        store, is_root = snapshot.store_of(file.base_id)
        columns = tuple(
            (field, column)
            for field, column in zip(file.fields, file.column_indices, strict=False)
            if field in live and column >= 0
        )
        path = data_path(file.path) if is_root else file.path
        parts.append(FilePart(store, path, file.file_size_bytes or None, columns))
    return RowRun(tuple(parts), fragment.physical_rows)
