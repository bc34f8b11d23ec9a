"""What every operation answers: its name, what it touches, what it does to a draft; and nouns that two of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from lance_core.format.index import IndexDetails, IndexFile
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


class Operation(Protocol):
    """One kind of edit (an arm of `lance.table.Transaction.operation`)."""

    name: ClassVar[str]

    def touches(self) -> Touches:
        """Which parts of the table it changes."""

    def apply(self, draft: ManifestDraft) -> None:
        """Change the draft. Raises InputError when the table does not have what the operation speaks of."""


@dataclass(frozen=True, slots=True)
class CompactedSsTable:
    """A sorted run of a shard that went into the table; two operations speak of them."""

    shard_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """An index segment whose row addresses were translated into a new segment."""

    old_id: str
    new_id: str
    new_index_details: IndexDetails | None = None
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
