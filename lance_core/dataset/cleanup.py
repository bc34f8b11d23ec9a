"""Remove old versions and the files only they need.

::

    versions 1 2 3 4 (1 tagged), older_than 14 days, 2 and 3 are older
    -> what 2 and 3 need and 1 and 4 do not goes, then the manifests of 2 and 3

Nothing that a kept version, a tag or a staged transaction needs is touched; versions since the one that staged work was
planned on stay, for its commit has to judge them. Identities that landed in the versions that go
are written into the ledger first, so that exactly-once survives. Files that belong to no version go after seven days, or at
once with `delete_unverified`, unless a staging attempt may still be at work on them. A killed cleanup is
finished by the next.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.ledger import landing_of, record_history
from lance_core.commit.manifests import VersionEntry, list_versions, load_manifest
from lance_core.commit.records import each
from lance_core.commit.references import fragment_paths, is_referenced, named_fragments, referenced_files
from lance_core.commit.registry import list_staged
from lance_core.commit.transactions import read_transaction_file
from lance_core.dataset.tags import list_tags
from lance_core.errors import InputError, UnsupportedFeatureError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store, StoreEntry

UNVERIFIED_SECONDS = 7 * 86_400
"""A file of no version may be the work of a writer that has not committed yet; younger than this it stays."""
DEFAULT_AGE = dt.timedelta(days=14)
_FOLDERS = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """What a cleanup removed: bytes, versions, and files by kind."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0


@dataclass(frozen=True)
class CleanupPlan:
    """Versions to remove, and the files that go with them; kept versions that were old enough, with the reason."""

    versions: tuple[VersionEntry, ...]
    files: tuple[StoreEntry, ...]
    kept: tuple[tuple[int, str], ...]

    @property
    def stats(self) -> CleanupStats:
        """What carrying it out removes."""
        counts = {folder: sum(item.path.startswith(f"{folder}/") for item in self.files) for folder in _FOLDERS}
        return CleanupStats(
            bytes_removed=sum(item.size for item in self.files) + sum(item.size for item in self.versions),
            old_versions=len(self.versions),
            data_files_removed=counts[naming.DATA],
            transaction_files_removed=counts[naming.TRANSACTIONS],
            index_files_removed=counts[naming.INDICES],
            deletion_files_removed=counts[naming.DELETIONS],
        )


def plan_cleanup(
    store: Store,
    *,
    older_than: dt.timedelta | None = None,
    retain_versions: int | None = None,
    versions: Sequence[int] | None = None,
    delete_unverified: bool = False,
    error_if_tagged_old_versions: bool = True,
    now: float | None = None,
) -> CleanupPlan:
    """What a cleanup would remove. With neither age, number nor versions given, versions older than 14 days.

    Raises InputError when an old version is tagged (unless told not to), UnsupportedFeatureError for a table with branches.
    """
    at = time.time() if now is None else now
    # A branch's own tags and branches are written down at the main table, which is not looked at either.
    if store.list_names("_refs/branches/") or load_manifest(store).branch is not None:
        raise UnsupportedFeatureError(
            f"{store.uri} has branches or is one, whose needs this release does not follow",
            cure="Clean it up with the official library.",
        )
    entries = [*list_versions(store)]
    doomed, kept = _choose(store, entries, at, older_than, retain_versions, versions, error_if_tagged_old_versions)
    gone = {entry.version for entry in doomed}
    needed = _needed(store, [entry.version for entry in entries if entry.version not in gone])
    theirs = frozenset(path for manifest in _load(store, sorted(gone)) for path in referenced_files(manifest))
    attempts = [entry.attempt for entry in list_staged(store)]

    def goes(item: StoreEntry) -> bool:
        if is_referenced(item.path, needed) or any(naming.is_of_attempt(item.path, attempt) for attempt in attempts):
            return False
        return is_referenced(item.path, theirs) or delete_unverified or item.modified < at - UNVERIFIED_SECONDS

    files = tuple(item for folder in _FOLDERS for item in store.list(f"{folder}/") if goes(item))
    return CleanupPlan(tuple(doomed), files, tuple(kept))


def run_cleanup(store: Store, plan: CleanupPlan) -> CleanupStats:
    """Carry a plan out: the ledger, then files, then manifests."""
    record_history(store, [entry.version for entry in plan.versions])
    each(store, [item.path for item in plan.files], lambda place, path: place.delete(path))
    each(store, [entry.path for entry in plan.versions], lambda place, path: place.delete(path))
    return plan.stats


def _choose(
    store: Store,
    entries: Sequence[VersionEntry],
    now: float,
    older_than: dt.timedelta | None,
    retain_versions: int | None,
    versions: Sequence[int] | None,
    error_if_tagged: bool,
) -> tuple[list[VersionEntry], list[tuple[int, str]]]:
    tags = {tag.version: name for name, tag in list_tags(store).items()}
    latest = max((entry.version for entry in entries), default=0)
    candidates = _candidates(store, entries, now, older_than, retain_versions, versions)
    old = [entry for entry in candidates if entry.version != latest]
    tagged = [entry.version for entry in old if entry.version in tags]
    if tagged and error_if_tagged:
        raise InputError(
            f"version {tagged[0]} of {store.uri} is old but tagged {tags[tagged[0]]!r}",
            uri=store.uri,
            version=tagged[0],
            cure="Delete the tag, or pass error_if_tagged_old_versions=False to keep tagged versions.",
        )
    kept = [(version, f"tagged {tags[version]}") for version in tagged]
    old = [entry for entry in old if entry.version not in tags]
    base = _oldest_base(store)
    kept += [(entry.version, f"staged work was planned on version {base}") for entry in old if entry.version >= base]
    return [entry for entry in old if entry.version < base], kept


def _oldest_base(store: Store) -> float:
    """The oldest version that staged work was planned on: its commit judges every version since, so they must be there."""
    waiting = [entry for entry in list_staged(store) if entry.state != "expired" and not landing_of(store, entry.identity)]
    return min((entry.read_version for entry in waiting), default=float("inf"))


def _candidates(
    store: Store,
    entries: Sequence[VersionEntry],
    now: float,
    older_than: dt.timedelta | None,
    retain_versions: int | None,
    versions: Sequence[int] | None,
) -> list[VersionEntry]:
    """Versions that are old by every measure that was given."""
    chosen = [*entries]
    if versions is not None:
        unknown = sorted(set(versions) - {entry.version for entry in entries})
        if unknown:
            raise InputError(f"{store.uri} has no version {unknown[0]}", uri=store.uri, version=unknown[0])
        chosen = [entry for entry in chosen if entry.version in set(versions)]
    if retain_versions is not None:
        if retain_versions < 1:
            raise InputError(f"retain_versions must be at least 1, got {retain_versions}")
        recent = {entry.version for entry in entries[-retain_versions:]}
        chosen = [entry for entry in chosen if entry.version not in recent]
    age = older_than
    if age is None and versions is None and retain_versions is None:
        age = DEFAULT_AGE
    if age is None:
        return chosen
    limit = (now - age.total_seconds()) * 1e9
    stamps = {manifest.version: manifest.timestamp_ns for manifest in _load(store, [entry.version for entry in chosen])}
    return [entry for entry in chosen if stamps.get(entry.version, limit) < limit]


def _load(store: Store, versions: Sequence[int]) -> list[Manifest]:
    return each(store, versions, load_manifest)


def _needed(store: Store, versions: Sequence[int]) -> frozenset[str]:
    """Files that kept versions and staged transactions hold on to."""
    found = {path for manifest in _load(store, versions) for path in referenced_files(manifest)}
    found.update(_staged_paths(store))
    return frozenset(found)


def _staged_paths(store: Store) -> Iterable[str]:
    for entry in list_staged(store):
        if entry.staged is None:
            continue
        yield entry.staged.transaction_path
        transaction = read_transaction_file(store, entry.staged.transaction_path)
        if transaction is not None:
            yield from fragment_paths(named_fragments(transaction.operation))
