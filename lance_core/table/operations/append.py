"""Append: new fragments at the end, without other changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import Fragment
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Append:
    """Add `fragments`; they carry id 0 until they are committed."""

    name: ClassVar[str] = "Append"
    fragments: Sequence[Fragment]

    def touches(self) -> Touches:
        """No existing fragment, but rows for the schema as it was read."""
        return Touches(supplies_values=True)

    def apply(self, draft: ManifestDraft) -> None:
        """Give ids, row ids and versions to the new fragments and add them."""
        draft.add_new(self.fragments)
