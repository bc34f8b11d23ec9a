"""Update: rows get new values, either moved into new fragments or rewritten column by column in place.

REWRITE_ROWS       rows deleted in their fragments, written again (with new values) into new_fragments
REWRITE_COLUMNS    updated_fragments carry new files for fields_modified
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from lance_core.errors import CorruptFileError
from lance_core.format.fragment import Fragment
from lance_core.rowids.bitmap import bitmap_array, decode_bitmap
from lance_core.table.operations.base import CompactedSsTable
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


class UpdateMode(enum.IntEnum):
    """How the rows were changed."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True)
class KeyBloomFilter:
    """A set of keys, approximately."""

    bitmap: bytes
    num_bits: int
    number_of_items: int
    probability: float


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Which keys an update inserted: exactly (hashes) or as a bloom filter; at most one of the two is set."""

    field_ids: tuple[int, ...]
    key_hashes: tuple[int, ...] | None = None
    bloom: KeyBloomFilter | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Change rows; field ids and fragment ids as in the manifest of `read_version`."""

    name: ClassVar[str] = "Update"
    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    compacted_sstables: tuple[CompactedSsTable, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[int, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyFilter | None = None
    updated_fragment_offsets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    updated_fragment_offset_bitmaps: Mapping[int, bytes] = field(default_factory=dict)

    def touches(self) -> Touches:
        """The fragments that lose rows or get new files."""
        return Touches(
            modified=frozenset(fragment.id for fragment in self.updated_fragments),
            removed=frozenset(self.removed_fragment_ids),
            fields=frozenset(self.fields_modified),
            supplies_values=True,
        )

    def apply(self, draft: ManifestDraft) -> None:
        """Exchange and drop fragments, add the new ones with the identity their rows had, then tend the indices."""
        sources = draft.current([*self.removed_fragment_ids, *(item.id for item in self.updated_fragments)])
        draft.replace(self.updated_fragments)
        draft.remove(self.removed_fragment_ids)
        if self.update_mode is UpdateMode.REWRITE_COLUMNS:
            draft.stamp_offsets(self._offsets())
        draft.prune_fields([item.id for item in self.updated_fragments], self.fields_modified)
        _, pure = draft.add_moved(self.new_fragments, sources)
        if draft.uses_stable_row_ids and self.update_mode is UpdateMode.REWRITE_ROWS:
            draft.extend_coverage(pure, sources, self.fields_for_preserving_frag_bitmap)
        draft.retain_indices()

    def _offsets(self) -> dict[int, Sequence[int]]:
        """fragment id -> offsets of the rows whose columns were rewritten, from whichever of the two forms there is."""
        rows = {item.id: item.physical_rows for item in self.updated_fragments}
        offsets: dict[int, Sequence[int]] = {}
        for fragment_id, data in self.updated_fragment_offset_bitmaps.items():
            bitmap = decode_bitmap(data, what="updated offsets")
            most = rows.get(fragment_id, 0)
            if len(bitmap) > most:  # before memory is taken for a claim
                raise CorruptFileError(
                    f"{len(bitmap)} updated offsets are claimed for fragment {fragment_id} of {most} rows"
                )
            offsets[fragment_id] = bitmap_array(bitmap).tolist()
        offsets.update(self.updated_fragment_offsets)
        return offsets
