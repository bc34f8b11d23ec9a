"""Collect the files and records of dead attempts and dead commits, at once and by name.

::

    attempt started, lease over, never finished     its files, its records
    attempt that was withdrawn (a killed abort)      its files, its records; files that a zombie wrote since
    identity has landed                             its records, its staged transaction, files no version refers to
    finished, not landed                            wanted: nothing is touched, unless it is older than the caller bounds
    commit all of whose work is settled             its deletion and transaction files that no version refers to
    unfinished write, untouched for long            itself

A lease says whom to suspect. What may go is decided by `staging.remove`, like every other removal; an attempt that a commit
was about to publish stays, unless it counts no longer and its lease is long over: then a version that changes no row
settles it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import find_latest_version
from lance_core.commit.references import is_referenced
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import CommitStateUnknownError
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.store import Store, StoreEntry
from lance_core.publish.model import GarbageReport, StagedEntry
from lance_core.publish.record_types import Fence
from lance_core.publish.registry import attempts as registry
from lance_core.publish.registry.claims import (
    COMMIT_LEASE_SECONDS,
    Claim,
    drop_claim,
    list_claims,
)
from lance_core.publish.registry.fences import forget_withdrawal, list_fences, list_further, list_remembered, remove_fence
from lance_core.publish.registry.group_fences import is_damaged, list_groups, version_of
from lance_core.publish.registry.landings import find_landed_many
from lance_core.publish.registry.ledger import landings_of
from lance_core.publish.staging.in_use import Owners, files_in_use
from lance_core.publish.staging.remove import Key, Removal, remove_attempts
from lance_core.publish.staging.staged import missing_files

log = logging.getLogger(__name__)

_LONG_WRITE_SECONDS = 7 * 24 * 3600.0
"""A data file may be written for long; records, transactions and manifests are written at once."""
_ZOMBIE_SECONDS = 7 * 24 * 3600.0
"""So long the withdrawal of an attempt stays on record, for files that it writes late. Only tidiness depends on it."""


def collect_garbage(
    store: Store, *, dry_run: bool = False, now: float | None = None, abandon_after: float | None = None
) -> GarbageReport:
    """Remove files of dead attempts and commits; with `dry_run` only list them.

    `now` (seconds since the epoch) decides which leases are over. `abandon_after`: staged work that has waited for its
    commit for more seconds is aborted, and named in a warning; None keeps it for ever. Safe to run at any time and to be
    killed at any point.
    """
    at = time.time() if now is None else now
    found = _find(store, at, abandon_after)
    unfinished = _abandoned(store, at)
    sizes = _Sizes(store, unfinished)
    if list_claims(store) or found.everybody():
        sizes.look()
    removals = [
        remove_attempts(store, found.landed, by="gc", landed_too=True, dry_run=dry_run),
        remove_attempts(store, found.dead, by="gc", landed_too=True, unfinished_only=True, dry_run=dry_run),
        remove_attempts(store, found.wrecks, by="gc", landed_too=True, dry_run=dry_run),
        remove_attempts(store, found.zombies, by="gc", landed_too=True, dry_run=dry_run),
        remove_attempts(store, found.superseded, by="gc", doubt="fence", landed_too=True, dry_run=dry_run),
        abandoned := remove_attempts(store, [*found.forgotten], by="abandoned", doubt="fence", dry_run=dry_run),
    ]
    _name_abandoned(store, found, abandoned, at, dry_run=dry_run)
    claims = _settled_claims(store, found)
    left = _left_by(store, claims)
    paths = [entry.path for entry in unfinished]
    if not dry_run:
        delete_all(store, [*left, *paths])
        for claim in claims:
            drop_claim(store, claim)
        _tidy(store, found, at)
    files = [*dict.fromkeys([path for removal in removals for path in removal.files] + left + paths)]
    over = {attempt for _, attempt in found.everybody()} - {key[1] for removal in removals for key in _spared(removal)}
    return GarbageReport(
        dry_run=dry_run,
        files=tuple(sorted(files)),
        bytes=sizes.of(files),
        attempts=tuple(sorted({*over, *(claim.commit for claim in claims)})),
        abandoned=tuple(sorted(identity for identity, _ in {*found.forgotten} - {*_spared(abandoned)})),
    )


class _Sizes:
    """Sizes of files as they were before the collection."""

    def __init__(self, store: Store, unfinished: Sequence[StoreEntry]) -> None:
        self._store = store
        self._known = {entry.path: entry.size for entry in unfinished}

    def look(self) -> None:
        """List the table: only where something is to go."""
        folders = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)
        self._known.update((entry.path, entry.size) for folder in folders for entry in self._store.list(f"{folder}/"))

    def of(self, paths: Iterable[str]) -> int:
        """Bytes of some files together."""
        return sum(self._known.get(path, 0) for path in paths)


@dataclass(frozen=True)
class _Found:
    """Attempts that are over, by the way they are to be treated."""

    landed: list[Key] = field(default_factory=list)
    dead: list[Key] = field(default_factory=list)
    wrecks: list[Key] = field(default_factory=list)
    zombies: list[Key] = field(default_factory=list)
    superseded: list[Key] = field(default_factory=list)
    forgotten: dict[Key, tuple[StagedEntry, float]] = field(default_factory=dict)
    fences: dict[Key, Fence] = field(default_factory=dict)
    remembered: dict[Key, float] = field(default_factory=dict)

    def everybody(self) -> list[Key]:
        """All of them."""
        return [*self.landed, *self.dead, *self.wrecks, *self.zombies, *self.superseded, *self.forgotten]


def _spared(removal: Removal) -> list[Key]:
    return [*removal.left, *removal.refusals]


def _find(store: Store, now: float, abandon_after: float | None = None) -> _Found:
    entries = registry.list_staged(store, now=now)
    finished = {} if abandon_after is None else registry.finished_at(store)
    fences = list_fences(store)
    landed = _landed(store, entries)
    found = _Found(fences=fences, remembered=list_remembered(store))
    for entry in entries:
        key = (entry.identity, entry.attempt)
        fence = fences.get(key)
        if entry.identity in landed:
            found.landed.append(key)
        elif fence is not None and fence.withdraws:
            found.wrecks.append(key)
        elif entry.state == "expired":
            (found.dead if fence is None else found.superseded).append(key)
        elif entry.state == "finished" and _is_wreck(store, entry):
            found.wrecks.append(key)
        elif abandon_after is not None and finished.get(entry.identity, now) + abandon_after < now:
            found.forgotten[key] = (entry, finished[entry.identity])
    known = {(entry.identity, entry.attempt) for entry in entries}
    # A removal that was killed near its end, and what a zombie has written since it was withdrawn.
    begun = [key for key, fence in fences.items() if fence.withdraws and key not in known]
    begun += [key for key in registry.stale_marks(store) if key not in known]
    found.zombies.extend(dict.fromkeys([*begun, *_writing_zombies(store, found.remembered)]))
    return found


def _name_abandoned(store: Store, found: _Found, removal: Removal, now: float, *, dry_run: bool) -> None:
    verb = "would be aborted" if dry_run else "was aborted"
    for key, (entry, since) in found.forgotten.items():
        if key in removal.refusals or entry.staged is None:
            continue
        if key in removal.left:
            log.warning("%s: %s waits for its commit, and was left: a living attempt goes on with it", store.uri, key[0])
            continue
        log.warning(
            "%s: %s of %s, %d rows planned on version %d by %s, had waited for its commit for %.1f hours and %s",
            store.uri, entry.staged.operation, key[0], entry.staged.num_rows, entry.read_version,
            Asked.from_dict(entry.asked), (now - since) / 3600, verb,
        )  # fmt: skip


def _writing_zombies(store: Store, remembered: Iterable[Key]) -> list[Key]:
    keys = [*remembered]
    if not keys:
        return []
    prefixes = {naming.attempt_prefix(path) for path in registry.attempt_files(store)}
    return [key for key in keys if any(key[1][:length] in prefixes for length in (10, 12, 16))]


def _landed(store: Store, entries: Sequence[StagedEntry]) -> frozenset[str]:
    """Identities that have landed, told or not: a commit that was killed before it told the ledger is found in the log."""
    since: dict[str, int] = {}
    for entry in entries:
        since[entry.identity] = min(entry.read_version, since.get(entry.identity, entry.read_version))
    unknown: dict[str, CommitStateUnknownError] = {}
    found = find_landed_many(store, since, unknown=unknown)
    return frozenset(identity for identity, version in found.items() if version is not None)


def _is_wreck(store: Store, entry: StagedEntry) -> bool:
    """Whether a finished record has neither the record of its attempt nor its files: it was written after its end."""
    if entry.staged is None or entry.started:
        return False
    transaction = read_transaction_file(store, entry.staged.transaction_path)
    return transaction is None or bool(missing_files(store, transaction, writers=entry.staged.writers))


def _abandoned(store: Store, now: float) -> list[StoreEntry]:
    """Unfinished writes that nobody can be at work on any more, whosever they are."""
    found = []
    for entry in store.list_unfinished(""):
        is_long = entry.path.startswith((f"{naming.DATA}/", f"{naming.INDICES}/"))
        if entry.modified + (_LONG_WRITE_SECONDS if is_long else COMMIT_LEASE_SECONDS) < now:
            found.append(entry)
    return found


def _settled_claims(store: Store, found: _Found) -> list[Claim]:
    """Claims of which no put can land any more: each identity has landed, or its attempt was withdrawn."""
    claims = list_claims(store)
    identities = dict.fromkeys(identity for claim in claims for identity in claim.identities)
    landed = _on_record(store, [*identities])
    settled = []
    for claim in claims:
        open_ends = [item for item in claim.identities if item not in landed]
        if all(_is_withdrawn(found, (item, str(claim.attempts.get(item, "")))) for item in open_ends):
            settled.append(claim)
    return settled


def _on_record(store: Store, identities: Sequence[str]) -> frozenset[str]:
    """Those that the ledger knows; a record that is damaged says nothing."""
    return frozenset(item.identity for item in landings_of(store, identities, damaged={}) if item is not None)


def _is_withdrawn(found: _Found, key: Key) -> bool:
    fence = found.fences.get(key)
    return key in found.remembered or (fence is not None and fence.withdraws)


def _left_by(store: Store, claims: Sequence[Claim]) -> list[str]:
    """Deletion and transaction files of commits that no version needs."""
    if not claims:
        return []
    # What a clearing that was killed has left of the attempts that landed is found by the claim, too.
    owners = Owners(str(name) for claim in claims for name in (claim.commit, *claim.attempts.values()) if name)
    names = {uuid for claim in claims for uuid in (*claim.uuids, *claim.identities)}
    paths = registry.attempt_files(store)
    left = [path for path in paths if owners.has(path) or _published_uuid(path) in names]
    if not left:
        return []
    needed = files_in_use(store, owners, since=0, transactions=True)
    return [path for path in left if not is_referenced(path, needed)]


def _published_uuid(path: str) -> str:
    folder, _, name = path.partition("/")
    if folder != naming.TRANSACTIONS or not name.endswith(".txn"):
        return ""
    return name[: -len(".txn")].partition("-")[2]


def _settled_groups(store: Store) -> list[str]:
    """Records about groups that decide nothing any more, because there is a later version, and that nobody will ask."""
    newest = find_latest_version(store) or 0
    found = {group: decided for group, decided in list_groups(store).items() if version_of(group) < newest}
    attempts = [(identity, str(attempt)) for decided in found.values() for identity, attempt in decided.attempts.items()]
    staged = {item for item in attempts if (ref := registry.find_finished(store, item[0])) and ref.attempt == item[1]}
    landed = _on_record(store, [identity for identity, _ in staged])
    waiting = {item for item in staged if item[0] not in landed}
    settled = [group for group, decided in found.items() if not waiting.intersection(decided.attempts.items())]
    return [naming.group_path(group) for group in settled if not is_damaged(found[group])]


def _notes_of_landed(store: Store) -> list[str]:
    """Notes that work was about to be staged again which has landed: such a put, or its removal, may have come late."""
    paths = [entry.path for entry in store.list(f"{naming.STAGED}/") if entry.path.endswith("/reexecute.json")]
    by_identity = {path.split("/")[-2]: path for path in paths}
    landed = _on_record(store, [*by_identity]) if paths else ()
    return [path for identity, path in by_identity.items() if identity in landed]


def _tidy(store: Store, found: _Found, now: float) -> None:
    """Notes that nobody needs any more: progress of attempts without a record, decisions about attempts that are over."""
    known = registry.RecordedAttempts.of(store)
    claimed = {item for claim in list_claims(store) for item in claim.identities}
    over = [
        key
        for key, fence in list_fences(store).items()
        if key not in known and key[0] not in claimed and not fence.withdraws
    ]
    on_record = _on_record(store, [key[0] for key in over])
    over = [key for key in over if key[0] in on_record]
    each(store, over, lambda place, key: remove_fence(place, *key))
    delete_all(store, [path for key, path in list_further(store) if key not in known and key[0] not in claimed])
    old = [key for key, since in found.remembered.items() if since + _ZOMBIE_SECONDS < now and key[0] not in claimed]
    each(store, old, lambda place, key: forget_withdrawal(place, *key))
    delete_all(store, _settled_groups(store))
    attempts = {attempt for _, attempt in known.started}
    delete_all(store, _notes_of_landed(store))
    notes = [entry.path for entry in store.list(f"{naming.PROGRESS}/")]
    delete_all(store, [path for path in notes if path.removeprefix(f"{naming.PROGRESS}/").partition("/")[0] not in attempts])
