"""Staged transactions: written, invisible, attributable, waiting for a commit or for their end.

::

    _lance_core/staged/{identity}.{attempt}.started.json     before the attempt's first data file
    _lance_core/staged/{identity}.finished.json              put-if-absent: the one attempt that counts
    _lance_core/staged/{identity}.{attempt}.fence.json       publish or withdraw: who may continue with it
    _transactions/{V}-{identity}.{attempt}.txn               the staged transaction itself

    begin_attempt -> write data files named after the attempt -> finish_attempt -> commit_staged | abort_attempt

Two attempts of one identity may run at once (a zombie and its retry). `finished.json` is put-if-absent, so one of them
counts; the other removes its own files and returns the winner's reference. An attempt concludes that it was withdrawn from
its fence only, never from a record that is not there: that may just as well mean that it has landed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lance_core.commit import naming
from lance_core.commit.identities import Asked, creates, identity_properties
from lance_core.commit.manifests import find_latest_version
from lance_core.commit.references import data_paths, named_fragments
from lance_core.commit.transactions import read_transaction_file, write_transaction
from lance_core.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    IncompatibleConflictError,
    InputError,
    RetryableConflictError,
)
from lance_core.io.many import missing
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.growth import growth_of, new_rows
from lance_core.publish.model import Attempt, StagedEntry, StagedTransaction
from lance_core.publish.record_types import is_same_work, work_digest
from lance_core.publish.records import FORMAT, add_record
from lance_core.publish.registry.attempts import (
    drop_finished,
    find_finished,
    finished_path,
    is_given_up,
    is_withdrawn,
    list_staged,
    read_finished,
    read_started,
    staged_transaction_path,
    work_in_record,
    write_started,
)
from lance_core.publish.registry.group_fences import group_of
from lance_core.publish.registry.incarnation import incarnation_of
from lance_core.publish.registry.ledger import has_no_record, landing_of
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.remove import ITSELF, remove_attempt
from lance_core.table.operations import Append, Delete, Overwrite, Update
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import with_packed_fragments

__all__ = [
    "DEFAULT_LEASE_SECONDS",
    "Attempt",
    "StagedEntry",
    "StagedTransaction",
    "abort_attempt",
    "begin_attempt",
    "find_staged",
    "finish_attempt",
    "list_staged",
    "missing_files",
    "renew_lease",
]

log = logging.getLogger(__name__)

DEFAULT_LEASE_SECONDS = 24 * 3600.0


def begin_attempt(
    store: Store,
    *,
    identity: str,
    spec: Mapping[str, Any],
    read_version: int,
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
    asked: Asked | None = None,
    base: str = "",
    adopts: Sequence[str] = (),
    instead_of: str = "",
) -> Attempt:
    """Register a try at staging, before its first data file.

    `spec` is noted for people and digested for retries; it must be JSON-able and free of secrets. `read_version` is the
    version the work is planned on, 0 when there is no table yet, `base` the name of its transaction file. Within
    `lease_seconds` (renew with `renew_lease`) garbage collection leaves the attempt's files alone. A staged transaction of
    this identity for another spec, or whose files are gone, is aborted first (see `abort_attempt` for what it raises when
    that one may have landed).

    The attempt is `later_only` if, after `read_version` had been read, nothing was found to be staged, and **then** the
    ledger was silent. A landing in a version up to that one would have been put on record before what was staged for it
    was removed; and what is staged later lands later. So the commit of such an attempt asks only the versions since.

    `adopts`: earlier attempts whose files this one is about to go on with, the newest first (see `adoption`). `instead_of`:
    the staged attempt that the caller is about to give up for this one.
    """
    who = asked or Asked()
    is_free = _make_room(store, naming.checked_identity(identity), spec=spec, asked=who, instead_of=instead_of)
    unknown = begin(store, lambda: is_free and has_no_record(store, identity))
    attempt = Attempt(
        identity=identity,
        attempt=naming.new_attempt(),
        read_version=read_version,
        spec=dict(spec),
        started=time.time(),
        lease_seconds=float(lease_seconds),
        digest=work_digest(spec),
        asked=who.to_dict(),
        incarnation=incarnation_of(store) if read_version else "",
        base=base if read_version else "",
        later_only=unknown(),
        group=group_of(read_version, who),
        adopts=tuple(adopts),
    )
    write_started(store, attempt, renewed=attempt.started)
    return attempt


def renew_lease(store: Store, attempt: Attempt) -> None:
    """Renew the lease of the attempt; RetryableConflictError when it was withdrawn in the meantime."""
    if is_given_up(store, attempt.identity, attempt.attempt):
        raise _given_up(store, attempt)
    write_started(store, attempt, renewed=time.time())


def finish_attempt(
    store: Store,
    attempt: Attempt,
    transaction: Transaction,
    *,
    rows: int,
    bytes: int,
    fragments: int | None = None,
    rows_deleted: int = 0,
    has_more: bool = False,
) -> StagedTransaction:
    """Write the staged transaction and make the attempt the one that counts; nothing becomes visible.

    The transaction gets the identity as its uuid and as a property. When another attempt of the same spec finished first,
    this one's files are removed and the other's reference is returned. RetryableConflictError when this attempt was given
    up (lease over and collected, or aborted), or another spec finished first. `has_more`: it wrote, or adopts, files
    that the transaction does not name.
    """
    transaction = with_packed_fragments(_with_identity(transaction, attempt, rows=rows))
    path = staged_transaction_path(attempt)
    staged = StagedTransaction(
        uri=store.uri,
        identity=attempt.identity,
        attempt=attempt.attempt,
        read_version=transaction.read_version,
        operation=creates(transaction.properties) or operation_name(transaction),
        num_rows=rows,
        num_bytes=bytes,
        num_fragments=_num_new_fragments(transaction) if fragments is None else fragments,
        transaction_path=path,
        creates=bool(creates(transaction.properties)),
        num_deleted_rows=rows_deleted,
        digest=attempt.digest,
        incarnation=attempt.incarnation,
        base=attempt.base,
        later_only=attempt.later_only,
        group=attempt.group,
        plain=_is_plain(transaction),
        planned_at=attempt.started,
        adopts=attempt.adopts,
        has_more=has_more,
    )
    write_transaction(store, transaction, path=path)
    record = {
        "format": FORMAT,
        "asked": dict(attempt.asked),
        **staged.to_dict(),
        **work_in_record(attempt.spec, transaction),
    }
    found = add_record(store, finished_path(attempt.identity), record)
    if found is not None and found.get("attempt") != attempt.attempt:
        return _yield_to(store, attempt, StagedTransaction.from_dict(found))
    if is_given_up(store, attempt.identity, attempt.attempt):
        # Whoever gave it up decided before this record was there, so no commit can have begun with it.
        _remove_own(store, attempt)
        raise _given_up(store, attempt)
    return staged


def find_staged(store: Store, identity: str, *, spec: Mapping[str, Any] | None = None) -> StagedTransaction | None:
    """The finished staged transaction of an identity; None when there is none, it is being aborted, or files of it are gone.

    With `spec`, one that was staged for another spec is None as well.
    """
    staged = find_finished(store, identity)
    if staged is None or is_withdrawn(store, identity, staged.attempt):
        return None
    if spec is not None and not is_same_work(staged.digest, work_digest(spec)):
        return None
    transaction = read_transaction_file(store, staged.transaction_path)
    if transaction is None or transaction.uuid != identity or missing_files(store, transaction, writers=staged.writers):
        return None
    return staged


def missing_files(store: Store, transaction: Transaction, *, writers: Sequence[str]) -> list[str]:
    """Files that these attempts wrote for a transaction and the store has no longer."""
    return missing(store, data_paths(transaction, writers=writers))


def operation_name(transaction: Transaction) -> str:
    """ "append", "data_replacement", …; of rows that bring columns, what they are without those."""
    growth = growth_of(transaction.properties)
    if growth is not None:
        return growth.operation
    name = type(transaction.operation).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _with_identity(transaction: Transaction, attempt: Attempt, *, rows: int) -> Transaction:
    if transaction.read_version != attempt.read_version:
        raise InputError(
            f"the transaction has read version {transaction.read_version}, the attempt {attempt.read_version}",
            cure="Use the read version of the attempt, which is fixed when the work is planned.",
        )
    note = _note(attempt, operation_name(transaction), rows)
    properties = {**transaction.properties, **identity_properties(attempt.identity, note)}
    return replace(transaction, uuid=attempt.identity, properties=properties)


def _is_plain(transaction: Transaction) -> bool:
    is_one = isinstance(transaction.operation, Append | Delete | Update)
    return is_one and growth_of(transaction.properties) is None and not creates(transaction.properties)


def _note(attempt: Attempt, operation: str, rows: int) -> dict[str, Any]:
    note = {
        "attempt": attempt.attempt,
        "operation": operation,
        "rows": rows,
        "digest": attempt.digest,
        "asked": dict(attempt.asked),
        "adopts": [*attempt.adopts],
    }
    return {name: value for name, value in note.items() if value not in ("", {}, [])}


def _given_up(store: Store, attempt: Attempt) -> RetryableConflictError:
    return RetryableConflictError(
        f"attempt {attempt.attempt} of {attempt.identity} was withdrawn while it ran",
        uri=store.uri,
        cure="Its lease had expired or it was aborted; stage again, with a longer lease for longer work.",
    )


def _remove_own(store: Store, attempt: Attempt) -> None:
    """The caller's attempt is over; if it is unknown whether it landed, nothing is changed."""
    with suppress(CommitStateUnknownError):
        remove_attempt(store, attempt.identity, attempt.attempt, by=ITSELF, landed_too=True)


def _yield_to(store: Store, attempt: Attempt, winner: StagedTransaction) -> StagedTransaction:
    _remove_own(store, attempt)
    if not is_same_work(winner.digest, attempt.digest):
        raise RetryableConflictError(
            f"{attempt.identity} is already staged by attempt {winner.attempt}, for another spec",
            uri=store.uri,
            cure="Abort that attempt first (`lance staged abort`), then stage again.",
        )
    return winner


def _make_room(store: Store, identity: str, *, spec: Mapping[str, Any], asked: Asked, instead_of: str) -> bool:
    """What is staged for another spec, or has lost files, gives way; another task's work under this identity does not.

    Whether there was nothing.
    """
    try:
        staged = read_finished(store, identity)
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return False
    if staged is None or staged.attempt == instead_of or find_staged(store, identity, spec=spec) is not None:
        return staged is None
    started = read_started(store, identity, staged.attempt)
    before = Asked.from_dict({} if started is None else started.asked)
    if before.task_id and asked.task_id and before.task != asked.task:
        raise IncompatibleConflictError(
            f"{store.uri}: {identity} is staged by {before} (digest {staged.digest}); "
            f"{asked} has different work (digest {work_digest(spec)}) with the same identity",
            uri=store.uri,
            cure="Two tasks with the same idempotency key must have the same work; give one of them another key.",
        )
    try:
        abort_attempt(store, identity, staged.attempt, by="a new attempt")
    except CommitStateUnknownError:
        if landing_of(store, identity) is not None or find_latest_version(store) is not None:
            raise
        # No table yet, and a commit was about to create it with this attempt: its files stay until somebody has created it.
        drop_finished(store, identity, staged.attempt)
    return False


def _num_new_fragments(transaction: Transaction) -> int:
    operation = transaction.operation
    if isinstance(operation, Append | Overwrite | Update) or growth_of(transaction.properties) is not None:
        return len(new_rows(transaction))
    return len(list(named_fragments(operation)))
