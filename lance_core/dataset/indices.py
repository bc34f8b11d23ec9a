"""The verbs about indices, with the official names, and what they tell.

::

    dataset.create_scalar_index("id", "BTREE")        dataset.describe_indices()[0].num_rows_indexed
    dataset.drop_index("id_idx")                      dataset.index_statistics("id_idx")["num_unindexed_rows"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance_core.dataset.build_index import column_of, create_scalar_index, drop_index, parse_index_request, segments_named
from lance_core.dataset.index_trust import DEFAULT_TRUST, UNCHECKED
from lance_core.dataset.index_use import Segment, open_segment, usable_segments
from lance_core.dataset.seal import check_indices, seal_indices
from lance_core.dataset.segments import build_part, commit_segments, merge_segments
from lance_core.dataset.snapshot import Snapshot
from lance_core.dataset.trust import believe
from lance_core.dataset.vector_build import VECTOR_DETAILS
from lance_core.dataset.vector_use import prewarm_vectors, vector_statistics, vector_title
from lance_core.errors import InputError
from lance_core.format.index import IndexMetadata
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
            by_name.setdefault(index.name, []).append(index)
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
    rows = {fragment.id: fragment.num_rows for fragment in snapshot.manifest.fragments}
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
    """Figures about one index: what it covers, what it does not, and what its kind tells of each segment."""
    segments = segments_named(snapshot, name)
    rows = {fragment.id: fragment.num_rows for fragment in snapshot.manifest.fragments}
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
    return open_segment(snapshot, Segment(index, kind, frozenset()), UNCHECKED).statistics()


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """A kind and its parameters in one: `IndexConfig("json", {"path": "a.b", "target_index_type": "btree"})`."""

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class IndexingVerbs:
    """What `LanceDataset` can do about indices."""

    _snapshot: Snapshot

    def create_scalar_index(
        self,
        column: str,
        index_type: str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Any = None,
        format_version: int | str | None = None,
        document_granularity: Any = None,
        **kwargs: Any,
    ) -> IndexMetadata | None:
        """Build an index on a column ("BTREE", …) and move to the version that has it.

        With `fragment_ids` only one segment over these fragments is built and nothing is published: its entry is returned,
        for `commit_existing_index_segments`. `index_uuid` names its folder.

        `format_version` (2) and `document_granularity` ("row") are for full text. `name` is `{column}_idx` when left out;
        `train=False` makes an index that covers nothing yet. Raises InputError (no such column or kind, a type the kind does
        not index, a name that is taken), CommitError.
        """
        schema = self._snapshot.manifest.schema
        config = IndexConfig(index_type) if isinstance(index_type, str) else index_type
        texts = {"format_version": format_version, "document_granularity": document_granularity}
        given = {**kwargs, **{key: value for key, value in texts.items() if value is not None}}
        request = parse_index_request(schema, column, config.index_type, name, {**config.parameters, **given})
        if fragment_ids is not None:
            return build_part(self._snapshot, request, fragment_ids, index_uuid=index_uuid)
        if index_uuid is not None:
            raise InputError("index_uuid names a segment", cure="Pass fragment_ids too.")
        self._snapshot = create_scalar_index(self._snapshot, request, replaces=replace, train=train)
        return None

    def merge_existing_index_segments(self, segments: Sequence[IndexMetadata]) -> IndexMetadata:
        """One segment over what several unpublished ones cover; nothing is published."""
        return merge_segments(self._snapshot, segments)

    def commit_existing_index_segments(self, index_name: str, column: str, segments: Sequence[IndexMetadata]) -> Any:
        """Publish segments that executors built as one index, in the place of one of that name; returns this handle."""
        self._snapshot = commit_segments(self._snapshot, index_name, column, segments)
        return self

    def merge_index_metadata(self, index_uuid: str, index_type: str, **_options: Any) -> None:
        """Nothing to do: segments are whole when they are built. Kept for callers of the official name."""

    def drop_index(self, name: str) -> None:
        """Publish a version without an index and move to it; its files go with the next cleanup."""
        self._snapshot = drop_index(self._snapshot, name)

    def describe_indices(self) -> list[IndexDescription]:
        """All indices, by name, with their segments."""
        return describe(self._snapshot)

    def list_indices(self) -> list[dict[str, Any]]:
        """One dict per segment; `describe_indices` tells more."""
        return [
            {
                "name": index.name,
                "type": index.index_type,
                "uuid": segment.uuid,
                "fields": index.field_names,
                "version": segment.dataset_version_at_last_update,
                "fragment_ids": set(segment.fragment_ids),
                "base_id": segment.base_id,
            }
            for index in self.describe_indices()
            for segment in index.segments
        ]

    @property
    def has_index(self) -> bool:
        """Whether this version has any index."""
        return len(self.describe_indices()) > 0

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Figures about an index. Raises InputError when there is none of that name."""
        return statistics(self._snapshot, index_name)

    def check_indices(self, names: Sequence[str] | None = None) -> int:
        """Compare indices (all of them, or those named) with the rows they cover; returns how many segments were.

        Raises CorruptFileError for the first that says something else than the rows; InputError for a name there is not.
        """
        return check_indices(self._snapshot, names)

    def seal_indices(self, names: Sequence[str] | None = None) -> list[str]:
        """Compare segments without checksums with their rows, then write checksums beside them; returns their uuids.

        For indices that the official library built: from then on every flipped bit in them is found. Makes no version.
        """
        return seal_indices(self._snapshot, names)

    def prewarm_index(self, name: str, *, with_position: bool = False, index_segments: Iterable[Any] | None = None) -> None:
        """Open the segments of an index, and compare those without checksums, so that the first search need not.

        Raises CorruptFileError for a damaged one.
        """
        segments_named(self._snapshot, name)
        wanted = None if index_segments is None else {str(uuid) for uuid in index_segments}
        for segments in usable_segments(self._snapshot).values():
            for segment in segments:
                if segment.index.name == name and (wanted is None or segment.index.uuid in wanted):
                    opened = open_segment(self._snapshot, segment)
                    believe(self._snapshot, segment.index, segment.coverage, opened, DEFAULT_TRUST)
        prewarm_vectors(self._snapshot, name, wanted)
