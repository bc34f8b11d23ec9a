"""CreateIndex: adds and removes index segments, without changing data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.index import IndexMetadata
from lance_core.table.touches import NOTHING, Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Add `new_indices`, drop `removed_indices` (by uuid)."""

    name: ClassVar[str] = "CreateIndex"
    new_indices: tuple[IndexMetadata, ...] = ()
    removed_indices: tuple[IndexMetadata, ...] = ()

    def touches(self) -> Touches:
        """Neither fragments nor schema."""
        return NOTHING

    def apply(self, draft: ManifestDraft) -> None:
        """Exchange index entries."""
        gone = {index.uuid for index in self.removed_indices}
        draft.indices = [index for index in draft.indices if index.uuid not in gone]
        draft.indices.extend(self.new_indices)
