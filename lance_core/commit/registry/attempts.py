"""The registry's records: which attempts there are, which one of an identity counts, which are being withdrawn.

::

    _lance_core/staged/{identity}.{attempt}.started.json     before the attempt's first data file
    _lance_core/staged/{identity}.finished.json              put-if-absent: the one attempt that counts
    _lance_core/staged/{identity}.{attempt}.withdrawn.json   the attempt is being aborted: do not publish it

All in one folder: a folder for each identity would have to be made and removed again, which costs a local disk more than the
records do.

What the records mean, and in which order they are written, is the business of `staged`, `abort`, `service` and `garbage`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lance_core.commit import naming
from lance_core.commit.model import Attempt, StagedEntry, StagedTransaction
from lance_core.commit.record_types import SHORT_DIGEST, work_digest
from lance_core.commit.records import Record, each, read_record, write_record
from lance_core.io.store import Store

STARTED = "started"
WITHDRAWN = "withdrawn"
_FINISHED = "finished"
_FEW = 4
"""So many marks are looked for one by one; for more, the folder is listed."""


def list_staged(store: Store, *, now: float | None = None, identity: str | None = None) -> list[StagedEntry]:
    """Every attempt on record, or those of one identity, oldest first.

    `now` (seconds since the epoch) decides which leases are over.
    """
    at = time.time() if now is None else now
    started, finished = _read_registry(store, identity)
    entries = []
    for record in started:
        attempt = Attempt.from_dict(record["attempt"])
        staged = finished.pop(attempt.identity, None) if _counts(finished, attempt) else None
        entries.append(_entry(attempt, staged, lease_until=float(record["renewed"]) + attempt.lease_seconds, now=at))
    entries.extend(_orphan_entry(staged) for staged in finished.values())
    return sorted(entries, key=lambda entry: entry.started)


def read_finished(store: Store, identity: str) -> StagedTransaction | None:
    """The record of the attempt that counts, as it stands."""
    record = read_record(store, finished_path(identity))
    return None if record is None else StagedTransaction.from_dict(record)


def is_withdrawn(store: Store, identity: str, attempt: str) -> bool:
    """Whether an abort of this attempt has begun."""
    return read_record(store, record_path(identity, attempt, WITHDRAWN)) is not None


def withdrawn_attempts(store: Store, attempts: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which of these (identity, attempt) an abort has begun of."""
    if len(attempts) <= _FEW:
        return {item for item in attempts if is_withdrawn(store, *item)}
    return set(_of_kind(store.list_names(f"{naming.STAGED}/"), WITHDRAWN)).intersection(attempts)


def started_attempts(store: Store, identity: str) -> list[str]:
    """Attempts of an identity that have a record of their own."""
    found = _of_kind(store.list_names(f"{naming.STAGED}/"), STARTED)
    return [attempt for owner, attempt in found if owner == identity]


def stale_marks(store: Store) -> list[str]:
    """Withdrawal marks of an abort that was killed after all else was gone; without its record an attempt cannot finish."""
    names = store.list_names(f"{naming.STAGED}/")
    started = set(_of_kind(names, STARTED))
    return [record_path(*item, WITHDRAWN) for item in _of_kind(names, WITHDRAWN) if item not in started]


def is_at_work(store: Store, identity: str, attempt: str) -> bool:
    """Whether an attempt is neither given up nor settled: its tasks still count."""
    started = read_record(store, record_path(identity, attempt, STARTED))
    return started is not None and not is_withdrawn(store, identity, attempt)


def remove_files(store: Store, attempt: str, *, keep: frozenset[str] = frozenset()) -> list[str]:
    """Delete every file whose name says that this attempt wrote it, but those in `keep`. Returns their paths."""
    removed = []
    for entry in attempt_files(store):
        if naming.is_of_attempt(entry, attempt) and entry not in keep:
            store.delete(entry)
            removed.append(entry)
    return removed


def attempt_files(store: Store) -> list[str]:
    """Paths of everything that could be an attempt's: data, deletions, indices, staged transactions, unfinished writes."""
    folders = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)
    found = [entry.path for folder in folders for entry in store.list(f"{folder}/")]
    found.extend(entry.path for folder in folders for entry in store.list_unfinished(f"{folder}/"))
    return found


def forget_attempt(store: Store, identity: str, attempt: str) -> None:
    """Remove the records of an attempt whose files are settled; `finished.json` only when it is this attempt's."""
    finished = read_finished(store, identity)
    if finished is not None and finished.attempt == attempt:
        store.delete(finished_path(identity))
    store.delete(record_path(identity, attempt, STARTED))
    store.delete(record_path(identity, attempt, WITHDRAWN))


def finished_path(identity: str) -> str:
    """Where the attempt that counts is recorded."""
    return naming.staged_path(identity, _FINISHED)


def record_path(identity: str, attempt: str, kind: str) -> str:
    """Where an attempt's own records lie."""
    return naming.staged_path(identity, kind, attempt=attempt)


def staged_transaction_path(attempt: Attempt) -> str:
    """Where an attempt's transaction lies: the name says identity and attempt, so that two attempts never share a file."""
    uuid = f"{attempt.identity}.{attempt.attempt}"
    return naming.transaction_path(naming.transaction_name(attempt.read_version, uuid))


def spec_digest(spec: Mapping[str, Any]) -> str:
    """A short text that is the same for the same spec: the first digits of `record_types.work_digest`."""
    return work_digest(spec)[:SHORT_DIGEST]


def write_started(store: Store, attempt: Attempt, *, renewed: float) -> None:
    path = record_path(attempt.identity, attempt.attempt, STARTED)
    write_record(store, path, {"attempt": attempt.to_dict(), "renewed": renewed})


def _of_kind(names: Sequence[str], kind: str) -> list[tuple[str, str]]:
    return [found for name in names if (found := naming.parse_attempt_record(name, kind)) is not None]


def _read_registry(store: Store, identity: str | None) -> tuple[list[Record], dict[str, StagedTransaction]]:
    names = store.list_names(f"{naming.STAGED}/")
    attempts = {name: found for name in names if (found := naming.parse_attempt_record(name, STARTED)) is not None}
    if identity is None:
        wanted = [name for name in names if name in attempts or name.endswith(f".{_FINISHED}.json")]
    else:
        wanted = [name for name in names if name in attempts and attempts[name][0] == identity]
        wanted += [name for name in names if name == f"{identity}.{_FINISHED}.json"]
    paths = [f"{naming.STAGED}/{name}" for name in wanted]
    started, finished = [], {}
    for name, record in zip(wanted, each(store, paths, read_record), strict=True):
        if record is None:
            continue
        if name in attempts:
            started.append(record)
        else:
            staged = StagedTransaction.from_dict(record)
            finished[staged.uuid] = staged
    return started, finished


def _counts(finished: Mapping[str, StagedTransaction], attempt: Attempt) -> bool:
    staged = finished.get(attempt.identity)
    return staged is not None and staged.attempt == attempt.attempt


def _entry(attempt: Attempt, staged: StagedTransaction | None, *, lease_until: float, now: float) -> StagedEntry:
    state = "finished" if staged is not None else "running" if now < lease_until else "expired"
    return StagedEntry(
        identity=attempt.identity,
        attempt=attempt.attempt,
        state=state,
        read_version=attempt.read_version,
        started=attempt.started,
        lease_until=lease_until,
        staged=staged,
        spec=attempt.spec,
    )


def _orphan_entry(staged: StagedTransaction) -> StagedEntry:
    return StagedEntry(staged.uuid, staged.attempt, "finished", staged.read_version, 0.0, 0.0, staged)
