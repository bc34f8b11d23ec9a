"""The one procedure that deletes the files of an attempt.

::

    1  fence     {identity}.{attempt}.fence.json "withdraw", unless a commit was there first with "publish"
    2  look      ledger and log: has the identity landed?  which files do the versions since then name?
    3  doubt     fenced for publishing and not landed: a put may still be on its way.  Either nothing is touched, or a fence
                 version is published, so that every such put has lost; then look again
    4  delete    finished.json, files that no version names, the other records; the fence goes last

Each step is right however long the process sleeps before it: nothing is concluded from a record that is not there, and no
clock has a say. Killed anywhere, the same call again goes on.
"""

from __future__ import annotations

import logging
import time
import uuid as uuids
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lance_core.arrow.extension import BLOB_V2
from lance_core.commit import naming
from lance_core.commit.bulk import delete_all
from lance_core.commit.identities import withdrawal_property
from lance_core.commit.log.look import branch_stores, detached_versions, look_since
from lance_core.commit.log.loop import commit_transaction
from lance_core.commit.log.manifests import find_latest_version, load_manifest
from lance_core.commit.log.transactions import read_transaction_file
from lance_core.commit.model import Attempt, StagedTransaction
from lance_core.commit.record_types import WITHDRAW, Fence, GroupFence
from lance_core.commit.records import FORMAT, each, write_record
from lance_core.commit.references import data_paths, is_referenced, referenced_files
from lance_core.commit.registry import attempts as registry
from lance_core.commit.registry.claims import list_claims
from lance_core.commit.registry.fences import (
    fence_for_withdrawal,
    note_fence_version,
    read_fence,
    remember_withdrawal,
    remove_fence,
    remove_further,
)
from lance_core.commit.registry.group_fences import keep_apart
from lance_core.commit.registry.landings import find_landed_many
from lance_core.commit.registry.ledger import landing_of
from lance_core.commit.staging.refusals import claimed, has_landed, nobody_knows
from lance_core.errors import CommitStateUnknownError, LanceError, NotFoundError
from lance_core.io.store import Store
from lance_core.table.carried import new_indices, new_schema
from lance_core.table.operations import ReserveFragments
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

Doubt = Literal["fence", "leave", "refuse"]
"""What to do with an attempt that a commit was about to publish and that has not landed: publish a fence version and go on,
touch nothing, or raise CommitStateUnknownError."""


ITSELF = "itself"
"""Who gives an attempt up that is the caller's own."""

Key = tuple[str, str]
"""Identity and attempt."""

_KEYS_OF_A_FENCE = 10_000
"""So many attempts a fence version withdraws at most: its transaction must fit into the manifest."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Its result: `files` that went; `refusals` of attempts that have landed or whose outcome is unknown; `left`:
    attempts that were not touched because a put may still be on its way."""

    files: tuple[str, ...] = ()
    refusals: Mapping[Key, LanceError] = field(default_factory=dict)
    left: tuple[Key, ...] = ()


def remove_attempt(
    store: Store,
    identity: str,
    attempt: str,
    *,
    by: str,
    doubt: Doubt = "leave",
    landed_too: bool = False,
    certain: bool = False,
    own_commit: str | None = None,
    unfinished_only: bool = False,
    never_finished: bool = False,
) -> Removal:
    """`remove_attempts` of one, whose refusal is raised.

    IncompatibleConflictError: it has landed. CommitStateUnknownError: it is unknown, or a commit of a release before this
    one is at it.
    """
    removal = remove_attempts(
        store,
        [(identity, attempt)],
        by=by,
        doubt=doubt,
        landed_too=landed_too,
        certain=certain,
        own_commit=own_commit,
        unfinished_only=unfinished_only,
        never_finished=never_finished,
    )
    for error in removal.refusals.values():
        raise error
    return removal


def remove_attempts(
    store: Store,
    keys: Sequence[Key],
    *,
    by: str,
    doubt: Doubt = "leave",
    landed_too: bool = False,
    certain: bool = False,
    own_commit: str | None = None,
    unfinished_only: bool = False,
    never_finished: bool = False,
    dry_run: bool = False,
) -> Removal:
    """Withdraw attempts and remove their files, except those that a version references.

    `landed_too`: clear away what a landed attempt left; otherwise it is refused. `certain=True` is a person's word that
    they have not landed, where the log cannot tell. `own_commit` names the caller's own commit, which says nothing about a
    landing. `unfinished_only`: one that finishes before its fence is raised is wanted, and left. `never_finished`: the
    caller's own, which have not begun to finish, so that no commit can know of them. `dry_run` decides nothing and removes
    nothing.
    """
    spared = _finished_meanwhile(store, keys) if unfinished_only and not dry_run else []
    keys = [key for key in keys if key not in spared]
    if not keys:
        return Removal(left=tuple(spared))
    work = _Removing(store, by=by, landed_too=landed_too, own_commit=own_commit, dry_run=dry_run)
    work.is_marked, work.is_known = unfinished_only, not never_finished
    work.fence(keys)
    work.look(certain=certain)
    open_ends = work.in_doubt()
    if open_ends and doubt != "leave" and not dry_run:
        work.publish_fence(open_ends, doubt=doubt)
        work.look(certain=certain)
        open_ends = work.in_doubt()
    removal = work.remove(left=open_ends)
    return replace(removal, left=(*removal.left, *spared))


def _finished_meanwhile(store: Store, keys: Sequence[Key]) -> list[Key]:
    """Those that turn out to have finished. The mark goes up before the look, and an attempt looks for it after it has
    finished: so at least one side sees the other. Nobody deletes for the mark, so it may be taken down again."""

    def look(store: Store, key: Key) -> bool:
        _mark(store, *key)
        finished = registry.find_finished(store, key[0])
        if finished is None or finished.attempt != key[1]:
            return False
        store.delete(registry.record_path(*key, registry.WITHDRAWN))
        return True

    return [key for key, is_finished in zip(keys, each(store, keys, look), strict=True) if is_finished]


@dataclass
class _Known:
    """What is known of one attempt."""

    fence: Fence
    is_new: bool
    staged: StagedTransaction | None
    since: int
    is_unfinished: bool
    landed: int | None = None
    doubt: CommitStateUnknownError | None = None


class _Removing:
    """Some attempts on their way out."""

    def __init__(self, store: Store, *, by: str, landed_too: bool, own_commit: str | None, dry_run: bool) -> None:
        self._store = store
        self._by = by
        self._landed_too = landed_too
        self._own_commit = own_commit
        self._dry_run = dry_run
        self._known: dict[Key, _Known] = {}
        self._claims = list_claims(store)
        self.is_marked, self.is_known = False, True

    def fence(self, keys: Sequence[Key]) -> None:
        """Raise the flags, then read what is recorded."""
        begun = dict(zip(keys, each(self._store, keys, lambda store, key: registry.read_started(store, *key)), strict=True))
        named = dict(zip(keys, each(self._store, keys, lambda store, key: _group_of(store, key, begun[key])), strict=True))
        # First of all: no commit may decide about an attempt by its group once its own fence is up.
        decided: dict[str, GroupFence] = {}
        if self.is_known and not self._dry_run and any(named.values()):
            decided = keep_apart(self._store, named.values(), newest=find_latest_version(self._store) or 0)
        known = each(
            self._store,
            keys,
            lambda store, key: self._fence_one(store, key, begun=begun[key], decided=decided.get(named[key])),
        )
        self._known = dict(zip(keys, known, strict=True))
        self._claims = list_claims(self._store)

    def _fence_one(self, store: Store, key: Key, *, begun: Attempt | None, decided: GroupFence | None) -> _Known:
        identity, attempt = key
        if self._dry_run:
            fence, is_new = read_fence(store, *key) or Fence(WITHDRAW), False
        else:
            fence, is_new = fence_for_withdrawal(store, identity, attempt, by=self._by, decided=decided)
            if fence.withdraws and not self.is_marked:
                _mark(store, *key)
        staged = registry.find_finished(store, identity)
        staged = staged if staged is not None and staged.attempt == attempt else None
        versions = [item.read_version for item in (staged, begun) if item is not None]
        return _Known(fence, is_new, staged, min(versions, default=0), staged is None and begun is not None)

    def look(self, *, certain: bool) -> None:
        """Ask ledger and log which identities have landed."""
        since: dict[str, int] = {}
        for (identity, _), known in self._known.items():
            since[identity] = min(known.since, since.get(identity, known.since))
        unknown: dict[str, CommitStateUnknownError] = {}
        found = find_landed_many(self._store, since, own_commit=self._own_commit, unknown=unknown)
        for (identity, _), known in self._known.items():
            known.landed, known.doubt = found[identity], None if certain else unknown.get(identity)

    def in_doubt(self) -> list[Key]:
        """Attempts that a commit was about to publish and that have not landed."""
        return [
            key
            for key, known in self._known.items()
            if known.landed is None and known.doubt is None and not known.fence.withdraws
        ]

    def publish_fence(self, keys: Sequence[Key], *, doubt: Doubt) -> None:
        """A version that changes no row and withdraws these attempts: commits that go on find it and refuse."""
        latest = find_latest_version(self._store)
        if doubt == "refuse" or latest is None:
            for key in keys:
                self._known[key].doubt = nobody_knows(self._store, *key)
            return
        for begin in range(0, len(keys), _KEYS_OF_A_FENCE):
            self._publish_fence(latest, keys[begin : begin + _KEYS_OF_A_FENCE])

    def _publish_fence(self, latest: int, keys: Sequence[Key]) -> None:
        properties = dict(withdrawal_property(*key) for key in keys)
        transaction = Transaction(latest, str(uuids.uuid4()), ReserveFragments(0), properties=properties)
        # It writes no file, so it needs no claim, and nobody has to know when its put has ended.
        version = commit_transaction(self._store, transaction).version
        log.info("%s: version %d withdraws %s", self._store.uri, version, ", ".join(attempt for _, attempt in keys))
        for key in keys:
            self._known[key].fence = Fence(WITHDRAW, by=self._by, version=version)

    def remove(self, *, left: Sequence[Key]) -> Removal:
        """The deletions."""
        refusals = {key: error for key in self._known if key not in left and (error := self._refusal(key)) is not None}
        doomed = {key: known for key, known in self._known.items() if key not in left and key not in refusals}
        wanted = self._paths(doomed)
        needed = self._in_use(doomed) if wanted else frozenset()
        paths = [path for path in wanted if not is_referenced(path, needed)]
        if self._dry_run:
            return Removal(tuple(paths), refusals, tuple(left))
        for key, known in doomed.items():
            if known.fence.version:
                note_fence_version(self._store, *key, by=self._by, version=known.fence.version)
        each(self._store, [*doomed], lambda store, key: registry.drop_finished(store, *key))
        delete_all(self._store, paths)
        witnessed = {identity for claim in self._claims for identity in claim.identities}

        def may_come_back(key: Key) -> bool:
            is_witness = key[0] in witnessed and doomed[key].landed is None
            # A zombie of an attempt that never finished may still write, unless it is the one who ends it.
            return is_witness or (doomed[key].is_unfinished and doomed[key].landed is None and self._by != ITSELF)

        each(self._store, [*filter(may_come_back, doomed)], lambda store, key: remember_withdrawal(store, *key))
        registry.forget_attempts(self._store, [*doomed])
        published = [key for key, known in doomed.items() if not known.fence.withdraws]
        each(self._store, published, lambda store, key: remove_further(store, *key))
        return Removal(tuple(paths), refusals, tuple(left))

    def _refusal(self, key: Key) -> LanceError | None:
        identity, attempt = key
        known = self._known[key]
        if known.doubt is not None:
            return known.doubt
        if known.landed is not None:
            if self._landed_too or not _is_landing_of(self._store, identity, attempt):
                return None
            if known.is_new:
                _take_back(self._store, identity, attempt)
            return has_landed(self._store, identity, known.landed)
        now = time.time()
        for claim in self._claims:
            if claim.is_former and identity in claim.identities and claim.commit != self._own_commit and claim.is_alive(now):
                return claimed(self._store, identity, claim.commit)
        return None

    def _paths(self, doomed: Mapping[Key, _Known]) -> list[str]:
        """What they wrote. One that finished knows its files; of any other they are found by their names."""
        found, unknown = [], []
        for key, known in doomed.items():
            transaction = None if known.staged is None else _complete_transaction(self._store, known.staged)
            if known.staged is None or transaction is None:
                unknown.append(key[1])
            else:
                found += [*data_paths(transaction, attempt=key[1]), known.staged.transaction_path]
        if unknown:
            owners = Owners(unknown)
            found += [path for path in registry.attempt_files(self._store) if owners.has(path)]
        return found

    def _in_use(self, doomed: Mapping[Key, _Known]) -> frozenset[str]:
        owners = Owners(attempt for _, attempt in doomed)
        return files_in_use(self._store, owners, since=min(known.since for known in doomed.values()))


class Owners:
    """Attempts (or commits) whose files are looked for by name."""

    def __init__(self, attempts: Iterable[str]) -> None:
        self._prefixes = {attempt[:length] for attempt in attempts for length in (10, 12, 16)}

    def has(self, path: str) -> bool:
        """Whether one of them wrote this file."""
        return naming.attempt_prefix(path) in self._prefixes


def remove_unused(store: Store, attempt: str, *, keep: Collection[str]) -> list[str]:
    """Files of the caller's own attempt that its transaction does not name, before it is finished: no version can."""
    paths = [path for path in registry.attempt_files(store) if naming.is_of_attempt(path, attempt) and path not in keep]
    delete_all(store, paths)
    return paths


def _group_of(store: Store, key: Key, begun: Attempt | None) -> str:
    """The group of an attempt, which it keeps; "" when nothing is left that tells, so that no commit can begin with it."""
    if begun is not None:
        return begun.group
    staged = registry.find_finished(store, key[0])
    return staged.group if staged is not None and staged.attempt == key[1] else ""


def files_in_use(store: Store, owners: Owners, *, since: int, transactions: bool = False) -> frozenset[str]:
    """Files of these that a version names: those after `since` of this line, all of its branches, detached ones; with
    `transactions` the transaction files of all."""
    found: set[str] = set()
    for place, after in [(store, since), *((branch, 0) for branch in branch_stores(store))]:
        for item in (*look_since(place, after).opened, *detached_versions(place)):
            # Of an index the whole folder is named, by a path that ends in "/".
            found.update(path for path in referenced_files(item.manifest) if owners.has(path))
            if transactions and item.manifest.transaction_file:
                found.add(naming.transaction_path(item.manifest.transaction_file))
    return frozenset(found)


def _mark(store: Store, identity: str, attempt: str) -> None:
    """Releases before this one look for the mark, not for the fence."""
    path = registry.record_path(identity, attempt, registry.WITHDRAWN)
    # Not forced to the disk, as a fence: when this machine dies, whoever it protects from dies as well.
    write_record(store, path, {"format": FORMAT, "attempt": attempt, "since": time.time()}, durable=False)


def _take_back(store: Store, identity: str, attempt: str) -> None:
    """The fence that this very call raised over an attempt whose landing had removed the one before."""
    store.delete(registry.record_path(identity, attempt, registry.WITHDRAWN))
    remove_fence(store, identity, attempt)


def _is_landing_of(store: Store, identity: str, attempt: str) -> bool:
    landing = landing_of(store, identity)
    return landing is None or landing.attempt in ("", attempt)


def _complete_transaction(store: Store, staged: StagedTransaction) -> Transaction | None:
    """The staged transaction, when it names every file that was written for it; blobs beside data files may lack."""
    transaction = None if staged.refreshed else read_transaction_file(store, staged.transaction_path)
    if transaction is None:
        return None
    operation = transaction.operation
    if any(not index.files for index in new_indices(operation)):
        return None
    schema = new_schema(operation)
    if schema is None:
        try:
            schema = load_manifest(store).schema
        except NotFoundError:
            return None
    return None if any(item.extension_name == BLOB_V2 for item in schema.fields) else transaction
