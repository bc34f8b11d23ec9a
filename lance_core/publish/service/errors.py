"""Errors that only a commit of staged transactions raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_core.errors import (
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    RetryableConflictError,
    StoreError,
    StoreRefusedError,
)
from lance_core.io.store import Store
from lance_core.publish.service.merge_rows import MemberConflictError
from lance_core.publish.staging.drain import Loaded
from lance_core.table.transaction import Transaction


class InDoubtError(StoreError):
    """The store gave no answer about a publication; making the same commit again settles it."""


class LedgerError(StoreError):
    """The work has landed, and the ledger could not be updated; making the same commit again updates it."""


class RefusedInDoubtError(InDoubtError, StoreRefusedError):
    """The store also refuses to tell: the same commit settles it once the permissions are repaired, a retry does not."""


class RefusedLedgerError(LedgerError, StoreRefusedError):
    """The store refused the ledger's update: the same commit updates it once the permissions or the space are there."""


class NotWholeError(LanceError):
    """Members that were given up, or lost files, since they were loaded."""

    def __init__(self, refusals: Mapping[str, LanceError]) -> None:
        super().__init__("; ".join(str(error) for error in refusals.values()))
        self.refusals = refusals


def in_doubt(store: Store, transaction: Transaction, error: CommitStateUnknownError) -> InDoubtError:
    """A publication whose outcome could not be read back."""
    kind = RefusedInDoubtError if isinstance(error.__cause__, StoreRefusedError) else InDoubtError
    return kind(
        f"{error} It is safe to make this commit again, because it first checks which identities have landed.",
        uri=store.uri,
        operation=transaction.operation.name,
    )


def not_in_ledger(store: Store, version: int, error: StoreError) -> LedgerError:
    """A publication that the ledger does not have."""
    kind = RefusedLedgerError if isinstance(error, StoreRefusedError) else LedgerError
    return kind(
        f"{store.uri}: version {version} has landed, but the ledger could not be updated: {error}",
        uri=store.uri,
        version=version,
        cure="Make the same commit again: it finds the version and updates the ledger.",
    )


def of_another_table(store: Store, item: Loaded, incarnation: str) -> IncompatibleConflictError:
    """What was planned on a table that has been made again since."""
    return IncompatibleConflictError(
        f"{store.uri}: {item.ref.operation} {item.ref.identity} was planned on a table of incarnation "
        f"{item.ref.incarnation}, but the table was created again and now has incarnation {incarnation}",
        uri=store.uri,
        cure="Abort the staged transaction (`lance staged abort`) and clear its staging task.",
    )


def outdated(
    store: Store, members: Sequence[Loaded], numbers: Sequence[int], theirs: Transaction, version: int
) -> MemberConflictError:
    """A version of others brought rows that staged transactions should have known: members at these positions."""
    item = members[numbers[0]]
    error = MemberConflictError(
        f"{store.uri}: {item.ref.operation} {item.ref.identity} was planned on version {item.ref.read_version}, "
        f"but {theirs.operation.name} of version {version} has since added rows that it would have to change",
        uri=store.uri,
        version=item.ref.read_version,
        other_version=version,
        cure="Clear its staging task, or commit with re_execute=True.",
    )
    error.outdated = tuple(numbers)
    return error


def too_many_rounds(store: Store, rounds: int) -> RetryableConflictError:
    """Whenever this commit was ready, the table had moved on."""
    return RetryableConflictError(
        f"{store.uri}: other writers committed first {rounds} times",
        uri=store.uri,
        cure="Commit again, or run the commit tasks in the table's commit pool.",
    )
