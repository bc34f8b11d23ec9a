"""Staged transactions: written, invisible, attributable, waiting for a commit or for their end.

::

    begin_attempt -> write data files named after the attempt -> finish_attempt -> commit_staged | abort_attempt

Two attempts of one identity may run at once (a stale writer and its retry). `finished` is put if absent as the next number,
so one of them counts; the other removes its own files and returns the winner's reference.

A later attempt may go on with finished parts of an earlier one: its record names that one, then it decides against it, then
it reads the parts once more. Whoever removes an attempt looks for adopters behind its decision, so either the deleter sees
the adopter, or the adopter finds a decision that is not its own, and adopts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lance_core.commit import naming
from lance_core.commit.identities import Asked, creates, identity_properties
from lance_core.commit.references import data_paths
from lance_core.commit.transactions import read_transaction_file, write_transaction
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, InputError, RetryableConflictError
from lance_core.io.many import missing
from lance_core.io.store import Store
from lance_core.publish.abort import ITSELF, AbortRequest, abort_attempt, decide_against, finished_reference, remove_attempt
from lance_core.publish.attempts import find_finished, is_over, read_started, write_started
from lance_core.publish.decisions import CommittedWork, DecisionState, decide, look
from lance_core.publish.history import LogSearch, known_commit, search
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.records import is_same_work, work_digest
from lance_core.publish.segments import folded_records
from lance_core.publish.staged_properties import StagedFacts, growth_of, staged_writers
from lance_core.publish.table_id import table_id_of
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import with_packed_fragments


def begin_attempt(store: Store, *, asked: Asked | None = None, **fields: Any) -> Attempt:
    """`begin` with these fields of an `Attempt`."""
    return begin(store, Attempt(asked=asked.to_dict() if asked else {}, **fields))


def begin(store: Store, planned: Attempt, *, is_free: bool = False) -> Attempt:
    """Register a try at staging, before its first data file: the attempt as it is on record.

    A staged transaction of this identity for another spec, or whose files are gone, is aborted first (see `abort_attempt`
    for what it raises when that one may have been committed). `is_free`: the caller has just seen that the identity has no
    decision of its own; then the attempt says whether one is folded.
    """
    identity = naming.checked_identity(planned.identity)
    if not is_free:
        _make_room(store, planned)
    attempt = replace(
        planned,
        attempt=naming.new_attempt(),
        spec=dict(planned.spec),
        started=time.time(),
        digest=work_digest(planned.spec),
        table_id=table_id_of(store) if planned.read_version else "",
        base=planned.base if planned.read_version else "",
    )
    write_started(store, attempt, renewed=attempt.started)
    # Numbers that were folded were decided before: while the record of an undecided attempt is there, nothing is folded.
    return replace(attempt, is_first=is_free and not folded_records(store, [identity]))


def renew_lease(store: Store, attempt: Attempt) -> None:
    """Renew the lease of the attempt; RetryableConflictError when it was aborted in the meantime."""
    if is_over(store, attempt.identity, attempt.attempt):
        raise _aborted(store, attempt)
    write_started(store, attempt, renewed=time.time())


def adopt_unfinished(store: Store, attempt: Attempt) -> Attempt:
    """The attempt, once it has taken over the newest of those that it adopts, which has not finished; one that adopts
    nothing where that is too late."""
    key = (attempt.identity, attempt.adopts[0])
    if decide_against(store, key, by=attempt.attempt) and read_started(store, *key) is not None:
        return attempt
    found = replace(attempt, adopts=())  # what is not adopted is not kept from its removal
    write_started(store, found, renewed=time.time())
    return found


def finish_attempt(
    store: Store, attempt: Attempt, transaction: Transaction, *, rows: int, bytes: int, rows_deleted: int = 0
) -> StagedTransaction:
    """Write the staged transaction and decide that the attempt is finished; nothing becomes visible.

    The transaction gets the identity as its uuid and as a property. When another attempt of the same spec finished first, or
    the work was committed, this one's files are removed and that one's reference is returned. RetryableConflictError when
    this attempt was aborted (by a person, or its lease was over), or another spec finished first.
    """
    transaction = with_packed_fragments(_with_identity(transaction, attempt, rows=rows))
    staged = StagedTransaction(
        uri=store.uri,
        identity=attempt.identity,
        attempt=attempt.attempt,
        read_version=transaction.read_version,
        operation=str(attempt.spec.get("kind") or "") or creates(transaction.properties) or operation_name(transaction),
        num_rows=rows,
        num_bytes=bytes,
        num_deleted_rows=rows_deleted,
        digest=attempt.digest,
    )
    write_transaction(store, transaction, path=staged.transaction_path)
    if attempt.replaces:
        _require_uncommitted(store, attempt)
    known = DecisionState(attempt.identity) if attempt.is_first else None
    state = decide(store, attempt.identity, lambda state: _finished(store, attempt, state, staged, transaction), known=known)
    return _outcome(store, attempt, state)


def _finished(
    store: Store, attempt: Attempt, state: DecisionState, staged: StagedTransaction, transaction: Transaction
) -> DecisionState | None:
    """The state with `staged`; None where it is too late for it."""
    if state.is_decided(attempt.attempt) or state.is_finished(attempt.attempt):
        return None
    if state.committed is not None:
        if known_commit(store, state) is not None:
            return None
        state = state.void()
    is_free = state.is_finished(attempt.replaces[0]) if attempt.replaces else state.finished is None
    return state.finish(staged, spec=attempt.spec, transaction=transaction) if is_free else None


def _require_uncommitted(store: Store, attempt: Attempt) -> None:
    """What the attempt takes the place of must not have been committed before the version that this one was planned on:
    later versions are judged by its commit."""
    before = finished_reference(store, attempt.identity, attempt.replaces[0])
    if before is None:
        return
    found = search(store, LogSearch({attempt.identity: before.read_version}, own=attempt.replaces[-1]))
    for error in found.unknown.values():
        raise error
    if attempt.replaces[0] in found.aborted.get(attempt.identity, ()):
        _remove_own(store, attempt)
        what = f"{store.uri}: attempt {attempt.replaces[0]} of {attempt.identity} was aborted while it was brought up"
        cure = "Run the staging task again and commit its result."
        raise IncompatibleConflictError(what, uri=store.uri, cure=cure)


def _outcome(store: Store, attempt: Attempt, state: DecisionState) -> StagedTransaction:
    if state.is_finished(attempt.attempt):
        assert state.finished is not None
        return state.finished
    _remove_own(store, attempt)
    winner = state.committed or state.finished
    if winner is None:
        raise _aborted(store, attempt)
    if not is_same_work(winner.digest, attempt.digest):
        what = f"{attempt.identity} is already staged by attempt {winner.attempt}, for another spec"
        cure = "Abort that attempt first (`lance staged abort`), then stage again."
        raise RetryableConflictError(what, uri=store.uri, cure=cure)
    return winner if isinstance(winner, StagedTransaction) else committed_reference(store.uri, winner)


def committed_reference(uri: str, work: CommittedWork, *, operation: str = "") -> StagedTransaction:
    """A reference to work that was committed; a commit answers "already committed" to it. It names the identity and the
    version before; the counts are not known any more and are 0."""
    before = max(work.version - 1, 0)
    return StagedTransaction(uri, work.identity, "", before, operation, num_rows=0, num_bytes=0, digest=work.digest)


def find_staged(store: Store, identity: str, *, spec: Mapping[str, Any] | None = None) -> StagedTransaction | None:
    """What of an identity waits for its commit and `is_whole`; None when there is nothing."""
    staged = find_finished(store, identity)
    return staged if staged is not None and is_whole(store, staged, spec=spec) else None


def is_whole(store: Store, staged: StagedTransaction, *, spec: Mapping[str, Any] | None = None) -> bool:
    """Whether all files of a staged transaction are there, and it is of this spec where one is given."""
    if spec is not None and not is_same_work(staged.digest, work_digest(spec)):
        return False
    transaction = read_transaction_file(store, staged.transaction_path)
    if transaction is None or transaction.uuid != staged.identity:
        return False
    return not missing(store, data_paths(transaction, writers=staged_writers(transaction, staged.attempt)))


def operation_name(transaction: Transaction) -> str:
    """ "append", "data_replacement", …; of rows that bring columns, what they are without those."""
    growth = growth_of(transaction.properties)
    if growth is not None:
        return growth.operation
    name = type(transaction.operation).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _with_identity(transaction: Transaction, attempt: Attempt, *, rows: int) -> Transaction:
    if transaction.read_version != attempt.read_version:
        what = f"the transaction has read version {transaction.read_version}, the attempt {attempt.read_version}"
        raise InputError(what, cure="Use the read version of the attempt, which is fixed when the work is planned.")
    note = {
        "attempt": attempt.attempt,
        "operation": operation_name(transaction),
        "rows": rows,
        "digest": attempt.digest,
        "asked": dict(attempt.asked),
        "adopts": [*attempt.adopts],
    }
    note = {name: value for name, value in note.items() if value not in ("", {}, [])}
    facts = StagedFacts(attempt.base, attempt.table_id, attempt.started, attempt.has_more)
    properties = {**transaction.properties, **identity_properties(attempt.identity, note), **facts.properties()}
    return replace(transaction, uuid=attempt.identity, properties=properties)


def _aborted(store: Store, attempt: Attempt) -> RetryableConflictError:
    what = f"attempt {attempt.attempt} of {attempt.identity} was aborted while it ran"
    cure = "Its lease had expired or it was aborted; stage again, with a longer lease for longer work."
    return RetryableConflictError(what, uri=store.uri, cure=cure)


def _remove_own(store: Store, attempt: Attempt) -> None:
    """The caller's attempt is over; if it is unknown whether it was committed, nothing is changed."""
    with suppress(CommitStateUnknownError):
        remove_attempt(store, (attempt.identity, attempt.attempt), AbortRequest(ITSELF, committed_too=True))


def _make_room(store: Store, planned: Attempt) -> None:
    """What is staged for another spec, or has lost files, gives way; another task's work under this identity does not."""
    identity, spec = planned.identity, planned.spec
    staged = look(store, identity).finished
    if staged is None or staged.attempt in planned.replaces or is_whole(store, staged, spec=spec):
        return
    started = read_started(store, identity, staged.attempt)
    before, asked = Asked.from_dict(None if started is None else started.asked), Asked.from_dict(planned.asked)
    if before.task_id and asked.task_id and before.task != asked.task:
        what = f"{store.uri}: {identity} is staged by {before} (digest {staged.digest}); "
        what += f"{asked} has different work (digest {work_digest(spec)}) with the same identity"
        cure = "Two tasks with the same idempotency key must have the same work; give one of them another key."
        raise IncompatibleConflictError(what, uri=store.uri, cure=cure)
    abort_attempt(store, identity, staged.attempt, by="a new attempt")
