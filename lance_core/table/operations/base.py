"""The protocol of operations: name, touched parts, changes to a draft; and dataclasses that several operations share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@runtime_checkable
class Operation(Protocol):
    """One kind of edit (an arm of `lance.table.Transaction.operation`)."""

    name: ClassVar[str]

    def touches(self) -> Touches:
        """Which parts of the table it changes."""

    def apply(self, draft: ManifestDraft) -> None:
        """Change the draft. Raises InputError when the table does not have what the operation refers to."""


@dataclass(frozen=True, slots=True)
class CompactedSsTable:
    """A sorted run of a shard that went into the table; two operations speak of them."""

    shard_id: str
    generation: int
