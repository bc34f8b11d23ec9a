"""Counts of a running commit call, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field

from lance_core.errors import LanceError
from lance_core.publish.members import Loaded
from lance_core.publish.model import CommitResult, StagedTransaction
from lance_core.publish.staged_properties import num_new_fragments
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
    committed: list[Loaded] = field(default_factory=list)
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
            rows_added=sum(item.ref.num_rows for item in self.committed),
            rows_deleted=sum(item.ref.num_deleted_rows for item in self.committed),
            fragments_added=sum(num_new_fragments(item.transaction) for item in self.committed),
            bytes_added=sum(item.ref.num_bytes for item in self.committed),
            conflicts_rebased=self.rebased,
            re_executed=self.re_executed,
            refused={uuid: str(error) for uuid, error in self.refused.items()},
        )
