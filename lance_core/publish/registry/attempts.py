"""The registry's records: the attempts of each identity, and the valid one.

::

    _lance_core/staged/{identity}.{attempt}.started.json     before the attempt's first data file
    _lance_core/staged/{identity}.finished.json              put-if-absent: the one attempt that counts
    _lance_core/staged/{identity}.{attempt}.fence.json       who may go on with the attempt (see `fences`)
    _lance_core/staged/{identity}.{attempt}.withdrawn.json   about to be given up, unless it has finished

All in one folder: a folder for each identity would have to be made and removed again, which costs a local disk more than the
records do. A damaged record is named and left out of lists; nothing is concluded from a record that is not there.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, FormatError, UnsupportedRecordError
from lance_core.io.abilities import ListsInOrder
from lance_core.io.many import delete_groups
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.model import Attempt, StagedEntry, StagedTransaction
from lance_core.publish.record_types import WITHDRAW, parse_record
from lance_core.publish.records import FORMAT, Record, encode_record, read_record, write_record
from lance_core.publish.registry.fences import fence_path, is_remembered, read_fence
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import decode_transaction, encode_transaction

log = logging.getLogger(__name__)

STARTED = "started"
WITHDRAWN = "withdrawn"
_FINISHED = "finished"
_MAX_INLINE = 64 << 10
"""Bytes of a finished record's spec and transaction; larger ones are read from their own files."""
_OF_ONE_ATTEMPT = 4


def list_staged(
    store: Store,
    *,
    now: float | None = None,
    identity: str | None = None,
    unsupported: list[UnsupportedRecordError] | None = None,
) -> list[StagedEntry]:
    """Every attempt on record, or those of one identity, oldest first.

    `now` (seconds since the epoch) decides which leases are over. What a newer release has written is refused, or, for a
    caller that only shows the list, told in `unsupported`.
    """
    at = time.time() if now is None else now
    started, finished = _read_registry(store, identity, unsupported)
    entries = []
    for attempt, renewed in started:
        staged = finished.pop(attempt.identity, None) if _counts(finished, attempt) else None
        entries.append(_entry(attempt, staged, lease_until=renewed + attempt.lease_seconds, now=at))
    entries.extend(_orphan_entry(staged) for staged in finished.values())
    return sorted(entries, key=lambda entry: entry.started)


def finished_at(store: Store) -> dict[str, float]:
    """When the valid attempt of each identity was finished (seconds since the epoch), by the store's clock."""
    suffix, prefix = f".{_FINISHED}.json", f"{naming.STAGED}/"
    return {
        entry.path.removeprefix(prefix).removesuffix(suffix): entry.modified
        for entry in store.list(prefix)
        if entry.path.endswith(suffix)
    }


def read_finished(store: Store, identity: str) -> StagedTransaction | None:
    """The raw record of the valid attempt. CorruptFileError when it is damaged."""
    path = finished_path(identity)
    record = read_record(store, path)
    return None if record is None else _staged_of(record, identity, path)


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """The valid attempt, with its spec and its transaction, where the record has them."""

    staged: StagedTransaction
    spec: Mapping[str, Any] | None = None
    transaction: Transaction | None = None


def read_finished_work(store: Store, identity: str) -> FinishedWork | None:
    """`read_finished`, with all that a commit needs of it, in one request. CorruptFileError when it is damaged."""
    path = finished_path(identity)
    record = read_record(store, path)
    if record is None:
        return None
    staged, spec, text = _staged_of(record, identity, path), record.get("spec"), record.get("transaction")
    transaction = None
    if isinstance(text, str):
        try:
            transaction = decode_transaction(base64.b64decode(text, validate=True))
        except (ValueError, FormatError) as error:
            raise CorruptFileError(f"{path}: transaction: {error}") from error
    return FinishedWork(staged, spec if isinstance(spec, Mapping) else None, transaction)


def work_in_record(spec: Mapping[str, Any], transaction: Transaction) -> dict[str, Any]:
    """The content of a finished record besides the reference, so that a commit need not read two more files; {} when
    large."""
    data = encode_transaction(transaction)
    if len(data) > _MAX_INLINE:
        return {}
    found = {"spec": dict(spec), "transaction": base64.b64encode(data).decode()}
    return found if len(encode_record(found)) <= _MAX_INLINE else {}


def find_finished(store: Store, identity: str) -> StagedTransaction | None:
    """`read_finished`, where a damaged record is logged and counts as none."""
    try:
        return read_finished(store, identity)
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return None


def read_started(store: Store, identity: str, attempt: str) -> Attempt | None:
    """What an attempt was begun with; None when its record is gone or damaged."""
    try:
        found = _read_started(store, record_path(identity, attempt, STARTED))
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return None
    return None if found is None else found[0]


def is_withdrawn(store: Store, identity: str, attempt: str) -> bool:
    """Whether an attempt was withdrawn, or is being given up unless it has finished."""
    fence = read_fence(store, identity, attempt)
    if fence is not None and fence.outcome == WITHDRAW:
        return True
    return read_mark(store, identity, attempt) is not None


def is_given_up(store: Store, identity: str, attempt: str) -> bool:
    """For the attempt itself: whether it should stop, also when nothing is left of it but the memory."""
    return is_withdrawn(store, identity, attempt) or is_remembered(store, identity, attempt)


def is_over(store: Store, identity: str, attempt: str) -> bool:
    """For a task of the attempt: whether it was withdrawn, or nothing is left of it. One request where it is at work."""
    if isinstance(store, ListsInOrder):
        # The fence goes up before the record of the start goes, so that record alone says that nobody is at it.
        stem = f"{identity}.{attempt}."
        records = [
            name for name in store.names_after(f"{naming.STAGED}/", stem, most=_OF_ONE_ATTEMPT) if name.startswith(stem)
        ]
        if records == [record_path(identity, attempt, STARTED).rpartition("/")[2]]:
            return False
    return is_given_up(store, identity, attempt) or read_started(store, identity, attempt) is None


def read_mark(store: Store, identity: str, attempt: str) -> Record | None:
    """The mark of an attempt that is being given up; a damaged one is empty."""
    try:
        return read_record(store, record_path(identity, attempt, WITHDRAWN))
    except CorruptFileError:
        return {}


def started_attempts(store: Store, identity: str) -> list[str]:
    """Attempts of an identity that have a record of their own."""
    found = _of_kind(store.list_names(f"{naming.STAGED}/"), STARTED)
    return [attempt for owner, attempt in found if owner == identity]


def adopted_by_others(store: Store, keys: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Those of these (identity, attempt) whose files an attempt on record, which is not among them, goes on with.

    A record that cannot be read may adopt any attempt of its identity.
    """
    if not keys:
        return frozenset()
    identities = {identity for identity, _ in keys}
    names = store.list_names(f"{naming.STAGED}/")
    others = [item for item in _of_kind(names, STARTED) if item[0] in identities and item not in keys]

    def adopted(store: Store, other: tuple[str, str]) -> list[tuple[str, str]]:
        try:
            found = _read_started(store, record_path(*other, STARTED))
        except CorruptFileError:
            return [key for key in keys if key[0] == other[0]]
        return [] if found is None else [(other[0], attempt) for attempt in found[0].adopts]

    return frozenset(key for found in each(store, others, adopted) for key in found if key in keys)


@dataclass(frozen=True, slots=True)
class RecordedAttempts:
    """Which attempts have records, by the names alone: those that began, and identities with one that counts."""

    started: frozenset[tuple[str, str]]
    finished: frozenset[str]

    @classmethod
    def of(cls, store: Store) -> RecordedAttempts:
        """One listing."""
        names = store.list_names(f"{naming.STAGED}/")
        suffix = f".{_FINISHED}.json"
        finished = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return cls(frozenset(_of_kind(names, STARTED)), frozenset(finished))

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self.started or key[0] in self.finished


def stale_marks(store: Store) -> list[tuple[str, str]]:
    """Attempts of which only a withdrawal mark is left: its abort was killed after all else was gone."""
    names = store.list_names(f"{naming.STAGED}/")
    started = set(_of_kind(names, STARTED))
    return [item for item in _of_kind(names, WITHDRAWN) if item not in started]


def attempt_files(store: Store) -> list[str]:
    """Paths of everything that could be an attempt's: data, deletions, indices, staged transactions, unfinished writes."""
    folders = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)
    found = [entry.path for folder in folders for entry in store.list(f"{folder}/")]
    found.extend(entry.path for folder in folders for entry in store.list_unfinished(f"{folder}/"))
    return found


def forget_attempts(store: Store, attempts: Sequence[tuple[str, str]]) -> None:
    """Remove the records of attempts (identity, attempt) whose files are settled, the fence of each last;
    `finished.json` only where it is its own."""
    each(store, attempts, lambda place, item: drop_finished(place, *item))
    delete_groups(store, [_records_of(*item) for item in attempts])


def _records_of(identity: str, attempt: str) -> list[str]:
    marks = [record_path(identity, attempt, kind) for kind in (STARTED, WITHDRAWN)]
    return [*marks, fence_path(identity, attempt)]


def drop_finished(store: Store, identity: str, attempt: str) -> None:
    """Invalidate an attempt. A damaged record of the identity is removed as well, because it could not be committed."""
    try:
        finished = read_finished(store, identity)
    except CorruptFileError:
        store.delete(finished_path(identity))
        return
    if finished is not None and finished.attempt == attempt:
        store.delete(finished_path(identity))


def finished_path(identity: str) -> str:
    """Where the attempt that counts is recorded."""
    return naming.staged_path(identity, _FINISHED)


def record_path(identity: str, attempt: str, kind: str) -> str:
    """Where an attempt's own records are."""
    return naming.staged_path(identity, kind, attempt=attempt)


def staged_transaction_path(attempt: Attempt) -> str:
    """Where an attempt's transaction is: the name has identity and attempt, so that two attempts never share a file."""
    uuid = f"{attempt.identity}.{attempt.attempt}"
    return naming.transaction_path(naming.transaction_name(attempt.read_version, uuid))


def write_started(store: Store, attempt: Attempt, *, renewed: float) -> None:
    path = record_path(attempt.identity, attempt.attempt, STARTED)
    write_record(store, path, {"format": FORMAT, "attempt": attempt.to_dict(), "renewed": renewed})


def _of_kind(names: Sequence[str], kind: str) -> list[tuple[str, str]]:
    return [found for name in names if (found := naming.parse_attempt_record(name, kind)) is not None]


def _read_registry(
    store: Store, identity: str | None, unsupported: list[UnsupportedRecordError] | None
) -> tuple[list[tuple[Attempt, float]], dict[str, StagedTransaction]]:
    names = store.list_names(f"{naming.STAGED}/")
    attempts = {name: found for name in names if (found := naming.parse_attempt_record(name, STARTED)) is not None}
    suffix = f".{_FINISHED}.json"
    if identity is None:
        wanted = [name for name in names if name in attempts or name.endswith(suffix)]
    else:
        wanted = [name for name in names if name in attempts and attempts[name][0] == identity]
        wanted += [name for name in names if name == f"{identity}{suffix}"]

    def read(store: Store, name: str) -> tuple[Attempt, float] | StagedTransaction | None:
        path = f"{naming.STAGED}/{name}"
        try:
            if name in attempts:
                return _read_started(store, path)
            record = read_record(store, path)
            return None if record is None else _staged_of(record, name.removesuffix(suffix), path)
        except UnsupportedRecordError as error:
            if unsupported is None:
                raise
            unsupported.append(error)
            return None
        except CorruptFileError as error:
            log.warning("%s: set aside: %s", store.uri, error)
            return None

    records = each(store, wanted, read)
    staged = [item for item in records if isinstance(item, StagedTransaction)]
    return [item for item in records if isinstance(item, tuple)], {item.identity: item for item in staged}


def _read_started(store: Store, path: str) -> tuple[Attempt, float] | None:
    record = read_record(store, path)
    if record is None:
        return None
    plain, renewed = record.get("attempt"), record.get("renewed")
    if not isinstance(plain, Mapping) or isinstance(renewed, bool) or not isinstance(renewed, (int, float)):
        raise CorruptFileError(f"{path}: attempt or renewed is missing or has a wrong type")
    attempt = parse_record(Attempt, plain, where=path)
    if record_path(attempt.identity, attempt.attempt, STARTED) != path:
        raise CorruptFileError(f"{path}: the record belongs to attempt {attempt.attempt} of {attempt.identity}")
    return attempt, float(renewed)


def _staged_of(record: Record, identity: str, path: str) -> StagedTransaction:
    staged = parse_record(StagedTransaction, record, where=path)
    if staged.identity != identity:
        raise CorruptFileError(f"{path}: the record belongs to {staged.identity}")
    return staged


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
        asked=attempt.asked,
    )


def _orphan_entry(staged: StagedTransaction) -> StagedEntry:
    return StagedEntry(staged.identity, staged.attempt, "finished", staged.read_version, 0.0, 0.0, staged)
