"""UpdateBases: registers more base paths for files of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.manifest import BasePath
from lance_core.table.touches import NOTHING, Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Register `new_bases`; id 0 asks for the next free one."""

    name: ClassVar[str] = "UpdateBases"
    new_bases: tuple[BasePath, ...]

    def touches(self) -> Touches:
        """No fragment."""
        return NOTHING

    def apply(self, draft: ManifestDraft) -> None:
        """Add the bases; InputError when name, path or id is taken."""
        draft.add_bases(self.new_bases)
