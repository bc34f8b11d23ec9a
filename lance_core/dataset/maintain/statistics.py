"""Figures about the fragments of a version: `LanceDataset.stats`.

::

    dataset.stats.dataset_stats() -> {"num_deleted_rows": 1, "num_fragments": 2, "num_small_files": 2}
    dataset.stats.data_stats().fields -> [FieldStatistics(id=0, bytes_on_disk=8192), …]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.file.open import ContainerFile
from lance_core.format.fragment import Fragment
from lance_core.io.fetcher import drive_one


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """A field's id, and the bytes of its pages in all data files."""

    id: int
    bytes_on_disk: int


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """One entry for every field of the schema."""

    fields: list[FieldStatistics]


class LanceStats:
    """Figures about one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._manifest = snapshot.manifest

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Deleted rows, fragments, and fragments of fewer than `max_rows_per_group` rows."""
        fragments = self._manifest.fragments
        return {
            "num_deleted_rows": sum(fragment.num_deleted_rows for fragment in fragments),
            "num_fragments": len(fragments),
            "num_small_files": sum(fragment.physical_rows < max_rows_per_group for fragment in fragments),
        }

    def data_stats(self) -> DataStatistics:
        """Bytes of every field's pages; every data file's tables are read. Legacy files do not tell: they count as 0."""
        sizes: Counter[int] = Counter()
        for fragment in self._manifest.fragments:
            for field, size in _page_bytes(self._snapshot, fragment):
                sizes[field] += size
        return DataStatistics([FieldStatistics(item.id, sizes[item.id]) for item in self._manifest.schema.fields])

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Figures about an index. InputError when there is none of that name."""
        from lance_core.dataset.indexing.describe import statistics

        return statistics(self._snapshot, index_name)


def _page_bytes(snapshot: Snapshot, fragment: Fragment) -> Iterator[tuple[int, int]]:
    reader = reader_of(snapshot, fragment)
    for file in fragment.files:
        opened = reader.open(file)
        if isinstance(opened, ContainerFile):
            stored = [pair for pair in zip(file.fields, file.column_indices, strict=False) if pair[1] >= 0]
            columns = drive_one(opened.store, opened.path, opened.metadata.load_columns([column for _, column in stored]))
            for (field, _), column in zip(stored, columns, strict=True):
                yield field, sum(item.size for page in column.pages for item in page.buffers)
