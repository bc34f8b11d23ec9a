"""Which identities have landed: one small put-if-absent record each, with the log itself as the judge where it is silent.

::

    _lance_core/ledger/5d2c….json      {"identity": "5d2c…", "version": 7, "transaction": "…", "attempt": "…", …}
    the same, as one of a fold         {"attempts": {"5d2c…": "…", "77aa…": "…"}, "version": 7, …}  (names of one file)
    _lance_core/ledger/_complete.json  {"version": 5}: every identity that landed at or before version 5 has its record

The record follows the manifest, so a process that dies between the two leaves none; then the transactions of the versions
since the staged base tell. When some of those are gone as well, files of the attempt that the newest version refers to prove
that it landed; else the claims tell whether a commit ever took the identity up (a claim precedes every publication, and only
a settled one is removed): if none did, it has not landed; if one did, nobody can know, and CommitStateUnknownError says so.
Our own cleanup calls `record_history` before it prunes, which keeps the ledger complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.bulk import can_share, put_same_if_absent
from lance_core.commit.identities import carries, identities_of
from lance_core.commit.log.manifests import load_manifest, version_numbers
from lance_core.commit.log.transactions import load_transaction
from lance_core.commit.records import Record, add_record, each, encode_record, read_record, read_records, write_record
from lance_core.commit.references import referenced_files
from lance_core.commit.registry.attempts import read_finished
from lance_core.commit.registry.claims import list_claims
from lance_core.errors import CommitStateUnknownError, NotFoundError
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction

_SHARED_BY = 128
"""Records of one fold that share a content; each reader of one reads of them all, about 60 bytes each."""

_COMPLETE_PATH = f"{naming.LEDGER}/_complete.json"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where an identity landed, and with which attempt's files ("" when the history does not tell)."""

    identity: str
    version: int
    attempt: str
    transaction: str


def record_landed(
    store: Store, identity: str, *, version: int, transaction: str, attempt: str = "", durable: bool = True
) -> None:
    """Note that an identity landed. The first record stays."""
    record = {"identity": identity, "version": version, "transaction": transaction, "attempt": attempt}
    add_record(store, naming.ledger_path(identity), {**record, "landed_at": time.time()}, durable=durable)


def landing_of(store: Store, identity: str) -> Landing | None:
    """What the ledger says about an identity, None when it is silent."""
    record = read_record(store, naming.ledger_path(identity))
    if record is None:
        return None
    attempt = record.get("attempts", {}).get(identity) or record.get("attempt", "")
    return Landing(identity, int(record["version"]), str(attempt), str(record.get("transaction", "")))


def record_fold(
    store: Store, identities: Iterable[str], *, version: int, transaction: Transaction, durable: bool = False
) -> None:
    """Note the landing of identities that a transaction of the log carries.

    Not forced to the disk unless `durable`: when the machine dies, the log still says the same. Before pruning it must be.
    """
    notes = identities_of(transaction)
    attempts = {identity: str(notes.get(identity, {}).get("attempt", "")) for identity in identities}
    if len(attempts) > 1 and can_share(store):
        _record_shared(store, attempts, version=version, transaction=transaction.uuid, durable=durable)
    else:
        _record_each(store, attempts, version=version, transaction=transaction.uuid, durable=durable)


def _record_each(store: Store, attempts: Mapping[str, str], *, version: int, transaction: str, durable: bool) -> None:
    def record(store: Store, item: tuple[str, str]) -> None:
        record_landed(store, item[0], version=version, transaction=transaction, attempt=item[1], durable=durable)

    each(store, [*attempts.items()], record)


def _record_shared(store: Store, attempts: Mapping[str, str], *, version: int, transaction: str, durable: bool) -> None:
    """One content under the names of many records. Whoever finds a name taken by an empty file writes that one anew."""
    items = [*attempts.items()]
    for start in range(0, len(items), _SHARED_BY):
        share = dict(items[start : start + _SHARED_BY])
        record = {"attempts": share, "version": version, "transaction": transaction, "landed_at": time.time()}
        by_path = {naming.ledger_path(identity): identity for identity in share}
        taken = put_same_if_absent(store, [*by_path], encode_record(record), durable=durable)
        again = {by_path[path]: share[by_path[path]] for path in taken}
        _record_each(store, again, version=version, transaction=transaction, durable=durable)


def recorded_version(store: Store, identity: str) -> int | None:
    """The version the ledger names for an identity, None when it is silent. The log is not looked at."""
    return _version_of(read_record(store, naming.ledger_path(identity)))


def recorded_versions(store: Store, identities: Sequence[str]) -> list[int | None]:
    """`recorded_version` of many identities at once."""
    return [_version_of(record) for record in read_records(store, [naming.ledger_path(item) for item in identities])]


def find_landed(store: Store, identity: str, since_version: int, *, own_commit: str | None = None) -> int | None:
    """The version at which an identity landed, None when it certainly has not.

    Looks at the ledger, then at the transaction of every version after `since_version` (0: from the beginning). Raises
    CommitStateUnknownError when some of those are gone, the ledger is silent, and a commit of the identity had begun.
    `own_commit` names the caller's own claim, which says nothing.
    """
    return find_landed_many(store, {identity: since_version}, own_commit=own_commit)[identity]


def find_landed_many(store: Store, since: Mapping[str, int], *, own_commit: str | None = None) -> dict[str, int | None]:
    """`find_landed` for many identities, each with the version it was staged on; the log is read once."""
    found: dict[str, int | None] = dict(zip(since, recorded_versions(store, list(since)), strict=True))
    present = version_numbers(store)
    _check_ledger_fits(store, found, latest=present[-1] if present else 0)
    silent = {identity: since[identity] for identity, version in found.items() if version is None}
    if silent and present:
        found.update(_look_in_log(store, silent, present, own_commit=own_commit))
    return found


def record_history(
    store: Store, versions: Sequence[int], *, load: Callable[[Store, int], Transaction | None] | None = None
) -> None:
    """Give every identity that landed in `versions` its record; call it before pruning them.

    `load` gives the transaction of a version, for a caller that has read them already.

    When no version at or before the newest of them is left out (gone earlier without a record), the ledger is marked
    complete up to there, so that pruning leaves no doubt behind.
    """
    if not versions:
        return
    newest = max(versions)
    complete = _complete_version(store)
    certain = set(range(complete + 1, newest + 1)) <= set(versions)
    for version in sorted(versions):
        transaction = (load or _load)(store, version)
        if transaction is None:
            certain = certain and version <= complete
            continue
        record_fold(store, identities_of(transaction), version=version, transaction=transaction, durable=True)
    if certain and newest > complete:
        write_record(store, _COMPLETE_PATH, {"version": newest})


def _look_in_log(
    store: Store, silent: Mapping[str, int], present: Sequence[int], *, own_commit: str | None
) -> dict[str, int | None]:
    lowest = min(silent.values())
    complete = _complete_version(store)
    wanted = range(max(lowest, complete) + 1, present[-1] + 1)
    known = set(present)
    found: dict[str, int | None] = dict.fromkeys(silent)
    unknown = [version for version in wanted if version not in known]
    numbers = [version for version in wanted if version in known]
    for version, transaction in zip(numbers, each(store, numbers, _load), strict=True):
        if transaction is None:
            unknown.append(version)
            continue
        for identity in silent:
            if carries(transaction, identity):
                found[identity] = version
                record_fold(store, [identity], version=version, transaction=transaction)
    if unknown:
        open_ends = {item: base for item, base in silent.items() if found[item] is None}
        for identity, version in _in_use(store, open_ends).items():
            found[identity] = version
            del open_ends[identity]
        _refuse_doubt(store, open_ends, unknown, own_commit=own_commit)
    return found


def _in_use(store: Store, identities: Iterable[str]) -> dict[str, int]:
    """Those whose files the newest version refers to: they have landed, at that version or before. It is noted as theirs."""
    newest = load_manifest(store)
    used = [*referenced_files(newest)]
    found: dict[str, int] = {}
    for identity in identities:
        finished = read_finished(store, identity)
        if finished is not None and any(naming.is_of_attempt(path, finished.attempt) for path in used):
            record_landed(store, identity, version=newest.version, transaction="", attempt=finished.attempt)
            found[identity] = newest.version
    return found


def _refuse_doubt(store: Store, open_ends: Mapping[str, int], unknown: Sequence[int], *, own_commit: str | None) -> None:
    """Where the log has gaps, the claims decide: who was never claimed by a commit has never come near a publication."""
    claims = [claim for claim in list_claims(store) if claim.commit != own_commit]
    claimed = {identity for claim in claims for identity in claim.identities}
    for identity, base in open_ends.items():
        gone = sorted(version for version in unknown if version > base)
        if gone and identity in claimed:
            raise _unknown(store, identity, gone)


def _load(store: Store, version: int) -> Transaction | None:
    try:
        return load_transaction(store, version)
    except NotFoundError:
        return None


def _unknown(store: Store, identity: str, gone: Sequence[int]) -> CommitStateUnknownError:
    shown = f"{gone[0]}" if len(gone) == 1 else f"{gone[0]} to {gone[-1]}"
    return CommitStateUnknownError(
        f"{store.uri}: nobody can tell whether {identity} has landed: the ledger has no record of it, "
        f"a commit of it had begun, and the history of version {shown} is gone",
        uri=store.uri,
        version=gone[0],
        cure="Look whether its rows are in the table; then run `lance staged abort --certain` (they are not) or "
        "`lance staged settle --version N` (they are).",
    )


def _check_ledger_fits(store: Store, found: Mapping[str, int | None], *, latest: int) -> None:
    for identity, version in found.items():
        if version is not None and version > latest:
            raise CommitStateUnknownError(
                f"{store.uri}: the ledger says {identity} landed as version {version}, but the newest version is {latest}",
                uri=store.uri,
                version=version,
                cure=f"The table was dropped and made anew; remove {naming.LEDGER}/ of the old one.",
            )


def _complete_version(store: Store) -> int:
    return _version_of(read_record(store, _COMPLETE_PATH)) or 0


def _version_of(record: Record | None) -> int | None:
    return None if record is None else int(record["version"])
