"""Project: a new schema over the files as they are (drop, rename, nullability)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.schema import Schema
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Project:
    """Replace the schema. `preserves_nullability`: whatever was valid under the old schema is valid under the new one."""

    name: ClassVar[str] = "Project"
    schema: Schema
    preserves_nullability: bool = False

    def touches(self) -> Touches:
        """The schema."""
        return Touches(schema=True)

    def apply(self, draft: ManifestDraft) -> None:
        """Replace the schema, drop files and indices that no longer hold any of its fields."""
        draft.set_schema(self.schema)
        draft.drop_dead_files()
        draft.retain_indices()
