"""Remove old versions and the files only they need.

::

    versions 1 2 3 4 (1 tagged), older_than 14 days, 2 and 3 are older
    -> what 2 and 3 need and 1 and 4 do not goes, then the manifests of 2 and 3

Nothing that a kept version, a tag, another branch, a clone or a staged transaction needs is touched. Versions that a branch
or a clone began from stay, and versions since the one that staged work was planned on, because its commit has to judge them.
Identities that were committed in the versions that go get their decisions first, so that exactly-once survives. Files that
belong to no version go after seven days, or at once with `delete_unverified`, unless a staging attempt may still be at work
on them. Manifests go before files, so that every version that is listed is whole; a note of the files lets the next cleanup
finish what a killed one began.

One pass over the manifests of a branch: the old ones, and the files that kept and removed versions need.

::

    1,000 versions of 10,000 fragments      each manifest is read once and dropped again; equal fragments are checked once
    memory                                  the distinct files, and the few manifests that are being read

Nothing is written here; `cleanup` decides what to do with what was found.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain

from lance_core.commit import naming
from lance_core.commit.column_notes import notes_of
from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import OpenVersion, VersionEntry, list_versions, load_manifest, open_path, open_version
from lance_core.commit.references import fragment_paths, is_referenced
from lance_core.commit.transactions import read_transaction_file, transaction_of
from lance_core.dataset.refs.branches import MAIN, TREE, BranchRef, list_branches
from lance_core.dataset.refs.clones import cloned_versions, places_of, unnamed
from lance_core.dataset.refs.tags import TagRef, list_tags
from lance_core.errors import InputError, NotFoundError
from lance_core.format.declared import column_ids
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store, StoreEntry
from lance_core.io.threads import SideBySide
from lance_core.publish.attempts import list_staged
from lance_core.publish.folding import fold_again
from lance_core.publish.history import settle_history
from lance_core.publish.intent import list_intents
from lance_core.publish.model import StagedEntry
from lance_core.publish.table_id import require_known_records
from lance_core.table.carried import written_fragments
from lance_core.table.operations.reserve_fragments import ReserveFragments
from lance_core.table.transaction import Transaction

UNVERIFIED_SECONDS = 7 * 86_400
"""A file of no version may be the work of a writer that has not committed yet; younger than this it stays."""
DEFAULT_AGE = dt.timedelta(days=14)
_NOTES = f"{naming.PRIVATE}/cleanup"
_AT_ONCE = 5000
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
    newest: int = 0
    """The newest version when the plan was made."""
    history: History | None = field(default=None, repr=False, compare=False)
    """What the versions that go leave behind in the decisions, as read while planning."""

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
    main = store if root is None or root.uri == store.uri else root
    with SideBySide(helps=store.is_wide) as calls:
        opened, listed = calls.begin(load_manifest, store), calls.begin(list_versions, store)
        lines, registry = calls.begin(places_of, main), calls.begin(list_staged, store)
        tags, branches = calls.begin(list_tags, main), calls.begin(list_branches, main)
        clones = calls.begin(cloned_versions, store, storage_options)
        newest = opened()
        _refuse_branch(store, root, newest)
        require_known_records(store, newest)
        held = _held(newest, None if main is store else newest.branch, tags(), branches(), clones())
    entries, places = listed(), lines()
    staged = {store.uri: registry(), **{place.uri: list_staged(place) for place in places if place.uri != store.uri}}
    candidates = _candidates(store, entries, retain_versions, versions)
    limit = _limit(at, older_than, is_only_measure=retain_versions is None and versions is None)
    kept, going, history, reasons = (
        FileSet(),
        FileSet(),
        History(),
        _Reasons(store, held, _oldest_base(staged[store.uri])),
    )

    def is_old(opened: OpenVersion) -> bool:
        version = opened.manifest.version
        if version not in candidates or (limit is not None and opened.manifest.timestamp_ns >= limit):
            return False
        return reasons.goes(version)

    doomed = split_by_age(store, entries, is_old=is_old, kept=kept, going=going, history=history)
    reasons.refuse_tagged(error_if_tagged_old_versions)
    with SideBySide(helps=store.is_wide) as calls:
        # Versions are listed once more: what was staged when the registry was read may have been committed since.
        writers = calls.begin(lambda: [name for place in places for name in _at_work(place, at, staged[place.uri])])
        noted = calls.begin(lambda: [entry.path for entry in store.list(f"{_NOTES}/")])
        for place in places:
            seen = {entry.version for entry in entries} if place.uri == store.uri else set()
            _add_others(place, kept, staged[place.uri], seen)
        attempts, notes = writers(), tuple(noted())
    begun = frozenset(path for note in notes for path in bytes(store.get(note)).decode().splitlines())

    def goes(item: StoreEntry) -> bool:
        if is_referenced(item.path, kept.paths) or any(naming.is_of_attempt(item.path, attempt) for attempt in attempts):
            return False
        if item.path in begun or is_referenced(item.path, going.paths):
            return True
        return delete_unverified or item.modified < at - UNVERIFIED_SECONDS

    with SideBySide(helps=store.is_wide) as calls:
        strays = calls.begin(unnamed, store) if main is store else tuple
        found = each(store, _FOLDERS, lambda place, folder: [item for item in place.list(f"{folder}/") if goes(item)])
        unfinished = [item for item in store.list_unfinished("") if not item.path.startswith(f"{TREE}/")]
        files = [*chain.from_iterable(found), *(item for item in (*unfinished, *strays()) if goes(item))]
        files += notes_of(store, going.columns - kept.columns)
    return CleanupPlan(tuple(doomed), tuple(files), tuple(reasons.kept), notes, newest.version, history)


def run_cleanup(
    store: Store,
    plan: CleanupPlan,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    files_per_second: int | None = None,
) -> CleanupStats:
    """Carry a plan out: decisions, a note of the files, manifests, files. `progress(done, total)` counts files."""
    if files_per_second is not None and files_per_second < 1:
        raise InputError(f"delete_rate_limit must be at least 1, got {files_per_second}")
    at_once = _AT_ONCE if files_per_second is None else min(_AT_ONCE, files_per_second)
    load = None if plan.history is None else plan.history.load
    settle_history(store, [entry.version for entry in plan.versions], newest=plan.newest, load=load)
    notes = [*plan.notes]
    if plan.versions and plan.files:
        notes.append(f"{_NOTES}/{uuid.uuid4().hex}")
        store.put(notes[-1], "\n".join(item.path for item in plan.files).encode())
    delete_all(store, [entry.path for entry in plan.versions])
    paths = [item.path for item in plan.files]
    for start in range(0, len(paths), at_once):
        began = time.monotonic()
        delete_all(store, paths[start : start + at_once])
        progress(min(start + at_once, len(paths)), len(paths))
        if files_per_second is not None and start + at_once < len(paths):
            time.sleep(max(0.0, at_once / files_per_second - (time.monotonic() - began)))
    delete_all(store, notes)
    fold_again(store)
    return plan.stats


@dataclass(frozen=True, slots=True)
class _Held:
    """Versions of a line that must stay: the newest one, those with tags, and those that something began from."""

    latest: int
    tags: Mapping[int, str]
    origins: Mapping[int, str]


class _Reasons:
    """Why old versions stay: they are tagged, something began from them, or staged work was planned on them."""

    def __init__(self, store: Store, held: _Held, base: float) -> None:
        self._store = store
        self._held = held
        self._base = base
        self._tagged: list[int] = []
        self.kept: list[tuple[int, str]] = []

    def goes(self, version: int) -> bool:
        """Whether an old version may go; the reason is noted when it may not."""
        if version >= self._held.latest:
            return False
        if version in self._held.tags:
            self._tagged.append(version)
            self.kept.append((version, f"tagged {self._held.tags[version]}"))
        elif version in self._held.origins:
            self.kept.append((version, self._held.origins[version]))
        elif version >= self._base:
            self.kept.append((version, f"a staged transaction was planned on version {int(self._base)}"))
        else:
            return True
        return False

    def refuse_tagged(self, is_error: bool) -> None:
        """Raise InputError when an old version is tagged and that was to be an error."""
        if self._tagged and is_error:
            raise InputError(
                f"version {self._tagged[0]} of {self._store.uri} is old but tagged {self._held.tags[self._tagged[0]]!r}",
                uri=self._store.uri,
                version=self._tagged[0],
                cure="Delete the tag, or pass error_if_tagged_old_versions=False to keep tagged versions.",
            )


def _refuse_branch(store: Store, root: Store | None, newest: Manifest) -> None:
    if root is None and newest.branch is not None:
        raise InputError(
            f"{store.uri} is a branch, but tags belong to the main table", cure="Pass the store of the main table as root."
        )


def _held(
    newest: Manifest,
    branch: str | None,
    tags: Mapping[str, TagRef],
    branches: Mapping[str, BranchRef],
    clones: Mapping[int, str],
) -> _Held:
    """What must stay of the line `branch` (None: the main one)."""
    named = {tag.version: name for name, tag in tags.items() if (tag.branch or MAIN) == (branch or MAIN)}
    origins = {version: f"cloned by {uri}" for version, uri in clones.items()}
    for item in branches.values():
        if (item.parent_branch or MAIN) == (branch or MAIN):
            origins[item.parent_version] = f"branch {item.name} began here"
    return _Held(newest.version, named, origins)


def _at_work(place: Store, now: float, staged: Sequence[StagedEntry]) -> list[str]:
    """Attempts and commits that may still be writing, or have staged what is wanted."""
    return [*(entry.attempt for entry in staged), *(intent.commit for intent in list_intents(place))]


def _oldest_base(staged: Sequence[StagedEntry]) -> float:
    """The oldest version that staged work was planned on: its commit judges every version since, so they must be there."""
    return min((entry.read_version for entry in staged if entry.state in ("running", "finished")), default=float("inf"))


def _candidates(
    store: Store, entries: Sequence[VersionEntry], retain_versions: int | None, versions: Sequence[int] | None
) -> frozenset[int]:
    """Versions that are old by every measure that was given, but age."""
    chosen = {entry.version for entry in entries}
    if versions is not None:
        unknown = sorted(set(versions) - chosen)
        if unknown:
            raise InputError(f"{store.uri} has no version {unknown[0]}", uri=store.uri, version=unknown[0])
        chosen &= set(versions)
    if retain_versions is not None:
        if retain_versions < 1:
            raise InputError(f"retain_versions must be at least 1, got {retain_versions}")
        chosen -= {entry.version for entry in entries[-retain_versions:]}
    return frozenset(chosen)


def _limit(now: float, older_than: dt.timedelta | None, *, is_only_measure: bool) -> float | None:
    """Versions before this moment (nanoseconds since the epoch) are old; None when age is no measure."""
    age = DEFAULT_AGE if older_than is None and is_only_measure else older_than
    return None if age is None else (now - age.total_seconds()) * 1e9


def _add_others(place: Store, kept: FileSet, staged: Sequence[StagedEntry], seen: Set[int]) -> None:
    """Files that a line needs besides those of the versions seen already (names are unique over all lines)."""
    with SideBySide(helps=place.is_wide) as calls:
        names = calls.begin(place.list_names, f"{naming.VERSIONS}/")
        for _, opened in open_each(place, [entry for entry in list_versions(place) if entry.version not in seen]):
            if opened is not None:
                kept.add(opened)
    for name in names():
        detached = naming.parse_detached_name(name)
        if detached is not None:
            kept.add(open_version(place, detached))
    kept.paths.update(_staged_paths(place, staged))


def _staged_paths(store: Store, staged: Sequence[StagedEntry]) -> Iterable[str]:
    transactions = [entry.staged.transaction_path for entry in staged if entry.staged is not None]
    yield from transactions
    for transaction in each(store, transactions, read_transaction_file):
        if transaction is not None:
            yield from fragment_paths(written_fragments(transaction.operation))


_MANIFESTS_AHEAD = 64
_BYTES_AHEAD = 64 << 20
"""Manifests that are read at once: so many, or so many bytes of them."""
_SILENT = Transaction(0, "", ReserveFragments(0))
"""Stands for a transaction that carries no identity: of those nothing more is kept."""


class FileSet:
    """The files that some versions need. A fragment of many versions is checked once."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.columns: set[str] = set()
        """Ids of declared columns."""
        self._known: dict[bytes, None] = {}

    def add(self, opened: OpenVersion) -> None:
        """Take in the files of a version: see `commit.references.referenced_files`."""
        manifest = opened.manifest
        deque(FragmentList.of(manifest.fragments).each(self._add, self._known), maxlen=0)
        self.paths.update(f"{naming.INDICES}/{index.uuid}/" for index in manifest.indices)
        self.columns.update(column_ids(manifest.schema))
        if manifest.transaction_file:
            self.paths.add(naming.transaction_path(manifest.transaction_file))

    def _add(self, fragment: Fragment) -> None:
        self.paths.update(fragment_paths((fragment,)))


@dataclass
class History:
    """What the versions that go have to leave behind: their transactions, as far as those carry identities."""

    carrying: dict[int, Transaction] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)

    def note(self, store: Store, opened: OpenVersion) -> None:
        """Look at the transaction of a version."""
        version = opened.manifest.version
        transaction = transaction_of(store, opened)
        if transaction is None:
            self.unreadable.add(version)
        elif version == 1 or identities_of(transaction):  # the first one says which table it is
            self.carrying[version] = transaction

    def load(self, store: Store, version: int) -> Transaction | None:
        """As the log has it, without reading it again."""
        return None if version in self.unreadable else self.carrying.get(version, _SILENT)


def split_by_age(
    store: Store,
    entries: Sequence[VersionEntry],
    *,
    is_old: Callable[[OpenVersion], bool],
    kept: FileSet,
    going: FileSet,
    history: History,
) -> list[VersionEntry]:
    """The entries that are old. Files of the others are added to `kept`, those of the old ones to `going`."""
    old = []
    for entry, opened in open_each(store, entries):
        if opened is None:
            continue  # somebody else removed it in the meantime
        if is_old(opened):
            old.append(entry)
            going.add(opened)
            history.note(store, opened)
        else:
            kept.add(opened)
    return old


def open_each(store: Store, entries: Sequence[VersionEntry]) -> Iterator[tuple[VersionEntry, OpenVersion | None]]:
    """Every version, opened once, in order; None for those that are gone. Some are read ahead on a store that is far."""
    if store.is_local or in_io_pool() or len(entries) < 2:
        yield from ((entry, _open(store, entry)) for entry in entries)
        return
    pending: deque[tuple[VersionEntry, Future[OpenVersion | None]]] = deque()
    num_bytes = 0
    for entry in entries:
        pending.append((entry, io_pool(store.uri).submit(_open, store, entry)))
        num_bytes += entry.size
        while len(pending) >= _MANIFESTS_AHEAD or (num_bytes > _BYTES_AHEAD and len(pending) > 1):
            num_bytes -= pending[0][0].size
            yield _done(pending)
    while pending:
        yield _done(pending)


def _done(
    pending: deque[tuple[VersionEntry, Future[OpenVersion | None]]],
) -> tuple[VersionEntry, OpenVersion | None]:
    entry, future = pending.popleft()
    return entry, future.result()


def _open(store: Store, entry: VersionEntry) -> OpenVersion | None:
    try:
        return open_path(store, entry.version, entry.path)
    except NotFoundError:
        return None
