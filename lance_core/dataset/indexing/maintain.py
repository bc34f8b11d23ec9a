"""Maintain indices: rebuild segments after a compaction, extend them to newly appended rows.

::

    compaction moves fragments 0, 1 to 7     a segment over 0, 1, 2 is built again over 2, 7 and goes into the same commit
    optimize_indices()                       one segment over everything takes the place of an index's segments
    optimize_indices(num_indices_to_merge=0) a further segment over what no segment covers

Segments are built from the column again, never patched: what they say is then right whatever happened before.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_core.dataset.indexing.build import build_segment, rebuild_request, rebuilt
from lance_core.dataset.indexing.folder import folder_of, paths_of, segments_named
from lance_core.dataset.indexing.fragment_reuse import behind, reuse_index, trimmed
from lance_core.dataset.indexing.old_vector_details import with_details
from lance_core.dataset.indexing.segment_tiers import age_of, covered_fragments, covered_rows, segments_to_merge
from lance_core.dataset.indexing.vector_maintain import finds_nothing, is_vector_segment, rebuild_vectors
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry, remove_files
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata, RewrittenIndex
from lance_core.index.base import IndexKind
from lance_core.index.registry import holds_list_elements, kind_by_details
from lance_core.table.coverage import SYSTEM_INDICES, is_address_based
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.operations.rewrite import RewriteGroup
from lance_core.table.transaction import Transaction
from lance_core.wire.index import decode_details


def kind_to_rebuild(index: IndexMetadata) -> IndexKind | None:
    """The kind of a segment this release can build again in its place; None when it cannot."""
    kind = kind_by_details(index.details.kind) if index.details is not None else None
    plain = index.name not in SYSTEM_INDICES and len(index.fields) == 1 and not index.covering_fields
    if kind is None or not plain or index.fragment_bitmap is None:
        return None
    if index.details is None or holds_list_elements(index.details):
        return None
    return kind if (index.index_version or 0) <= kind.version else None


def moves_by_rebuilding(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Whether a segment needs its addresses translated when rows move, and we can do that by building it again."""
    by_address = not snapshot.manifest.uses_stable_row_ids or is_address_based(index)
    return by_address and can_rebuild(with_details(snapshot, index))


def can_rebuild(index: IndexMetadata) -> bool:
    """Whether this release can build a segment like this one."""
    return kind_to_rebuild(index) is not None or is_vector_segment(index)


def rebuild_moved(
    snapshot: Snapshot, groups: Sequence[RewriteGroup], *, attempt: str | None = None
) -> tuple[tuple[RewrittenIndex, ...], tuple[str, ...]]:
    """Build the segments again whose rows the groups moved: what to commit with them, and the files written."""
    gone = {fragment.id for group in groups for fragment in group.old_fragments}
    moved = replace(snapshot, manifest=_after(snapshot, groups, gone))
    done: list[RewrittenIndex] = []
    files: list[str] = []
    try:
        for index in snapshot.manifest.indices:
            bitmap = index.fragment_bitmap or frozenset()
            if bitmap.isdisjoint(gone) or not moves_by_rebuilding(snapshot, index):
                continue
            coverage = set(bitmap - gone)
            for group in groups:
                if any(fragment.id in bitmap for fragment in group.old_fragments):
                    coverage.update(fragment.id for fragment in group.new_fragments)
            built = rebuild(moved, index, coverage, attempt)
            files.extend(paths_of(built))
            version = built.index_version or 0
            done.append(RewrittenIndex(index.uuid, built.uuid, built.details, version, built.files))
    except BaseException:
        remove_files(snapshot, files)
        raise
    return tuple(done), tuple(files)


def _after(snapshot: Snapshot, groups: Sequence[RewriteGroup], gone: Collection[int]) -> Any:
    manifest = snapshot.manifest
    kept = [fragment for fragment in manifest.fragments if fragment.id not in gone]
    new = [fragment for group in groups for fragment in group.new_fragments]
    return replace(manifest, fragments=tuple(sorted([*kept, *new], key=lambda fragment: fragment.id)))


def rebuild(
    snapshot: Snapshot, entry: IndexMetadata, coverage: Collection[int], attempt: str | None, *, retrain: bool = False
) -> IndexMetadata:
    """A segment like that of `entry`, built from the column over the fragments of `coverage` that the snapshot has.

    One of vectors keeps its model unless `retrain`.
    """
    fragments: list[Fragment] = [item for item in snapshot.manifest.fragments if item.id in coverage]
    index = with_details(snapshot, entry)
    if is_vector_segment(index):
        return rebuild_vectors(snapshot, index, fragments, attempt=attempt, retrain=retrain)
    kind = kind_to_rebuild(index)
    assert kind is not None
    request = rebuild_request(snapshot, index, kind, _options_of(snapshot, index, kind))
    return rebuilt(build_segment(snapshot, request, fragments, attempt=attempt), index, [item.id for item in fragments])


def _options_of(snapshot: Snapshot, index: IndexMetadata, kind: IndexKind) -> Mapping[str, Any]:
    """The options a segment was built with, as far as its entry and its files tell."""
    details = decode_details(index.details) if index.details is not None else None
    return kind.options_of(folder_of(snapshot, index), details)


def optimize_indices(
    snapshot: Snapshot,
    *,
    num_indices_to_merge: int | None = None,
    index_names: Sequence[str] | None = None,
    retrain: bool = False,
) -> Snapshot:
    """Cover what no segment covers yet. The same snapshot when there is nothing to do.

    `num_indices_to_merge`: how many of the youngest segments go into the new one (None: all of them; 0: none, a further
    segment is made). `retrain` builds everything again. Indices of kinds we do not build are left alone.
    """
    if num_indices_to_merge is not None and (isinstance(num_indices_to_merge, bool) or num_indices_to_merge < 0):
        raise InputError(f"num_indices_to_merge must be a non-negative integer, got {num_indices_to_merge!r}")
    most = None if retrain else num_indices_to_merge
    if not outdated_indices(snapshot, index_names, most, retrain):
        return snapshot

    def plan(current: Snapshot) -> StagedEdit:
        built: list[IndexMetadata] = []
        removed: list[IndexMetadata] = []
        try:
            for segments, coverage in outdated_indices(current, index_names, most, retrain):
                built.append(rebuild(current, segments[-1], coverage, None, retrain=retrain))
                removed.extend(segments if most is None else segments[len(segments) - min(most, len(segments)) :])
        except BaseException:
            remove_files(current, [path for index in built for path in paths_of(index)])
            raise
        paths = tuple(path for index in built for path in paths_of(index))
        gone = {index.uuid for index in removed}
        remaining = [*(index for index in current.manifest.indices if index.uuid not in gone), *built]
        before, after = reuse_index(current), trimmed(current, remaining)
        if before is not None and after is not before:
            # Nobody needs what the reuse index says about moves that all indices were built after.
            removed.append(before)
            built.extend(() if after is None else (after,))
        operation = CreateIndex(tuple(built), tuple(removed))
        return StagedEdit(Transaction(current.version, str(uuids.uuid4()), operation), paths)

    return commit_with_retry(snapshot, plan)[0]


def outdated_indices(
    snapshot: Snapshot, names: Sequence[str] | None, most: int | None, retrain: bool
) -> list[tuple[list[IndexMetadata], set[int]]]:
    """(segments of an index, oldest first; the fragments its new segment covers) for each index worth a new segment."""
    for name in names or ():
        segments_named(snapshot, name)
    live = {*FragmentList.of(snapshot.manifest.fragments).ids}
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        if names is None or index.name in names:
            by_name.setdefault(index.name, []).append(index)
    found = []
    for segments in by_name.values():
        if not all(can_rebuild(with_details(snapshot, index)) for index in segments):
            continue
        if any(finds_nothing(snapshot, index) for index in segments):
            continue
        segments.sort(key=age_of)
        covered = covered_fragments(segments, live)
        missing = live - set().union(*covered)
        merged = covered if most is None else covered[len(covered) - min(most, len(covered)) :]
        moved = most is None and any(behind(snapshot, index) for index in segments)
        if missing or retrain or moved or len(merged) > 1:
            found.append((segments, missing.union(*merged)))
    return found


def tiered_indices(
    snapshot: Snapshot, names: Sequence[str] | None, fanout: int
) -> list[tuple[IndexMetadata, set[int], list[IndexMetadata]]]:
    """(a segment to build like, the fragments of the new segment, the segments that it replaces) for each index that lags
    behind or whose segments fill a tier."""
    rows = FragmentList.of(snapshot.manifest.fragments).rows_by_id
    found = []
    for segments, _ in outdated_indices(snapshot, names, None, False):
        covered = covered_fragments(segments, rows.keys())
        missing = rows.keys() - set().union(*covered)
        sizes = covered_rows(segments, rows)
        count = segments_to_merge(sizes, sum(rows[number] for number in missing), fanout=fanout)
        # What only the reuse index can follow is built again as a whole.
        first = 0 if any(behind(snapshot, index) for index in segments) else len(segments) - count
        if missing or first < len(segments):
            found.append((segments[-1], missing.union(*covered[first:]), segments[first:]))
    return found
