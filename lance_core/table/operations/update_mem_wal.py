"""UpdateMemWalState: bookkeeping of a write-ahead log in memory. Recognised in a log, but not supported for writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.errors import UnsupportedFeatureError
from lance_core.table.operations.base import CompactedSsTable
from lance_core.table.touches import NOTHING, Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class UpdateMemWalState:
    """Which sorted runs the table holds now."""

    name: ClassVar[str] = "UpdateMemWalState"
    compacted_sstables: tuple[CompactedSsTable, ...] = ()

    def touches(self) -> Touches:
        """No fragment."""
        return NOTHING

    def apply(self, draft: ManifestDraft) -> None:
        """Refuses: the log's state lives in an index this library does not maintain."""
        raise UnsupportedFeatureError(
            "this library cannot commit UpdateMemWalState",
            operation=self.name,
            cure="Let the writer of the log commit it.",
        )
