"""Collect the files and records of dead attempts and dead commits, at once and by name.

::

    attempt started, lease over, not finished       aborted: its files, its record
    attempt that is aborted                          what a killed abort left, and files that a suspended writer wrote since
    identity is committed                            records, staged transactions, files that no version refers to
    finished, not committed                          wanted: nothing is touched, unless it is older than the caller bounds,
                                                     or of a statement whose lease is over: nobody else would commit it
    intent all of whose work is decided              deletion and transaction files of its commit that no version refers to
    unfinished write, untouched for long             itself

A lease says whom to suspect. What may go is decided by `abort`, like every other removal.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import open_newest
from lance_core.errors import CommitStateUnknownError
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.store import Store, StoreEntry
from lance_core.publish.abort import AbortRequest, Owners, Removal, remove_attempts, unneeded
from lance_core.publish.attempts import Key, attempt_entries, attempt_files, read_lease, started_keys
from lance_core.publish.decisions import look_many, read_decision
from lance_core.publish.history import LogSearch, search, settle_intents
from lance_core.publish.intent import STALE_SECONDS, Intent, list_intents
from lance_core.publish.model import GarbageReport, StagedTransaction
from lance_core.publish.table_id import require_known_records

log = logging.getLogger(__name__)

_LONG_WRITE_SECONDS = 7 * 24 * 3600.0
"""A data file may be written for long; records, transactions and manifests are written at once."""


def collect_garbage(
    store: Store, *, dry_run: bool = False, now: float | None = None, abandon_after: float | None = None
) -> GarbageReport:
    """Remove files of dead attempts and commits; with `dry_run` only list them.

    `now` (seconds since the epoch) decides which leases are over. `abandon_after`: staged work that has waited for its
    commit for more seconds is aborted, and named in a warning; None keeps it for ever. Safe to run at any time and to be
    killed at any point.
    """
    at = time.time() if now is None else now
    newest = open_newest(store)
    require_known_records(store, None if newest is None else newest.manifest)
    intents = list_intents(store)
    found = _find(store, at, abandon_after)
    settle_intents(store, intents, but=found.waiting)
    unfinished = _left_unfinished(store, at)
    sizes = {entry.path: entry.size for entry in unfinished}  # as they were before
    if intents or found.dead or found.forgotten:
        sizes.update((entry.path, entry.size) for entry in attempt_entries(store))
    dead = remove_attempts(store, found.dead, AbortRequest("gc", committed_too=True, dry_run=dry_run, now=at))
    request = AbortRequest("abandoned", finished="abort", dry_run=dry_run, now=at)
    abandoned = remove_attempts(store, [*found.forgotten], request)
    _name_abandoned(store, found, abandoned, at, dry_run=dry_run)
    settled = _settled(store, intents)
    left = [*_left_by(store, settled), *(entry.path for entry in unfinished)]
    if not dry_run:
        delete_all(store, left)
        delete_all(store, [intent.path for intent in settled])
        # Notes that nobody needs any more: progress of attempts without a record.
        attempts, folder = {attempt for _, attempt in started_keys(store)}, f"{naming.PROGRESS}/"
        notes = [entry.path for entry in store.list(folder)]
        delete_all(store, [path for path in notes if path.removeprefix(folder).partition("/")[0] not in attempts])
    files = {*dead.files, *abandoned.files, *left}
    spared = {*dead.left, *dead.refusals, *abandoned.left, *abandoned.refusals}
    gone = {attempt for identity, attempt in (*found.dead, *found.forgotten) if (identity, attempt) not in spared}
    unknown = [key[0] for key, error in abandoned.refusals.items() if isinstance(error, CommitStateUnknownError)]
    return GarbageReport(
        dry_run=dry_run,
        files=tuple(sorted(files)),
        bytes=sum(sizes.get(path, 0) for path in files),
        attempts=tuple(sorted({*gone, *(intent.commit for intent in settled)})),
        abandoned=tuple(sorted(identity for identity, attempt in found.forgotten if (identity, attempt) not in spared)),
        unknown=tuple(sorted(unknown)),
    )


@dataclass(frozen=True)
class _Found:
    """Attempts on record by the way they are to be treated, and those that wait for their commit."""

    dead: list[Key] = field(default_factory=list)
    forgotten: dict[Key, tuple[StagedTransaction, float, Asked]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)


def _find(store: Store, now: float, abandon_after: float | None) -> _Found:
    keys = started_keys(store)
    begun = dict(zip(keys, each(store, keys, lambda store, key: read_lease(store, *key)), strict=True))
    states = look_many(store, sorted({key[0] for key in keys}), damaged={})
    waiting = {identity: state.finished.read_version for identity, state in states.items() if state.finished is not None}
    if waiting:  # a commit that was killed before its decisions is found in the log
        states.update(search(store, LogSearch(waiting), states={name: states[name] for name in waiting}).states)
    found = _Found(waiting=waiting)
    for key, record in begun.items():
        state = states.get(key[0])
        if state is None:
            continue
        is_over = record is None or record[1] + record[0].lease_seconds < now
        is_former = state.committed is not None and key[1] in state.superseded
        if state.is_decided(key[1]) or is_former or (is_over and state.is_open(key[1])):
            found.dead.append(key)
        elif state.finished is not None and state.is_finished(key[1]):
            number, asked = state.finished.number, Asked.from_dict(record and record[0].asked)
            before = read_decision(store, key[0], number) if number < state.number else None
            since = (before or state).decided_at  # when it was finished, by the clock of its task
            if (asked.statement and is_over) or (abandon_after is not None and since + abandon_after < now):
                found.forgotten[key] = (state.finished, since, asked)
    return found


def _name_abandoned(store: Store, found: _Found, removal: Removal, now: float, *, dry_run: bool) -> None:
    verb = "would be aborted" if dry_run else "was aborted"
    for key, (staged, since, asked) in found.forgotten.items():
        error = removal.refusals.get(key)
        if isinstance(error, CommitStateUnknownError):
            log.warning("%s Until then the work stays.", error)
        elif error is None and key in removal.left:
            log.warning("%s: %s waits for its commit, and was left: a living attempt goes on with it", store.uri, key[0])
        elif error is None:
            log.warning(
                "%s: %s of %s, %d rows planned on version %d by %s, had waited for its commit for %.1f hours and %s",
                store.uri, staged.operation, key[0], staged.num_rows, staged.read_version,
                asked, (now - since) / 3600, verb,
            )  # fmt: skip


def _settled(store: Store, intents: Sequence[Intent]) -> list[Intent]:
    """Intents each of whose identities has its decision: committed, or just that attempt is aborted."""
    states = look_many(store, sorted({name for intent in intents for name in intent.attempts}), damaged={})

    def is_over(identity: str, attempt: str) -> bool:
        state = states.get(identity)
        return state is not None and (state.committed is not None or state.is_aborted(attempt))

    return [intent for intent in intents if all(is_over(name, str(attempt)) for name, attempt in intent.attempts.items())]


def _left_unfinished(store: Store, now: float) -> list[StoreEntry]:
    """Unfinished writes that nobody can be at work on any more, whosever they are."""

    def bound(path: str) -> float:
        is_long = path.startswith((f"{naming.DATA}/", f"{naming.INDICES}/"))
        return _LONG_WRITE_SECONDS if is_long else STALE_SECONDS

    return [entry for entry in store.list_unfinished("") if entry.modified + bound(entry.path) < now]


def _left_by(store: Store, intents: Sequence[Intent]) -> list[str]:
    """Deletion and transaction files of commits that no version needs."""
    if not intents:
        return []
    # What a clearing that was killed has left of the attempts is found by the intent, too.
    owners = Owners(str(name) for intent in intents for name in (intent.commit, *intent.attempts.values()) if name)
    names = {uuid for intent in intents for uuid in (*intent.uuids, *intent.attempts)}
    left = [path for path in attempt_files(store) if owners.has(path) or _published_uuid(path) in names]
    return unneeded(store, left, owners, since=0, transactions=True)


def _published_uuid(path: str) -> str:
    folder, _, name = path.partition("/")
    if folder != naming.TRANSACTIONS or not name.endswith(".txn"):
        return ""
    return name[: -len(".txn")].partition("-")[2]
