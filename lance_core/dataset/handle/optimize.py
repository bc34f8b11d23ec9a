"""`LanceDataset.optimize`: compaction and index maintenance.

::

    dataset.optimize.compact_files(target_rows_per_fragment=1_000_000)

In pieces, for many processes: `lance_core.optimize.Compaction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.maintain.column_merge_plan import MAX_FILES, ColumnMergeOptions
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from lance_core.dataset.handle.compaction_tasks import CompactionPlan
    from lance_core.dataset.maintain.column_merge import ColumnMergeMetrics
    from lance_core.dataset.maintain.compact import CompactionMetrics
    from lance_core.dataset.maintain.compact_options import CompactionChoice


@verbs_tell_shortages
class DatasetOptimizer:
    """Verbs that change how rows are stored, not which rows there are."""

    def __init__(self, dataset: TableHandle) -> None:
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        batch_size: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        defer_index_remap: bool | None = None,
        compaction_mode: str | None = None,
        data_storage_version: str | None = None,
        strategy: str | None = None,
        tier_fanout: int | None = None,
        max_files_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        num_threads: int | None = None,
        io_buffer_size: int | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_overlays_per_fragment: int | None = None,
    ) -> CompactionMetrics:
        """Rewrite small fragments and those with many deleted rows into fewer ones; the handle moves to the new version.

        What is not given here the table's configuration may say, as `lance.compaction.<option>`. The last five steer the
        official library's speed; they are accepted and change nothing here.

        Args:
            target_rows_per_fragment: rows of a fragment to aim at; smaller ones are rewritten. 1,048,576 when left out.
            max_bytes_per_file: bytes of a file at most.
            materialize_deletions: whether fragments with many deleted rows are rewritten; True when left out.
            materialize_deletions_threshold: the share of deleted rows from which they are; 0.1 when left out.
            batch_size: rows that are held at a time.
            max_source_fragments: fragments that one call rewrites at most.
            max_source_rows: rows that one call rewrites at most.
            max_source_bytes: bytes that one call rewrites at most.
            excluded_fragment_ids: fragments that stay as they are.
            defer_index_remap: leave indices as they are, and record the new addresses of rows (the fragment reuse index):
                searches follow that until `optimize_indices` builds the indices again.
            compaction_mode: "reencode"; "try_binary_copy" copies the pages of fragments in which nothing has to be decoded,
                "force_binary_copy" refuses where something has to be.
            data_storage_version: of the files written; the table's own stays.
            strategy: "tiered" (ours) rewrites a size tier when `tier_fanout` fragments of it have gathered, so that
                compacting a table that grows by small appends rewrites each row only a few times.
            tier_fanout: see `strategy`.
            max_files_per_fragment: rewrite fragments whose columns are spread over more data files (ours);
                `merge_column_files` does less for the same end.

        Raises:
            InputError: options that contradict each other, or pages that cannot be copied.
            CommitError: others changed the same rows, and went on doing so.
        """
        from lance_core.dataset.maintain.compact import compact_files
        from lance_core.dataset.maintain.compact_options import choose_options

        given = {
            "target_rows_per_fragment": target_rows_per_fragment,
            "max_bytes_per_file": max_bytes_per_file,
            "materialize_deletions": materialize_deletions,
            "materialize_deletions_threshold": materialize_deletions_threshold,
            "max_source_fragments": max_source_fragments,
            "max_source_rows": max_source_rows,
            "max_source_bytes": max_source_bytes,
            "excluded_fragment_ids": excluded_fragment_ids,
            "batch_size": batch_size,
            "defer_index_remap": defer_index_remap,
            "compaction_mode": compaction_mode,
            "data_storage_version": data_storage_version,
            "strategy": strategy,
            "tier_fanout": tier_fanout,
            "max_files_per_fragment": max_files_per_fragment,
        }
        bounds = choose_options(given, self._dataset.snapshot.manifest.config)
        committed, metrics = compact_files(self._dataset.snapshot, bounds)
        self._dataset.move_to(committed)
        return metrics

    def merge_column_files(self, *, max_files_per_fragment: int = MAX_FILES) -> ColumnMergeMetrics:
        """Merge small data files of fragments that have more than `max_files_per_fragment`; the handle moves on. Ours.

        Each added column puts a further file beside those of every fragment. Of a fragment with too many, the smallest are
        written again as one, so that as many as it may have are left; its large files are not read. No row moves: row ids,
        deletions and indices stay as they are. Files with blobs, and those of version 0.1, are left alone.
        """
        from lance_core.dataset.maintain.column_merge import merge_column_files

        options = ColumnMergeOptions(max_files_per_fragment=max_files_per_fragment)
        committed, metrics = merge_column_files(self._dataset.snapshot, options)
        self._dataset.move_to(committed)
        return metrics

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: Sequence[str] | None = None,
        retrain: bool = False,
    ) -> None:
        """Extend indices to rows that were added after the build; the handle moves to the new version.

        Indices of kinds this release does not build are left alone.

        Args:
            num_indices_to_merge: how many of an index's youngest segments go into the new one; None is all, 0 makes a
                further segment.
            index_names: the only ones; None is all.
            retrain: build everything again, and train vector indices again.

        Raises:
            InputError: a number below zero.
            CommitError: others changed the same indices.
        """
        from lance_core.dataset.indexing.maintain import optimize_indices

        committed = optimize_indices(
            self._dataset.snapshot,
            num_indices_to_merge=num_indices_to_merge,
            index_names=index_names,
            retrain=retrain,
        )
        self._dataset.move_to(committed)

    def enable_auto_cleanup(self, auto_cleanup_config: Mapping[str, int], **_options: Any) -> None:
        """Clean up after every `interval` versions what is older than `older_than_seconds`."""
        self._dataset.update_config(
            {
                "lance.auto_cleanup.interval": str(int(auto_cleanup_config["interval"])),
                "lance.auto_cleanup.older_than": f"{int(auto_cleanup_config['older_than_seconds'])}s",
            }
        )

    def disable_auto_cleanup(self, **_options: Any) -> None:
        """No cleanup after commits any more."""
        self._dataset.delete_config_keys(["lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"])

    def plan_compaction(self, options: CompactionChoice = None) -> CompactionPlan:
        """What `compact_files` would rewrite, and why it leaves the rest alone. Ours; nothing is written."""
        from lance_core.dataset.handle.compaction_tasks import CompactionPlan
        from lance_core.dataset.maintain.compact import plan_snapshot
        from lance_core.dataset.maintain.compact_options import choose_options

        snapshot = self._dataset.snapshot
        return CompactionPlan.of(plan_snapshot(snapshot, choose_options(options, snapshot.manifest.config)))
