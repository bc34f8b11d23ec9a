"""Describe the indices of a table: segments, coverage, sizes, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_core.dataset.indexing.folder import segments_named
from lance_core.dataset.indexing.old_vector_details import with_details
from lance_core.dataset.indexing.scalar_search import Segment, open_segment
from lance_core.dataset.indexing.vector_build import VECTOR_DETAILS
from lance_core.dataset.indexing.vector_search import vector_statistics, vector_title
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import UnsupportedFeatureError
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import column_of
from lance_core.index.registry import kind_by_details
from lance_core.table.coverage import SYSTEM_INDICES


@dataclass(frozen=True, slots=True)
class IndexSegmentDescription:
    """One segment: the fragments it covers (of those that live), and when it was built (ms since the epoch)."""

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: frozenset[int]
    index_version: int
    created_at: int | None
    size_bytes: int | None
    base_id: int | None
    covering_fields: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """One index by name, with all its segments."""

    name: str
    type_url: str
    index_type: str
    fields: list[int]
    field_names: list[str]
    num_rows_indexed: int
    total_size_bytes: int | None
    segments: list[IndexSegmentDescription]


def describe(snapshot: Snapshot) -> list[IndexDescription]:
    """All indices of a version but the format's own, by name."""
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        if index.name not in SYSTEM_INDICES:
            by_name.setdefault(index.name, []).append(with_details(snapshot, index))
    return [_described(snapshot, name, by_name[name]) for name in sorted(by_name)]


def title_of(index: IndexMetadata) -> str:
    """What kind an index is, in the official library's words: `"BTree"`."""
    if index.details is None:
        return "Unknown"
    if index.details.kind == VECTOR_DETAILS:
        return vector_title(index)
    kind = kind_by_details(index.details.kind)
    return kind.title if kind is not None else index.details.kind.removesuffix("IndexDetails")


def _described(snapshot: Snapshot, name: str, segments: Sequence[IndexMetadata]) -> IndexDescription:
    schema, first = snapshot.manifest.schema, segments[0]
    rows = FragmentList.of(snapshot.manifest.fragments).rows_by_id
    covered = {fragment for index in segments for fragment in index.fragment_bitmap or () if fragment in rows}
    sizes = [_size(index) for index in segments]
    return IndexDescription(
        name=name,
        type_url=first.details.type_url if first.details is not None else "",
        index_type=title_of(first),
        fields=list(first.fields),
        field_names=[column_of(schema, field) for field in first.fields if field in schema.by_id],
        num_rows_indexed=sum(rows[fragment] for fragment in covered),
        total_size_bytes=sum(size or 0 for size in sizes) if all(size is not None for size in sizes) else None,
        segments=[
            IndexSegmentDescription(
                uuid=index.uuid,
                dataset_version_at_last_update=index.dataset_version,
                fragment_ids=frozenset(fragment for fragment in index.fragment_bitmap or () if fragment in rows),
                index_version=index.index_version or 0,
                created_at=index.created_at,
                size_bytes=size,
                base_id=index.base_id,
                covering_fields=index.covering_fields,
            )
            for index, size in zip(segments, sizes, strict=True)
        ],
    )


def _size(index: IndexMetadata) -> int | None:
    return sum(file.size_bytes for file in index.files) if index.files else None


def statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Figures about one index: what it covers, what it does not, and the statistics of each segment by its kind."""
    segments = tuple(with_details(snapshot, index) for index in segments_named(snapshot, name))
    rows = FragmentList.of(snapshot.manifest.fragments).rows_by_id
    covered = [{fragment for fragment in index.fragment_bitmap or () if fragment in rows} for index in segments]
    everything = set().union(*covered)
    told = [_told(snapshot, index) for index in segments]
    stamps = [index.created_at for index in segments if index.created_at is not None]
    return {
        "index_type": title_of(segments[0]),
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": told,
        "segments": told,
        "num_indexed_fragments": len(everything),
        "num_indexed_rows": sum(rows[fragment] for fragment in everything),
        "num_unindexed_fragments": len(rows) - len(everything),
        "num_unindexed_rows": sum(count for fragment, count in rows.items() if fragment not in everything),
        "num_indexed_rows_per_delta": [sum(rows[fragment] for fragment in here) for here in covered],
        "updated_at_timestamp_ms": max(stamps, default=None),
    }


def _told(snapshot: Snapshot, index: IndexMetadata) -> dict[str, Any]:
    if index.details is not None and index.details.kind == VECTOR_DETAILS:
        return vector_statistics(snapshot, index)
    kind = kind_by_details(index.details.kind) if index.details is not None else None
    if kind is None or (index.index_version or 0) > kind.version:
        return {}
    try:
        return open_segment(snapshot, Segment(index, kind, frozenset()), DEFAULT_POLICY).statistics()
    except UnsupportedFeatureError:
        return {}  # such as a full-text index of a later format version
