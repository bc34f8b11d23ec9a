"""The one procedure that deletes the files of an attempt.

::

    1  fence     {identity}.{attempt}.fence.json "withdraw", unless a commit was there first with "publish"
    2  look      ledger and log: has the identity landed?  which files do the versions since then name?
    3  doubt     fenced for publishing and not landed: a put may still be on its way.  Either nothing is touched, or a fence
                 version is published, so that every such put has lost; then look again
    4  adopters  whose files a living attempt adopts stays but for its finished.json (see `adoption`)
    5  delete    finished.json, files that no version names, the other records; the fence goes last
    6  adopted   those that it had adopted itself

Each step is right however long the process sleeps before it: nothing is concluded from a record that is not there, and no
clock has a say. Killed anywhere, the same call again goes on.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lance_core.commit.identities import withdrawal_property
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import find_latest_version
from lance_core.commit.references import data_paths, is_referenced
from lance_core.errors import CommitStateUnknownError, LanceError, UnsupportedRecordError
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.record_types import WITHDRAW, Fence, GroupFence
from lance_core.publish.registry import attempts as registry
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.fences import (
    fence_for_withdrawal,
    note_fence_version,
    read_fence,
    remember_withdrawal,
    remove_further,
)
from lance_core.publish.registry.group_fences import keep_apart
from lance_core.publish.registry.landings import find_landed_many
from lance_core.publish.registry.ledger import landing_of
from lance_core.publish.staging.in_use import Owners, complete_transaction, files_in_use
from lance_core.publish.staging.marks import finished_meanwhile, remove_mark, take_back
from lance_core.publish.staging.refusals import has_landed, nobody_knows
from lance_core.table.operations import ReserveFragments
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

Doubt = Literal["fence", "leave", "refuse"]
"""What to do with an attempt that a commit was about to publish and that has not landed: publish a fence version and go on,
touch nothing, or raise CommitStateUnknownError."""


ITSELF = "itself"
"""Who gives an attempt up that is the caller's own."""

RE_EXECUTION = "re-execution"
"""A commit that stages the work again."""

Key = tuple[str, str]
"""Identity and attempt."""

_KEYS_OF_A_FENCE = 10_000
"""So many attempts a fence version withdraws at most: its transaction must fit into the manifest."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Its result: `files` that went; `refusals` of attempts that have landed or whose outcome is unknown; `left`:
    attempts that stay because a put may still be on its way, or a living attempt adopts their files; `adoptable`: those
    that nobody had begun to remove before."""

    files: tuple[str, ...] = ()
    refusals: Mapping[Key, LanceError] = field(default_factory=dict)
    left: tuple[Key, ...] = ()
    adoptable: frozenset[Key] = frozenset()


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

    IncompatibleConflictError: it has landed. CommitStateUnknownError: it is unknown.
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
    spared = finished_meanwhile(store, keys) if unfinished_only and not dry_run else []
    keys = [key for key in keys if key not in spared]
    if not keys:
        return Removal(left=tuple(spared))
    work = _Removing(store, by=by, landed_too=landed_too, own_commit=own_commit, dry_run=dry_run)
    work.is_marked, work.is_known = unfinished_only, not never_finished
    try:
        work.fence(keys)
        adoptable = work.adoptable()
        work.look(certain=certain)
        open_ends = work.in_doubt()
        if open_ends and doubt != "leave" and not dry_run:
            work.publish_fence(open_ends, doubt=doubt)
            work.look(certain=certain)
            open_ends = work.in_doubt()
        removal = work.remove(left=open_ends)
    except UnsupportedRecordError:
        work.take_back()
        raise
    freed = work.freed()
    if freed and not dry_run:
        more = remove_attempts(store, freed, by=by, landed_too=landed_too, own_commit=own_commit)
        removal = replace(removal, files=(*removal.files, *more.files))
    return replace(removal, left=(*removal.left, *spared), adoptable=adoptable)


def decide_against(store: Store, key: Key, *, by: str) -> bool:
    """Raise the fence of an unfinished attempt and remove nothing. Whether this call decided: not when it has finished, or
    somebody else was first."""
    if finished_meanwhile(store, [key]):
        return False
    work = _Removing(store, by=by, landed_too=False, own_commit=None, dry_run=False)
    work.is_marked = True
    work.fence([key])
    return key in work.adoptable()


@dataclass
class _Known:
    """What is known of one attempt."""

    fence: Fence
    is_new: bool
    staged: StagedTransaction | None
    since: int
    is_unfinished: bool
    adopts: tuple[str, ...] = ()
    landed: int | None = None
    doubt: CommitStateUnknownError | None = None
    unsupported: UnsupportedRecordError | None = None


class _Removing:
    """Some attempts on their way out."""

    def __init__(self, store: Store, *, by: str, landed_too: bool, own_commit: str | None, dry_run: bool) -> None:
        self._store = store
        self._by = by
        self._landed_too = landed_too
        self._own_commit = own_commit
        self._dry_run = dry_run
        self._known: dict[Key, _Known] = {}
        self._gone: Mapping[Key, _Known] = {}
        self._claims = list_claims(store)
        self._keys: Sequence[Key] = ()
        self._is_deleting = False
        self.is_marked, self.is_known = False, True

    def fence(self, keys: Sequence[Key]) -> None:
        """Raise the flags, then read what is recorded."""
        self._keys = keys
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
        for item in known:
            if item.unsupported is not None:
                raise item.unsupported
        self._claims = list_claims(self._store)

    def take_back(self) -> None:
        """The fences and marks that this call has put, unless it has removed something behind them."""
        if not self._is_deleting:
            mine = [key for key, known in self._known.items() if known.is_new]
            each(self._store, mine, lambda store, key: take_back(store, *key))
            marked = [key for key in self._keys if self.is_marked and key not in mine]
            each(self._store, marked, lambda store, key: remove_mark(store, *key))

    def _fence_one(self, store: Store, key: Key, *, begun: Attempt | None, decided: GroupFence | None) -> _Known:
        identity, attempt = key
        fence, is_new = Fence(WITHDRAW), False
        try:
            if self._dry_run:
                fence = read_fence(store, *key) or fence
            else:
                fence, is_new = fence_for_withdrawal(store, identity, attempt, by=self._by, decided=decided)
                registry.read_mark(store, *key)  # what a newer release marked is its own to remove
            staged = registry.find_finished(store, identity)
        except UnsupportedRecordError as error:
            return _Known(fence, is_new, None, 0, False, unsupported=error)
        staged = staged if staged is not None and staged.attempt == attempt else None
        versions = [item.read_version for item in (staged, begun) if item is not None]
        is_unfinished = staged is None and begun is not None
        adopts = (*(() if begun is None else begun.adopts), *(() if staged is None else staged.adopts))
        return _Known(fence, is_new, staged, min(versions, default=0), is_unfinished, adopts)

    def adoptable(self) -> frozenset[Key]:
        """Those that nobody has begun to remove: this call raised the fence, or a commit had decided to publish it."""
        return frozenset(key for key, known in self._known.items() if known.is_new or not known.fence.withdraws)

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
        if not self._dry_run:
            for key, known in doomed.items():
                if known.fence.version:
                    note_fence_version(self._store, *key, by=self._by, version=known.fence.version)
        # Behind the fence: whoever adopts one of them later finds it. Before the log is read: an adopter that is not on
        # record any more has landed, and then a version names what it adopted.
        adopted = registry.adopted_by_others(self._store, [*doomed])
        left, doomed = [*left, *adopted], {key: known for key, known in doomed.items() if key not in adopted}
        self._gone = doomed
        wanted = self._paths(doomed)
        needed = self._in_use(doomed) if wanted else frozenset()
        paths = [path for path in wanted if not is_referenced(path, needed)]
        if self._dry_run:
            return Removal(tuple(paths), refusals, tuple(left))
        self._is_deleting = True
        each(self._store, [*doomed, *adopted], lambda store, key: registry.drop_finished(store, *key))
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

    def freed(self) -> list[Key]:
        """What those that are gone had adopted, unless it may still be published by itself."""
        keys = dict.fromkeys((key[0], item) for key, known in self._gone.items() for item in known.adopts)
        landed = {key[0] for key, known in self._gone.items() if known.landed is not None}

        def is_over(store: Store, key: Key) -> bool:
            fence = read_fence(store, *key)
            return key[0] in landed or (fence is not None and fence.withdraws)

        keys_left = [key for key in keys if key not in self._known]
        over = each(self._store, keys_left, is_over)
        return [key for key, is_free in zip(keys_left, over, strict=True) if is_free]

    def _refusal(self, key: Key) -> LanceError | None:
        identity, attempt = key
        known = self._known[key]
        if known.doubt is not None:
            return known.doubt
        if known.landed is not None:
            if self._landed_too or not _is_landing_of(self._store, identity, attempt):
                return None
            if known.is_new:
                take_back(self._store, identity, attempt)
            return has_landed(self._store, identity, known.landed)
        return None

    def _paths(self, doomed: Mapping[Key, _Known]) -> list[str]:
        """What they wrote. One that finished knows its files; of any other they are found by their names."""
        found, unknown = [], []
        for key, known in doomed.items():
            transaction = None if known.staged is None else complete_transaction(self._store, known.staged)
            if known.staged is None or transaction is None:
                unknown.append(key[1])
            else:
                found += [*data_paths(transaction, writers=key[1:]), known.staged.transaction_path]
        if unknown:
            owners = Owners(unknown)
            found += [path for path in registry.attempt_files(self._store) if owners.has(path)]
        return found

    def _in_use(self, doomed: Mapping[Key, _Known]) -> frozenset[str]:
        owners = Owners(attempt for _, attempt in doomed)
        return files_in_use(self._store, owners, since=min(known.since for known in doomed.values()))


def _group_of(store: Store, key: Key, begun: Attempt | None) -> str:
    """The group of an attempt, which it keeps; "" when nothing is left that tells, so that no commit can begin with it."""
    if begun is not None:
        return begun.group
    staged = registry.find_finished(store, key[0])
    return staged.group if staged is not None and staged.attempt == key[1] else ""


def _is_landing_of(store: Store, identity: str, attempt: str) -> bool:
    landing = landing_of(store, identity)
    return landing is None or landing.attempt in ("", attempt)
