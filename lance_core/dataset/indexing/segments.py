"""Distributed index builds: each executor builds a segment over some fragments, one commit publishes them all.

::

    part = build_part(snapshot, request, [0, 1], index_uuid=None)      files below `_indices/{uuid}/`, unpublished
    commit_segments(snapshot, "id_idx", "id", [part, other])           one CreateIndex; replaces the index of that name

An entry is plain data (it pickles), so it travels from executor to driver. Memory is that of one segment.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Sequence
from dataclasses import replace

from lance_core.dataset.indexing.build import IndexRequest, build_segment
from lance_core.dataset.indexing.folder import paths_of
from lance_core.dataset.indexing.maintain import rebuild
from lance_core.dataset.indexing.vector_maintain import is_vector_segment, merge_vector_segments
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.manifest import Manifest
from lance_core.format.schema import column_of
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction


def build_part(
    snapshot: Snapshot, request: IndexRequest, fragment_ids: Collection[int], *, index_uuid: str | None = None
) -> IndexMetadata:
    """Build one segment over some fragments. Raises InputError for a fragment that is not there, or a uuid that is none."""
    fragments = fragments_of(snapshot, fragment_ids)
    if index_uuid is not None:
        try:
            uuids.UUID(index_uuid)
        except ValueError as error:
            raise InputError(f"index_uuid is {index_uuid!r}, expected a uuid") from error
    return build_segment(snapshot, request, fragments, uuid=index_uuid)


def fragments_of(snapshot: Snapshot, fragment_ids: Collection[int]) -> list[Fragment]:
    """The fragments of these ids. Raises InputError when one is not there."""
    by_id = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    missing = sorted(set(fragment_ids) - by_id.keys())
    if missing or not fragment_ids:
        raise InputError(f"version {snapshot.version} has no fragment {missing[0] if missing else '(the list is empty)'}")
    return [by_id[number] for number in sorted(set(fragment_ids))]


def merge_segments(snapshot: Snapshot, segments: Sequence[IndexMetadata]) -> IndexMetadata:
    """One segment over the coverage of several; the replaced segments stay unpublished.

    Codes of vectors that are as they were are put together, all else is built from the column again. Raises InputError: no
    segments, several kinds or columns, the same rows twice, models trained apart, fragments that are gone.
    """
    _check(segments)
    if is_vector_segment(segments[0]) and _still_covered(snapshot, segments) == tuple(segments):
        return merge_vector_segments(snapshot, segments)
    coverage = frozenset().union(*(segment.fragment_bitmap or frozenset() for segment in segments))
    fragments_of(snapshot, coverage)
    return rebuild(snapshot, segments[0], coverage, None)


def commit_segments(snapshot: Snapshot, name: str, column: str, segments: Sequence[IndexMetadata]) -> Snapshot:
    """Publish segments as the index of that name, in the place of what it was.

    A segment covers those of its fragments whose column is what it was when the segment was built. Raises InputError.
    """
    _check(segments)
    for segment in segments:
        if any(column_of(snapshot.manifest.schema, field) != column for field in segment.fields):
            raise InputError(f"segment {segment.uuid} is not on column {column!r}")
    named = tuple(replace(segment, name=name) for segment in segments)
    paths = tuple(path for segment in named for path in paths_of(segment))

    def plan(current: Snapshot) -> StagedEdit:
        old = tuple(index for index in current.manifest.indices if index.name == name)
        operation = CreateIndex(_still_covered(current, named), old)
        return StagedEdit(Transaction(current.version, str(uuids.uuid4()), operation), paths)

    return commit_with_retry(snapshot, plan)[0]


def _still_covered(snapshot: Snapshot, segments: Sequence[IndexMetadata]) -> tuple[IndexMetadata, ...]:
    """The segments over those of their fragments whose column is what it was when they were built."""
    versions = {item.dataset_version: item for item in segments if item.dataset_version != snapshot.version}
    before = {version: _manifest_of(snapshot, segment) for version, segment in versions.items()}
    return tuple(_unchanged(item, before.get(item.dataset_version), snapshot.manifest) for item in segments)


def _manifest_of(snapshot: Snapshot, segment: IndexMetadata) -> Manifest:
    try:
        return snapshot.at(segment.dataset_version).manifest
    except NotFoundError as error:
        raise InputError(
            f"segment {segment.uuid} was built from version {segment.dataset_version}, which was removed",
            cure="Build it again.",
        ) from error


def _unchanged(segment: IndexMetadata, before: Manifest | None, current: Manifest) -> IndexMetadata:
    if before is None:
        return segment
    fields = {item.id for number in segment.fields for item in before.schema.descend(number)}
    then, now = ({item.id: _files_of(item, fields) for item in manifest.fragments} for manifest in (before, current))
    mine = segment.fragment_bitmap or frozenset()
    return replace(segment, fragment_bitmap=frozenset(item for item in mine if item in now and now[item] == then.get(item)))


def _files_of(fragment: Fragment, fields: set[int]) -> tuple[str, ...]:
    """The data files that have values of some fields."""
    return tuple(file.path for file in fragment.files if not fields.isdisjoint(file.fields))


def _check(segments: Sequence[IndexMetadata]) -> None:
    if not segments:
        raise InputError("the list of segments is empty")
    kinds = {(segment.fields, None if segment.details is None else segment.details.kind) for segment in segments}
    if len(kinds) > 1:
        raise InputError("the segments are on different columns or of different kinds")
    seen: set[int] = set()
    for segment in segments:
        again = seen & (segment.fragment_bitmap or frozenset())
        if again:
            raise InputError(f"two segments cover fragment {min(again)}", cure="Cover each fragment by exactly one segment.")
        seen |= segment.fragment_bitmap or frozenset()
