"""How a commit judges versions that others published in the meantime: conflicts, and versions without an effect.

::

    theirs aborts our attempt          IncompatibleConflictError: it was aborted while we were at it
    theirs is an abort                 no row changed: the table has not moved
    theirs cannot be read any more     RetryableConflictError: plan again
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from lance_core.commit.identities import aborts_of, carries
from lance_core.errors import (
    CommitError,
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
)
from lance_core.io.store import Store
from lance_core.table.conflicts import Verdict, VerdictKind
from lance_core.table.operations import ReserveFragments
from lance_core.table.transaction import Transaction

E = TypeVar("E", bound=CommitError)

PLAN_AGAIN = "Plan it again on the newest version and commit again."


class PartlyCommittedError(RetryableConflictError):
    """Another commit published some of the identities that this transaction carries."""


def is_abort(transaction: Transaction) -> bool:
    """Whether a version only aborts attempts."""
    return isinstance(transaction.operation, ReserveFragments) and bool(aborts_of(transaction))


def is_carried(store: Store, identities: Collection[str], theirs: Transaction, number: int) -> bool:
    """Whether all these identities were committed in that version; PartlyCommittedError when only some of them did."""
    committed = [identity for identity in identities if carries(theirs, identity)]
    if committed and len(committed) < len(identities):
        raise PartlyCommittedError(
            f"{store.uri}: {', '.join(committed)} were committed in the meantime, in version {number}",
            uri=store.uri,
            other_version=number,
            cure="Commit again; the commit then skips what is committed.",
        )
    return bool(committed)


def refuse_aborted(store: Store, attempts: Mapping[str, str], theirs: Transaction, number: int) -> None:
    """Raise IncompatibleConflictError when a version aborts one of these attempts (by identity)."""
    for identity, aborted in aborts_of(theirs).items():
        attempt = attempts.get(identity)
        if attempt and attempt in aborted:
            raise IncompatibleConflictError(
                f"{store.uri}: attempt {attempt} of {identity} was aborted in version {number} during a commit",
                uri=store.uri,
                other_version=number,
                cure="Run the staging task again and commit its result.",
            )


def refusal(kind: type[E], store: Store, planned: Transaction, text: str, *, cure: str, other: int | None = None) -> E:
    """An error about a planned transaction, and the version `other` that it met."""
    name, what = planned.operation.name, f"{store.uri}: {planned.operation.name} {text}"
    return kind(what, uri=store.uri, version=planned.read_version, other_version=other, operation=name, cure=cure)


def moved(store: Store, planned: Transaction, what: str, number: int) -> IncompatibleConflictError:
    """The refusal of a strict transaction; `what` came in version `number`."""
    cure = 'Plan it again on the newest version, or pass if_moved="overwrite" to replace the commits in between.'
    text = f"planned on version {planned.read_version} meets {what} of version {number}, and if_moved is 'fail'"
    return refusal(IncompatibleConflictError, store, planned, text, other=number, cure=cure)


def conflict(store: Store, planned: Transaction, theirs: Transaction, verdict: Verdict, number: int) -> CommitError:
    text = f"planned on version {planned.read_version} meets {theirs.operation.name} of version {number}: {verdict.reason}"
    if verdict.kind is not VerdictKind.NEVER:
        return refusal(RetryableConflictError, store, planned, text, other=number, cure=PLAN_AGAIN)
    cure = "It cannot be committed. If it is staged, abort it (`lance staged abort`) and clear its staging task; "
    cure += "or plan it again, if it is still needed."
    return refusal(IncompatibleConflictError, store, planned, text, other=number, cure=cure)


def history_gone(store: Store, planned: Transaction, number: int) -> RetryableConflictError:
    """What happened in a version cannot be judged."""
    text = f"was planned on version {planned.read_version}, and the transaction of version {number} can no longer be read"
    cure = "Plan it again on the newest version; keep old versions for longer than the work takes."
    return refusal(RetryableConflictError, store, planned, text, other=number, cure=cure)


def no_table(store: Store, planned: Transaction) -> NotFoundError:
    """There is nothing that the transaction could work on."""
    name = planned.operation.name
    what = f"{store.uri} is not a Lance table, so {name} cannot be committed"
    return NotFoundError(what, uri=store.uri, operation=name, cure="Check the uri, or create the table by writing to it.")


def unanswered(store: Store, planned: Transaction, error: LanceError) -> CommitStateUnknownError:
    """A put got no answer, or nobody checked it again, and then something failed."""
    return CommitStateUnknownError(
        f"{store.uri}: the outcome of an earlier put is not known, and now {error}",
        uri=store.uri,
        operation=planned.operation.name,
        cure=f"The commit took effect if a version after {planned.read_version} has the transaction {planned.uuid}.",
    )


def delete_quietly(store: Store, *paths: str) -> bool:
    """Remove files that a commit wrote in vain; what fails is left for garbage collection, which finds it by its name.

    Whether all went.
    """
    done = True
    for path in paths:
        try:
            store.delete(path)
        except LanceError:
            done = False
    return done
