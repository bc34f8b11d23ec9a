"""Restore: an older version becomes the newest again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring back `version`."""

    name: ClassVar[str] = "Restore"
    version: int

    def touches(self) -> Touches:
        """Everything; which fragments is not known before it is committed."""
        return Touches(schema=True)

    def apply(self, draft: ManifestDraft) -> None:
        """Take everything from the older manifest except the high-water marks."""
        draft.restore(self.version)
