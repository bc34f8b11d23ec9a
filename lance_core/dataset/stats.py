"""Figures about the fragments of a version: `LanceDataset.stats`.

::

    dataset.stats.dataset_stats() -> {"num_deleted_rows": 1, "num_fragments": 2, "num_small_files": 2}
"""

from __future__ import annotations

from lance_core.dataset.snapshot import Snapshot


class LanceStats:
    """Figures about one version; everything comes from its manifest."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._manifest = snapshot.manifest

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Deleted rows, fragments, and fragments of fewer than `max_rows_per_group` rows."""
        fragments = self._manifest.fragments
        return {
            "num_deleted_rows": sum(fragment.num_deleted_rows for fragment in fragments),
            "num_fragments": len(fragments),
            "num_small_files": sum(fragment.physical_rows < max_rows_per_group for fragment in fragments),
        }
