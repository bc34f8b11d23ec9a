"""Rewrite: the same rows in other fragments (compaction)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata, RewrittenIndex
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Neighbouring fragments and what takes their place."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replace the old fragments of each group by its new ones.

    `frag_reuse_index` is not on the wire: whoever defers the translation of indices commits it beside the rewrite, and the
    committer passes it here.
    """

    name: ClassVar[str] = "Rewrite"
    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    frag_reuse_index: IndexMetadata | None = None

    def touches(self) -> Touches:
        """All old fragments go away."""
        return Touches(removed=frozenset(fragment.id for group in self.groups for fragment in group.old_fragments))

    def apply(self, draft: ManifestDraft) -> None:
        """Exchange fragments, then bitmaps of indices."""
        rewritten = frozenset(index.old_id for index in self.rewritten_indices)
        for group in self.groups:
            added = draft.exchange(group.old_fragments, group.new_fragments)
            old_ids = [item.id for item in group.old_fragments]
            draft.move_coverage(old_ids, added, rewritten=rewritten, is_deferred=self.frag_reuse_index is not None)
        draft.rename_indices(self.rewritten_indices)
        if self.frag_reuse_index is not None:
            name = self.frag_reuse_index.name
            draft.indices = [index for index in draft.indices if index.name != name]
            draft.indices.append(self.frag_reuse_index)
