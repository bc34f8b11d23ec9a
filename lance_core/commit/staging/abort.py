"""Taking a staged attempt back: its files go, by name, and only when they certainly are in no version.

::

    1  put  …{attempt}.withdrawn.json         from here on a commit refuses the attempt
    2  look claims, ledger, log                a commit at work, or a landing: take the mark back and refuse
    3  delete files, transaction, records     the mark goes last: a killed abort is resumed by the next, or by gc
"""

from __future__ import annotations

import time

from lance_core.commit.records import read_record, write_record
from lance_core.commit.registry import attempts as registry
from lance_core.commit.registry.claims import list_claims
from lance_core.commit.registry.ledger import find_landed, recorded_version
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError
from lance_core.io.store import Store


def abort_attempt(
    store: Store, identity: str, attempt: str, *, own_commit: str | None = None, certain: bool = False
) -> list[str]:
    """Remove an attempt: every file whose name carries it, and its records. Returns the paths of the files removed.

    Doing it again is harmless. Raises IncompatibleConflictError when the attempt has landed, and CommitStateUnknownError
    when a commit is publishing it right now or nobody can tell; nothing is removed then. `own_commit` names the caller's
    own commit, which does not count. `certain=True` is a person's word that it has not landed, where the log cannot tell.
    """
    mark = registry.record_path(identity, attempt, registry.WITHDRAWN)
    if read_record(store, mark) is None:
        write_record(store, mark, {"attempt": attempt, "since": time.time()})
    finished = registry.read_finished(store, identity)  # after the mark: see `claims` for why the order matters
    if finished is not None and finished.attempt == attempt:
        try:
            _refuse_if_published(store, identity, finished.read_version, own_commit=own_commit, certain=certain)
        except BaseException:
            store.delete(mark)
            raise
    return remove_attempt(store, identity, attempt)


def remove_attempt(store: Store, identity: str, attempt: str, *, keep: frozenset[str] = frozenset()) -> list[str]:
    """The deletions of an abort, without its questions: files, then records, the withdrawal mark last."""
    removed = registry.remove_files(store, attempt, keep=keep)
    registry.forget_attempt(store, identity, attempt)
    return removed


def _refuse_if_published(store: Store, identity: str, since_version: int, *, own_commit: str | None, certain: bool) -> None:
    now = time.time()
    for claim in list_claims(store):
        if identity in claim.identities and claim.is_alive(now) and claim.commit != own_commit:
            raise CommitStateUnknownError(
                f"{store.uri}: commit {claim.commit} is publishing {identity} since {now - claim.since:.0f} s",
                uri=store.uri,
                cure="Wait for it to end. One that was killed stops counting after its lease of "
                f"{claim.lease_seconds:.0f} s; committing again settles it at once.",
            )
    version = (
        recorded_version(store, identity) if certain else find_landed(store, identity, since_version, own_commit=own_commit)
    )
    if version is not None:
        raise IncompatibleConflictError(
            f"{store.uri}: {identity} has landed as version {version}; there is nothing to abort",
            uri=store.uri,
            version=version,
            cure="To take its rows back, delete them or restore an older version.",
        )
