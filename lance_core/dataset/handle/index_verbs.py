"""The methods for indices, with the official names and results.

::

    dataset.create_scalar_index("id", "BTREE")        dataset.describe_indices()[0].num_rows_indexed
    dataset.drop_index("id_idx")                      dataset.index_statistics("id_idx")["num_unindexed_rows"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError
from lance_core.progress import IndexProgress, reporting
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    # What builds and describes indices is a quarter of the library; a program that only reads never needs it.
    from lance_core.dataset.indexing.describe import IndexDescription
    from lance_core.dataset.snapshot.snapshot import Snapshot
    from lance_core.format.index import IndexMetadata


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """A kind and its parameters in one: `IndexConfig("json", {"path": "a.b", "target_index_type": "btree"})`."""

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@verbs_tell_shortages
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
        progress_callback: Callable[[IndexProgress], None] | None = None,
        format_version: int | str | None = None,
        document_granularity: Any = None,
        **kwargs: Any,
    ) -> IndexMetadata | None:
        """Build an index on a column and move to the version that has it.

        Args:
            column: its name, dotted for a field of a struct.
            index_type: the kind, such as "BTREE", "BITMAP", "INVERTED", or an `IndexConfig`.
            name: `{column}_idx` when left out.
            replace: whether an index of that name may be replaced.
            train: False makes an index that covers nothing yet.
            fragment_ids: build only one segment over these fragments, and publish nothing: its entry is returned, for
                `commit_existing_index_segments`.
            index_uuid: the name of that segment's folder.
            progress_callback: called when the build begins and when it is complete.
            format_version: of a full-text index; 2.
            document_granularity: of a full-text index; "row".
            **kwargs: parameters of the kind.

        Raises:
            InputError: no such column or kind, a type the kind does not index, a name that is taken.
            CommitError: others changed the same index.
        """
        from lance_core.dataset.indexing.build import create_scalar_index, parse_index_request
        from lance_core.dataset.indexing.segments import build_part

        schema = self._snapshot.manifest.schema
        config = IndexConfig(index_type) if isinstance(index_type, str) else index_type
        texts = {"format_version": format_version, "document_granularity": document_granularity}
        given = {**kwargs, **{key: value for key, value in texts.items() if value is not None}}
        request = parse_index_request(schema, column, config.index_type, name, {**config.parameters, **given})
        if fragment_ids is not None:
            return build_part(self._snapshot, request, fragment_ids, index_uuid=index_uuid)
        if index_uuid is not None:
            raise InputError("index_uuid is only valid for a segment of certain fragments", cure="Pass fragment_ids too.")
        with reporting(progress_callback, "build"):
            self._snapshot = create_scalar_index(self._snapshot, request, replaces=replace, train=train)
        return None

    def merge_existing_index_segments(self, segments: Sequence[IndexMetadata]) -> IndexMetadata:
        """One segment over what several unpublished ones cover; nothing is published."""
        from lance_core.dataset.indexing.segments import merge_segments

        return merge_segments(self._snapshot, segments)

    def commit_existing_index_segments(self, index_name: str, column: str, segments: Sequence[IndexMetadata]) -> Any:
        """Publish segments that executors built as one index, in the place of one of that name; returns this handle."""
        from lance_core.dataset.indexing.segments import commit_segments

        self._snapshot = commit_segments(self._snapshot, index_name, column, segments)
        return self

    def merge_index_metadata(self, index_uuid: str, index_type: str, **_options: Any) -> None:
        """Nothing to do: segments are whole when they are built. Kept for callers of the official name."""

    def drop_index(self, name: str) -> None:
        """Publish a version without an index and move to it; its files go with the next cleanup."""
        from lance_core.dataset.indexing.build import drop_index

        self._snapshot = drop_index(self._snapshot, name)

    def describe_indices(self) -> list[IndexDescription]:
        """All indices, by name, with their segments."""
        from lance_core.dataset.indexing.describe import describe

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
        from lance_core.dataset.indexing.describe import statistics

        return statistics(self._snapshot, index_name)

    def check_indices(self, names: Sequence[str] | None = None) -> int:
        """Compare indices (all of them, or those named) with the rows they cover; returns how many segments were.

        Raises CorruptFileError for the first that does not match the rows; InputError for a name there is not.
        """
        from lance_core.dataset.indexing.seal import check_indices

        return check_indices(self._snapshot, names)

    def seal_indices(self, names: Sequence[str] | None = None) -> list[str]:
        """Compare segments without checksums with their rows, then write checksums beside them; returns their uuids.

        For indices that the official library built: from then on every flipped bit in them is found. Makes no version.
        """
        from lance_core.dataset.indexing.seal import seal_indices

        return seal_indices(self._snapshot, names)

    def prewarm_index(self, name: str, *, with_position: bool = False, index_segments: Iterable[Any] | None = None) -> None:
        """Open the segments of an index, and compare those without checksums, so that the first search need not.

        Raises CorruptFileError for a damaged one.
        """
        from lance_core.dataset.indexing.folder import segments_named
        from lance_core.dataset.indexing.scalar_search import open_segment, usable_segments
        from lance_core.dataset.indexing.vector_search import prewarm_vectors
        from lance_core.dataset.indexing.verify import ensure_verified
        from lance_core.dataset.scan.index_policy import VERIFIED

        segments_named(self._snapshot, name)
        wanted = None if index_segments is None else {str(uuid) for uuid in index_segments}
        for segments in usable_segments(self._snapshot).values():
            for segment in segments:
                if segment.index.name == name and (wanted is None or segment.index.uuid in wanted):
                    opened = open_segment(self._snapshot, segment, VERIFIED)
                    ensure_verified(self._snapshot, segment.index, segment.coverage, opened, VERIFIED)
        prewarm_vectors(self._snapshot, name, wanted)
