"""ReserveFragments: set fragment ids aside, so that a compaction can name its fragments before it is committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.table.touches import NOTHING, Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """Raise the high-water mark of fragment ids by `num_fragments`."""

    name: ClassVar[str] = "ReserveFragments"
    num_fragments: int

    def touches(self) -> Touches:
        """Nothing a reader sees."""
        return NOTHING

    def apply(self, draft: ManifestDraft) -> None:
        """Raise the mark."""
        draft.reserve(self.num_fragments)
