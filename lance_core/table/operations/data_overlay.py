"""DataOverlay: cells that override those of base files. Recognised in a log, but not supported for writing (unstable)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.errors import UnsupportedFeatureError
from lance_core.format.fragment import DataOverlayFile
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class OverlayGroup:
    """The overlays one fragment gets."""

    fragment_id: int
    overlays: tuple[DataOverlayFile, ...]


@dataclass(frozen=True, slots=True)
class DataOverlay:
    """Add overlays to fragments."""

    name: ClassVar[str] = "DataOverlay"
    groups: tuple[OverlayGroup, ...]

    def touches(self) -> Touches:
        """The fragments that get overlays."""
        return Touches(modified=frozenset(group.fragment_id for group in self.groups), supplies_values=True)

    def apply(self, draft: ManifestDraft) -> None:
        """Refuses: readers of this library would not see the overlay."""
        raise UnsupportedFeatureError(
            "this library cannot write data overlays", operation=self.name, cure="Rewrite the column (DataReplacement)."
        )
