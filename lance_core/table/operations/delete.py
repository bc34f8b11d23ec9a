"""Delete: fragments get new deletion files, or are removed if no row is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import Fragment
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Delete:
    """`updated_fragments` replace those of the same id, `deleted_fragment_ids` vanish; `predicate` is for people."""

    name: ClassVar[str] = "Delete"
    updated_fragments: tuple[Fragment, ...] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""

    def touches(self) -> Touches:
        """The fragments that lose rows."""
        return Touches(
            modified=frozenset(fragment.id for fragment in self.updated_fragments),
            removed=frozenset(self.deleted_fragment_ids),
        )

    def apply(self, draft: ManifestDraft) -> None:
        """Exchange and drop fragments."""
        draft.replace(self.updated_fragments)
        draft.remove(self.deleted_fragment_ids)
        draft.retain_indices()
