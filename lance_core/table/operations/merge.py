"""Merge: a new schema, and for every fragment the files that belong to it (new columns)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Merge:
    """`fragments` are all fragments of the table, with their new files. `preserves_nullability`: old rows stay valid."""

    name: ClassVar[str] = "Merge"
    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool = False

    def touches(self) -> Touches:
        """Every fragment and the schema."""
        return Touches(modified=frozenset(fragment.id for fragment in self.fragments), schema=True)

    def apply(self, draft: ManifestDraft) -> None:
        """Replace schema and fragments."""
        before = draft.indexed_files()
        draft.set_schema(self.schema)
        draft.set_fragments(self.fragments)
        draft.prune_changed_files(before)
        draft.retain_indices()
