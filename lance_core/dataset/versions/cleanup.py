"""Remove old versions and the files only they need.

::

    versions 1 2 3 4 (1 tagged), older_than 14 days, 2 and 3 are older
    -> what 2 and 3 need and 1 and 4 do not goes, then the manifests of 2 and 3

Nothing that a kept version, a tag, another branch, a clone or a staged transaction needs is touched. Versions that a branch
or a clone began from stay, and versions since the one that staged work was planned on, for its commit has to judge them.
Identities that landed in the versions that go are written into the ledger first, so that exactly-once survives. Files that
belong to no version go after seven days, or at once with `delete_unverified`, unless a staging attempt may still be at work
on them. Manifests go before files, so that every version that is listed is whole; a note of the files lets the next cleanup
finish what a killed one began.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.log.manifests import VersionEntry, list_versions, load_manifest
from lance_core.commit.log.transactions import read_transaction_file
from lance_core.commit.records import each
from lance_core.commit.references import fragment_paths, is_referenced, named_fragments, referenced_files
from lance_core.commit.registry.attempts import list_staged
from lance_core.commit.registry.claims import list_claims
from lance_core.commit.registry.ledger import landing_of, record_history
from lance_core.dataset.refs.branches import MAIN, TREE, list_branches
from lance_core.dataset.refs.clones import cloned_versions, places_of, unnamed
from lance_core.dataset.refs.tags import list_tags
from lance_core.errors import InputError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store, StoreEntry

UNVERIFIED_SECONDS = 7 * 86_400
"""A file of no version may be the work of a writer that has not committed yet; younger than this it stays."""
DEFAULT_AGE = dt.timedelta(days=14)
_NOTES = f"{naming.PRIVATE}/cleanup"
_AT_ONCE = 256
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
    """Versions to remove, the files that go with them, kept versions that were old enough, with the reason; notes of
    cleanups that were killed, which this one finishes."""

    versions: tuple[VersionEntry, ...]
    files: tuple[StoreEntry, ...]
    kept: tuple[tuple[int, str], ...]
    notes: tuple[str, ...] = ()

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
    root: Store | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> CleanupPlan:
    """What a cleanup would remove. With neither age, number nor versions given, versions older than 14 days.

    `root` is the main table's store when `store` is a branch's; one line is cleaned up at a time. `storage_options` are for
    looking at clones. Raises InputError when an old version is tagged, unless told not to.
    """
    at = time.time() if now is None else now
    main = _main_of(store, root)
    entries = [*list_versions(store)]
    held = _held(store, main, storage_options)
    old = _candidates(store, entries, at, older_than, retain_versions, versions)
    doomed, kept = _choose(store, old, held, error_if_tagged_old_versions)
    gone = {entry.version for entry in doomed}
    needed = _needed(store, main, gone)
    theirs = frozenset(path for manifest in _load(store, sorted(gone)) for path in referenced_files(manifest))
    notes = tuple(entry.path for entry in store.list(f"{_NOTES}/"))
    begun = frozenset(path for note in notes for path in bytes(store.get(note)).decode().splitlines())
    attempts = [attempt for place in places_of(main) for attempt in _at_work(place, at)]

    def goes(item: StoreEntry) -> bool:
        if is_referenced(item.path, needed) or any(naming.is_of_attempt(item.path, attempt) for attempt in attempts):
            return False
        if item.path in begun or is_referenced(item.path, theirs):
            return True
        return delete_unverified or item.modified < at - UNVERIFIED_SECONDS

    files = [item for folder in _FOLDERS for item in store.list(f"{folder}/") if goes(item)]
    unfinished = [item for item in store.list_unfinished("") if not item.path.startswith(f"{TREE}/")]
    files += [item for item in (*unfinished, *(unnamed(store) if main is store else ())) if goes(item)]
    return CleanupPlan(tuple(doomed), tuple(files), tuple(kept), notes)


def run_cleanup(
    store: Store,
    plan: CleanupPlan,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    files_per_second: int | None = None,
) -> CleanupStats:
    """Carry a plan out: the ledger, a note of the files, manifests, files. `progress(done, total)` counts files."""
    if files_per_second is not None and files_per_second < 1:
        raise InputError(f"delete_rate_limit must be at least 1, got {files_per_second}")
    at_once = _AT_ONCE if files_per_second is None else min(_AT_ONCE, files_per_second)
    record_history(store, [entry.version for entry in plan.versions])
    notes = [*plan.notes]
    if plan.versions and plan.files:
        notes.append(f"{_NOTES}/{uuid.uuid4().hex}")
        store.put(notes[-1], "\n".join(item.path for item in plan.files).encode())
    each(store, [entry.path for entry in plan.versions], lambda place, path: place.delete(path))
    paths = [item.path for item in plan.files]
    for start in range(0, len(paths), at_once):
        began = time.monotonic()
        each(store, paths[start : start + at_once], lambda place, path: place.delete(path))
        progress(min(start + at_once, len(paths)), len(paths))
        if files_per_second is not None and start + at_once < len(paths):
            time.sleep(max(0.0, at_once / files_per_second - (time.monotonic() - began)))
    each(store, notes, lambda place, path: place.delete(path))
    return plan.stats


@dataclass(frozen=True, slots=True)
class _Held:
    """Versions of a line that must stay: the newest one, those with tags, and those that something began from."""

    latest: int
    tags: Mapping[int, str]
    origins: Mapping[int, str]


def _main_of(store: Store, root: Store | None) -> Store:
    if root is not None:
        return store if root.uri == store.uri else root
    if load_manifest(store).branch is not None:
        raise InputError(f"{store.uri} is a branch; its tags are at the main table", cure="Pass that table's store as root.")
    return store


def _held(store: Store, main: Store, storage_options: Mapping[str, str] | None) -> _Held:
    newest = load_manifest(store)
    branch = None if main is store else newest.branch
    tags = {tag.version: name for name, tag in list_tags(main).items() if (tag.branch or MAIN) == (branch or MAIN)}
    origins = {version: f"cloned by {uri}" for version, uri in cloned_versions(store, storage_options).items()}
    for item in list_branches(main).values():
        if (item.parent_branch or MAIN) == (branch or MAIN):
            origins[item.parent_version] = f"branch {item.name} began here"
    return _Held(newest.version, tags, origins)


def _choose(
    store: Store, candidates: Sequence[VersionEntry], held: _Held, error_if_tagged: bool
) -> tuple[list[VersionEntry], list[tuple[int, str]]]:
    old = [entry for entry in candidates if entry.version < held.latest]
    tagged = [entry.version for entry in old if entry.version in held.tags]
    if tagged and error_if_tagged:
        raise InputError(
            f"version {tagged[0]} of {store.uri} is old but tagged {held.tags[tagged[0]]!r}",
            uri=store.uri,
            version=tagged[0],
            cure="Delete the tag, or pass error_if_tagged_old_versions=False to keep tagged versions.",
        )
    kept = [(version, f"tagged {held.tags[version]}") for version in tagged]
    old = [entry for entry in old if entry.version not in held.tags]
    kept += [(entry.version, held.origins[entry.version]) for entry in old if entry.version in held.origins]
    old = [entry for entry in old if entry.version not in held.origins]
    base = _oldest_base(store)
    kept += [(entry.version, f"staged work was planned on version {base}") for entry in old if entry.version >= base]
    return [entry for entry in old if entry.version < base], kept


def _at_work(place: Store, now: float) -> list[str]:
    """Attempts and commits that may still be writing, or have staged what is wanted."""
    commits = [claim.commit for claim in list_claims(place) if claim.is_alive(now)]
    return [*(entry.attempt for entry in list_staged(place)), *commits]


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


def _needed(store: Store, main: Store, gone: set[int]) -> frozenset[str]:
    """Files that kept versions of any line hold on to (names are unique over all lines), and staged transactions."""
    found: set[str] = set()
    for place in places_of(main):
        versions = [entry.version for entry in list_versions(place) if place.uri != store.uri or entry.version not in gone]
        found.update(path for manifest in _load(place, versions) for path in referenced_files(manifest))
        for name in place.list_names(f"{naming.VERSIONS}/"):
            detached = naming.parse_detached_name(name)
            if detached is not None:
                found.update(referenced_files(load_manifest(place, detached)))
        found.update(_staged_paths(place))
    return frozenset(found)


def _staged_paths(store: Store) -> Iterable[str]:
    for entry in list_staged(store):
        if entry.staged is None:
            continue
        yield entry.staged.transaction_path
        transaction = read_transaction_file(store, entry.staged.transaction_path)
        if transaction is not None:
            yield from fragment_paths(named_fragments(transaction.operation))
