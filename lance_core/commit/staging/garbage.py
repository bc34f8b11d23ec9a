"""Collecting what dead attempts and dead commits left behind, at once and by name.

::

    attempt started, lease over, never finished     its files, its records
    attempt marked as withdrawn (a killed abort)    its files, its records
    identity has landed                             its records, its staged transaction, files no version refers to
    finished, not landed                            wanted: nothing is touched
    commit lease over, or its work landed           its deletion and transaction files that no version refers to
    unfinished write, untouched for long            itself

Never removed: a file that any version, tag or branch refers to, a file of a wanted staged transaction, a file of an attempt
or commit within its lease, and any file whose name says of no attempt of ours that it is dead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.bulk import delete_all
from lance_core.commit.log.manifests import list_versions, open_path
from lance_core.commit.model import GarbageReport, StagedEntry
from lance_core.commit.records import each, write_record
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.commit.registry import attempts as registry
from lance_core.commit.registry.claims import COMMIT_LEASE_SECONDS, Claim, drop_claim, list_claims
from lance_core.commit.registry.ledger import find_landed, landing_of
from lance_core.errors import CommitStateUnknownError, NotFoundError
from lance_core.io.store import Store, StoreEntry

_BRANCHES = "tree"
_LONG_WRITE_SECONDS = 7 * 24 * 3600.0
"""A data file may be written for long; records, transactions and manifests are written at once."""


def collect_garbage(store: Store, *, dry_run: bool = False, now: float | None = None) -> GarbageReport:
    """Remove what dead attempts and commits left; with `dry_run` only say what would go.

    `now` (seconds since the epoch) decides which leases are over. Safe to run at any time and to be killed at any point.
    """
    at = time.time() if now is None else now
    dead = _find_dead(store, at)
    if not dry_run:
        dead = _fence(store, dead)
    doomed = [*_left_by(store, dead), *_abandoned(store, at)]
    doomed = [*{entry.path: entry for entry in doomed}.values()]
    if not dry_run:
        delete_all(store, [entry.path for entry in doomed])
        _forget(store, dead)
        delete_all(store, [*_stale_progress(store), *registry.stale_marks(store)])
    return GarbageReport(
        dry_run=dry_run,
        files=tuple(sorted(entry.path for entry in doomed)),
        bytes=sum(entry.size for entry in doomed),
        attempts=tuple(sorted({*(entry.attempt for entry in dead.attempts), *(claim.commit for claim in dead.commits)})),
    )


def _left_by(store: Store, dead: _Dead) -> list[StoreEntry]:
    if not dead.attempts and not dead.commits:
        return []
    referenced = _referenced(store)
    return [entry for entry in _candidates(store) if dead.owns(entry.path) and not is_referenced(entry.path, referenced)]


def _stale_progress(store: Store) -> list[str]:
    """Progress notes of attempts that nothing is recorded of any more. Notes first: a record precedes its first note."""
    notes = [entry.path for entry in store.list(f"{naming.PROGRESS}/")]
    known = {entry.attempt for entry in registry.list_staged(store)} if notes else set()
    return [path for path in notes if path.removeprefix(f"{naming.PROGRESS}/").partition("/")[0] not in known]


def _abandoned(store: Store, now: float) -> list[StoreEntry]:
    """Unfinished writes that nobody can be at work on any more, whosever they are."""
    found = []
    for entry in store.list_unfinished(""):
        is_long = entry.path.startswith((f"{naming.DATA}/", f"{naming.INDICES}/"))
        if entry.modified + (_LONG_WRITE_SECONDS if is_long else COMMIT_LEASE_SECONDS) < now:
            found.append(entry)
    return found


@dataclass(frozen=True, slots=True)
class _Dead:
    """Attempts (never finished, withdrawn, or landed) and commits whose leftovers may go."""

    attempts: list[StagedEntry] = field(default_factory=list)
    commits: list[Claim] = field(default_factory=list)

    def owns(self, path: str) -> bool:
        if any(naming.is_of_attempt(path, entry.attempt) for entry in self.attempts):
            return True
        return any(naming.is_of_attempt(path, claim.commit) or _is_published_by(claim, path) for claim in self.commits)


def _find_dead(store: Store, now: float) -> _Dead:
    claims = list_claims(store)
    alive = {identity for claim in claims if claim.is_alive(now) for identity in claim.identities}
    entries = registry.list_staged(store, now=now)
    attempts = [entry for entry in entries if _is_dead(store, entry, claimed=entry.identity in alive)]
    landed: dict[str, bool] = {}
    for claim in claims:
        for identity in claim.identities:
            landed[identity] = landed.get(identity, False) or landing_of(store, identity) is not None
    commits = [claim for claim in claims if all(landed[item] for item in claim.identities)]
    commits.extend(
        claim for claim in claims if claim not in commits and not claim.is_alive(now) and _is_settled(store, claim)
    )
    return _Dead(attempts, commits)


def _is_settled(store: Store, claim: Claim) -> bool:
    """Whether it is known of all its identities if they landed. If not, the claim is the only witness and stays."""
    try:
        for identity in claim.identities:
            finished = registry.read_finished(store, identity)
            if finished is not None:
                find_landed(store, identity, finished.read_version)
    except CommitStateUnknownError:
        return False
    return True


def _is_dead(store: Store, entry: StagedEntry, *, claimed: bool) -> bool:
    if landing_of(store, entry.identity) is not None:
        return True
    if claimed:
        return False
    if registry.is_withdrawn(store, entry.identity, entry.attempt):
        return entry.staged is None or not _may_have_landed(store, entry)
    if entry.state == "expired":
        return True
    # A commit that was killed before it told the ledger: the log knows.
    return entry.state == "finished" and _has_landed(store, entry)


def _may_have_landed(store: Store, entry: StagedEntry) -> bool:
    try:
        return find_landed(store, entry.identity, entry.read_version) is not None
    except CommitStateUnknownError:
        return True


def _has_landed(store: Store, entry: StagedEntry) -> bool:
    try:
        return find_landed(store, entry.identity, entry.read_version) is not None
    except CommitStateUnknownError:
        return False


def _fence(store: Store, dead: _Dead) -> _Dead:
    """Mark what is about to go as withdrawn, then look again: what finished or is being published by now is wanted.

    The marks come first and the second look afterwards, as `claims` explains.
    """
    open_ends = [entry for entry in dead.attempts if landing_of(store, entry.identity) is None]
    fresh = [entry for entry in open_ends if not registry.is_withdrawn(store, entry.identity, entry.attempt)]
    for entry in fresh:
        mark = registry.record_path(entry.identity, entry.attempt, registry.WITHDRAWN)
        write_record(store, mark, {"attempt": entry.attempt, "since": time.time()})
    at = time.time()
    claimed = {identity for claim in list_claims(store) if claim.is_alive(at) for identity in claim.identities}
    spared = set()
    for entry in open_ends:
        finished = registry.read_finished(store, entry.identity)
        finished_since = entry.staged is None and finished is not None and finished.attempt == entry.attempt
        if finished_since or entry.identity in claimed:
            spared.add(entry.attempt)
    for entry in fresh:
        if entry.attempt in spared:
            store.delete(registry.record_path(entry.identity, entry.attempt, registry.WITHDRAWN))
    return _Dead([entry for entry in dead.attempts if entry.attempt not in spared], dead.commits)


def _candidates(store: Store) -> list[StoreEntry]:
    folders = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)
    found = [entry for folder in folders for entry in store.list(f"{folder}/")]
    found.extend(entry for folder in folders for entry in store.list_unfinished(f"{folder}/"))
    return found


def _is_published_by(claim: Claim, path: str) -> bool:
    folder, _, name = path.partition("/")
    if folder != naming.TRANSACTIONS or not name.endswith(".txn"):
        return False
    _, _, uuid = name[: -len(".txn")].partition("-")
    return uuid in claim.uuids or uuid in claim.identities


def _referenced(store: Store) -> frozenset[str]:
    """Every file that any version of the table or of one of its branches needs.

    Tags name versions, and a version that a tag names is still listed, so tags add nothing.
    """
    places = [store, *(store.child(folder) for folder in _branch_folders(store))]
    found: set[str] = set()
    for place in places:
        for files in each(place, [(entry.version, entry.path) for entry in list_versions(place)], _files_of):
            found.update(files)
        for name in place.list_names(f"{naming.VERSIONS}/"):
            detached = naming.parse_detached_name(name)
            if detached is not None:
                found.update(_files_of(place, (detached, naming.manifest_path(detached))))
    return frozenset(found)


def _files_of(store: Store, version: tuple[int, str]) -> frozenset[str]:
    try:
        return frozenset(referenced_files(open_path(store, *version).manifest))
    except NotFoundError:
        return frozenset()  # cleaned up while we looked


def _branch_folders(store: Store) -> set[str]:
    marker = f"/{naming.VERSIONS}/"
    paths = [entry.path for entry in store.list(f"{_BRANCHES}/")]
    return {path.split(marker, 1)[0] for path in paths if marker in path}


def _forget(store: Store, dead: _Dead) -> None:
    for entry in dead.attempts:
        registry.forget_attempt(store, entry.identity, entry.attempt)
    for claim in dead.commits:
        drop_claim(store, claim)


def wanted_files(store: Store) -> frozenset[str]:
    """Files that other cleanups must leave alone: those of every attempt that is running, or staged and not landed."""
    now = time.time()
    dead = {entry.attempt for entry in _find_dead(store, now).attempts}
    attempts = [entry.attempt for entry in registry.list_staged(store, now=now) if entry.attempt not in dead]
    commits = [claim.commit for claim in list_claims(store) if claim.is_alive(now)]
    owners = [*attempts, *commits]
    paths = [entry.path for entry in _candidates(store)]
    return frozenset(path for path in paths if any(naming.is_of_attempt(path, owner) for owner in owners))
