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
from lance_core.publish.members import Loaded
from lance_core.publish.merge import MemberConflictError
from lance_core.publish.staged_properties import facts_of
from lance_core.table.transaction import Transaction


class InDoubtError(StoreError):
    """The store gave no answer about a publication; making the same commit again settles it."""


class NotDecidedError(StoreError):
    """The work was committed, and its decision could not be put; making the same commit again puts it."""


class RefusedInDoubtError(InDoubtError, StoreRefusedError):
    """The store also refuses to tell: the same commit settles it once the permissions are repaired, a retry does not."""


class RefusedDecisionError(NotDecidedError, StoreRefusedError):
    """The store refused the decision: the same commit puts it once the permissions or the space are there."""


class NotWholeError(LanceError):
    """Members that were given up, or lost files, since they were loaded."""

    def __init__(self, refusals: Mapping[str, LanceError]) -> None:
        super().__init__("; ".join(str(error) for error in refusals.values()))
        self.refusals = refusals


def in_doubt(store: Store, transaction: Transaction, error: CommitStateUnknownError) -> InDoubtError:
    """A publication whose outcome could not be read back."""
    kind = RefusedInDoubtError if isinstance(error.__cause__, StoreRefusedError) else InDoubtError
    return kind(
        f"{error} It is safe to make this commit again, because it first checks which identities were committed.",
        uri=store.uri,
        operation=transaction.operation.name,
    )


def not_decided(store: Store, version: int, error: StoreError) -> NotDecidedError:
    """A publication of which the decision log does not say so."""
    kind = RefusedDecisionError if isinstance(error, StoreRefusedError) else NotDecidedError
    return kind(
        f"{store.uri}: version {version} was committed, but its decision could not be put: {error}",
        uri=store.uri,
        version=version,
        cure="Make the same commit again: it finds the version and puts the decision.",
    )


def of_another_table(store: Store, item: Loaded, table_id: str) -> IncompatibleConflictError:
    """What was planned on a table that has been made again since."""
    return IncompatibleConflictError(
        f"{store.uri}: {item.ref.operation} {item.ref.identity} was planned on table "
        f"{facts_of(item.transaction).table_id}, but the table was created again and now is {table_id}",
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
