"""Counts of a running commit call, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field

from lance_core.errors import LanceError
from lance_core.publish.model import CommitResult, StagedTransaction
from lance_core.table.transaction import Transaction

_MAX_RE_EXECUTIONS = 15
"""New columns meet every append of a writer outside; after the first time only what it appended is filled in, so another try
is cheap, and a busy machine needs many: five were too few beside two outside appends a second."""


@dataclass
class Tally:
    """What this call has done so far."""

    outcome: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    num_versions: int = 0
    committed: list[StagedTransaction] = field(default_factory=list)
    rebased: int = 0
    re_executed: int = 0
    published: dict[int, tuple[Transaction, str]] = field(default_factory=dict)
    """What made each version, and the name of its transaction file."""
    tries: dict[str, int] = field(default_factory=dict)
    refused: dict[str, LanceError] = field(default_factory=dict)

    def may_try_again(self, identity: str) -> bool:
        """Whether a member has not been staged again too often."""
        return self.tries.get(identity, 0) < _MAX_RE_EXECUTIONS

    def try_again(self, ref: StagedTransaction) -> None:
        """A member is about to be staged again."""
        self.tries[ref.identity] = self.tries.get(ref.identity, 0) + 1
        self.re_executed += 1

    def result(self) -> CommitResult:
        """The result for the caller."""
        return CommitResult(
            version=max(self.versions.values()),
            num_versions=self.num_versions,
            identities=dict(self.outcome),
            rows_added=sum(ref.num_rows for ref in self.committed),
            rows_deleted=sum(ref.num_deleted_rows for ref in self.committed),
            fragments_added=sum(ref.num_fragments for ref in self.committed),
            bytes_added=sum(ref.num_bytes for ref in self.committed),
            conflicts_rebased=self.rebased,
            re_executed=self.re_executed,
            refused={uuid: str(error) for uuid, error in self.refused.items()},
        )
