"""Clone: a new table as a view of another one (shallow: its files stay where they are)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.table.touches import NOTHING, Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Clone:
    """Begin from version `ref_version` of the table at `ref_path`; `branch_name` when this makes a branch."""

    name: ClassVar[str] = "Clone"
    is_shallow: bool
    ref_version: int
    ref_path: str
    ref_name: str | None = None
    branch_name: str | None = None

    def touches(self) -> Touches:
        """Nothing that exists."""
        return NOTHING

    def apply(self, draft: ManifestDraft) -> None:
        """Take over the source's manifest, with its files behind a base path when shallow."""
        draft.clone(self.ref_path, ref_name=self.ref_name, is_shallow=self.is_shallow, branch=self.branch_name)
