"""Stable row ids of a snapshot: where each row is."""

from __future__ import annotations

from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import CacheSlot, Snapshot
from lance_core.errors import CorruptFileError
from lance_core.rowids.deletion import deletion_vector
from lance_core.rowids.index import FragmentIds, RowIdIndex, build_row_id_index
from lance_core.rowids.sequence import sequence_of


def row_id_index(snapshot: Snapshot) -> RowIdIndex:
    """Return where each stable row id of a snapshot is: built once for a snapshot. Raises CorruptFileError."""
    return snapshot.cached(_ROW_IDS)


def _build(snapshot: Snapshot) -> RowIdIndex:
    parts = []
    for fragment in snapshot.manifest.fragments:
        reader = reader_of(snapshot, fragment)
        if reader.row_ids is None:
            raise CorruptFileError(f"fragment {fragment.id} has no row ids")
        deleted = deletion_vector(reader.deleted) if len(reader.deleted) else None
        parts.append(FragmentIds(fragment.id, sequence_of(reader.row_ids), deleted))
    return build_row_id_index(parts)


_ROW_IDS = CacheSlot(_build)
