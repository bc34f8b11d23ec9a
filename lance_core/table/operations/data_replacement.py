"""DataReplacement: other files for whole columns of some fragments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import DataFile
from lance_core.format.schema import TOMBSTONE
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Replacement:
    """The file that takes the place of the one with the same fields in a fragment."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Replace columns; all new files hold the same fields."""

    name: ClassVar[str] = "DataReplacement"
    replacements: tuple[Replacement, ...]

    def touches(self) -> Touches:
        """The fragments and the fields of the new files."""
        return Touches(
            modified=frozenset(item.fragment_id for item in self.replacements),
            fields=frozenset(field for item in self.replacements for field in item.new_file.fields if field != TOMBSTONE),
            supplies_values=True,
        )

    def apply(self, draft: ManifestDraft) -> None:
        """Swap the files, then prune indices on those fields."""
        for item in self.replacements:
            draft.replace_file(item.fragment_id, item.new_file)
        touched = self.touches()
        draft.prune_fields(touched.modified, touched.fields)
        draft.stamp_rows(touched.modified)
