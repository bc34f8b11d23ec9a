"""The one procedure that deletes the files of an attempt.

::

    not finished     `aborted` is the next decision of its identity
    finished         intent, a version that says so, the log since the read version, `aborted`, and a look behind it
    then             who adopts its files?  which files does any version name?  what neither does goes; its record last
    adopted          those that it had adopted itself, unless they may still be published

Each step is right however long the process sleeps before it: nothing is concluded from a record that is not there, and no
clock has a say. Killed anywhere, the same call again goes on.
"""

from __future__ import annotations

import logging
import time
import uuid as uuids
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lance_core.arrow.logical import BLOB_V2
from lance_core.commit import naming
from lance_core.commit.history import branch_stores, detached_versions, look_since
from lance_core.commit.identities import abort_property
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import find_latest_version, load_manifest, open_newest
from lance_core.commit.references import data_paths, is_referenced, referenced_files
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import (
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
)
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.attempts import Key, adopted_by_others, attempt_files, read_lease, record_path
from lance_core.publish.decisions import DecisionState, decide, look, look_many, read_decision
from lance_core.publish.history import LogSearch, search
from lance_core.publish.intent import ABORTS, Intent, list_intents, named_by, put_intent, remove_intent
from lance_core.publish.model import Attempt, StagedTransaction, staged_transaction_path
from lance_core.publish.staged_properties import facts_of, staged_writers
from lance_core.publish.table_id import require_known_records
from lance_core.table.carried import new_indices, new_schema
from lance_core.table.operations import ReserveFragments
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

ITSELF = "itself"
"""Who gives an attempt up that is the caller's own."""
LATE_SECONDS = 7 * 24 * 3600.0
"""So long the record of an aborted attempt stays, for files that a suspended writer writes late. Only tidiness depends on
it."""
_MAX_ROUNDS = 20
_MOST_AT_ONCE = 10_000
"""So many attempts one version aborts at most: its transaction must fit into the manifest."""


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """`by`: who asks. `finished`: what to do with an attempt that has finished: "abort" it by a version, or "leave" it.
    `committed_too`: clear away what an attempt of committed work left; otherwise it is refused. `certain`: a person's word
    that it was not committed, where the log cannot tell. `dry_run` decides nothing and removes nothing. `now` (seconds since
    the epoch) decides which records of aborted attempts have stayed long enough; None: the clock of this machine."""

    by: str
    finished: str = "leave"
    committed_too: bool = False
    certain: bool = False
    dry_run: bool = False
    now: float | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """The result: `files` that went; `refusals` of attempts that were committed, or of which that is unknown; `left`:
    attempts that stay, because they are finished, superseded or adopted."""

    files: tuple[str, ...] = ()
    refusals: Mapping[Key, LanceError] = field(default_factory=dict)
    left: tuple[Key, ...] = ()


def abort_attempt(store: Store, identity: str, attempt: str, *, certain: bool = False, by: str = "abort") -> list[str]:
    """Abort an attempt: every file whose name carries it is removed, unless a version needs it. Returns the paths removed.

    Doing it again is harmless. Raises IncompatibleConflictError when the work was committed, and CommitStateUnknownError
    when that is unknown; nothing is removed then.
    """
    newest = open_newest(store)
    require_known_records(store, None if newest is None else newest.manifest)
    return [*remove_attempt(store, (identity, attempt), AbortRequest(by, finished="abort", certain=certain)).files]


def remove_attempt(store: Store, key: Key, request: AbortRequest) -> Removal:
    """`remove_attempts` of one, whose refusal is raised."""
    removal = remove_attempts(store, [key], request)
    for error in removal.refusals.values():
        raise error
    return removal


def remove_attempts(store: Store, keys: Sequence[Key], request: AbortRequest) -> Removal:
    """Abort attempts and remove their files, except those that a version references or a living attempt adopts."""
    keys = [*dict.fromkeys(keys)]
    if not keys:
        return Removal()
    work = _Aborting(store, request)
    work.decide(keys)
    removal = work.remove()
    freed = work.freed()
    if freed and not request.dry_run:
        more = remove_attempts(store, freed, replace(request, finished="leave", committed_too=True))
        removal = replace(removal, files=(*removal.files, *more.files))
    return removal


def decide_against(store: Store, key: Key, *, by: str) -> bool:
    """Abort an unfinished attempt and remove nothing. Whether `by` has decided: not when it has finished, or another was
    first."""
    return _decide_unfinished(store, key, by=by).aborted.get(key[1]) == by


def _decide_unfinished(store: Store, key: Key, *, by: str) -> DecisionState:
    """Decide against an attempt unless it has finished, was superseded, or is decided; read once more behind the put."""
    identity, attempt = key

    def choose(state: DecisionState) -> DecisionState | None:
        return state.abort(attempt, by=by) if state.is_open(attempt) else None

    state = decide(store, identity, choose)
    for _ in range(3):
        behind = look(store, identity, start=max(1, state.number))
        if behind.number >= state.number and choose(behind) is None:
            return behind  # the number that was put is not void
        state = decide(store, identity, choose)
    return state


class _Aborting:
    """Some attempts on their way out."""

    def __init__(self, store: Store, request: AbortRequest) -> None:
        self._store, self._request = store, request
        self._states: dict[str, DecisionState] = {}
        self._begun: dict[Key, tuple[Attempt, float] | None] = {}
        self._staged: dict[Key, StagedTransaction] = {}
        self._adopted: dict[Key, tuple[str, ...]] = {}
        self._doomed: list[Key] = []
        self._gone: list[Key] = []
        self._left: list[Key] = []
        self._refusals: dict[Key, LanceError] = {}

    def decide(self, keys: Sequence[Key]) -> None:
        """What becomes of each."""
        store = self._store
        damaged: dict[str, LanceError] = {}
        self._states = look_many(store, [key[0] for key in keys], damaged=damaged)  # type: ignore[arg-type]
        self._refusals.update({key: damaged[key[0]] for key in keys if key[0] in damaged})
        keys = [key for key in keys if key not in self._refusals]
        self._read_leases(keys)
        for key in keys:
            state = self._states[key[0]]
            if state.finished is not None and state.is_finished(key[1]):
                self._staged[key] = state.finished
        if not self._request.dry_run:
            open_keys = [key for key in keys if self._states[key[0]].is_open(key[1])]
            decided = each(store, open_keys, lambda store, key: _decide_unfinished(store, key, by=self._request.by))
            self._states.update({state.identity: state for state in decided})
            if self._request.finished == "abort":
                keys = self._abort_waiting(keys)
            self._make_commits_lose(keys)
        for key in keys:
            self._sort(key)

    def _read_leases(self, keys: Sequence[Key]) -> None:
        self._begun.update(zip(keys, each(self._store, keys, lambda store, key: read_lease(store, *key)), strict=True))

    def _abort_waiting(self, keys: Sequence[Key]) -> list[Key]:
        """Abort the finished ones, and what has taken the place of one, for as long as commits bring them up:
        else the work that was reported as removed is published. Returns all attempts that this concerns."""
        for _ in range(_MAX_ROUNDS):
            waiting = [*dict.fromkeys(key for key in map(self._waiting, keys) if key is not None)]
            if not waiting:
                return [*keys]
            self._read_leases([key for key in waiting if key not in self._begun])
            keys = [*dict.fromkeys([*keys, *waiting])]
            self._abort_finished(waiting)
        what = f"{self._store.uri}: a commit staged the work again {_MAX_ROUNDS} times while it was aborted"
        raise RetryableConflictError(what, uri=self._store.uri, cure="Abort it again.")

    def _waiting(self, key: Key) -> Key | None:
        """The attempt that waits for its commit, if it is this one or stands in its place."""
        state = self._states[key[0]]
        if state.finished is None or key[1] not in (state.finished.attempt, *state.superseded):
            return None
        found = (key[0], state.finished.attempt)
        self._staged[found] = state.finished
        return None if found in self._refusals else found

    def _make_commits_lose(self, keys: Sequence[Key]) -> None:
        """Work that had finished and was committed without a version of its own (there was nothing to do, or a person says
        so) may still be in the hands of a commit: a version makes its put fail before files go."""
        without = []
        for key in keys:
            done = self._states[key[0]].committed
            if done is not None and not done.has_witness and self._is_committed(key) and self._begun[key] is not None:
                without.append(key)
        newest = find_latest_version(self._store) if without and self._request.committed_too else None
        if newest is not None:
            self._publish_abort(newest, without)

    def _is_committed(self, key: Key) -> bool:
        """Whether the work was committed with this attempt, or with one that stands in its place."""
        state = self._states[key[0]]
        return state.committed is not None and key[1] in (state.committed.attempt, *state.superseded)

    def _sort(self, key: Key) -> None:
        identity, attempt = key
        if key in self._refusals:
            return
        state, request = self._states[identity], self._request
        done, is_its = state.committed, self._is_committed(key)
        if state.is_aborted(attempt) or (is_its and request.committed_too):
            self._doomed.append(key)
        elif done is not None and not request.committed_too and (is_its or not done.attempt):
            what = f"{self._store.uri}: {identity} was committed as version {done.version}; there is nothing to abort"
            cure = "To take its rows back, delete them or restore an older version."
            self._refusals[key] = IncompatibleConflictError(what, uri=self._store.uri, version=done.version, cure=cure)
        elif request.dry_run and (request.finished == "abort" or state.is_open(attempt)):
            self._doomed.append(key)
        else:
            self._left.append(key)

    def _abort_finished(self, keys: Sequence[Key]) -> None:
        newest = find_latest_version(self._store)
        list_intents(self._store)  # one that only a newer release can read is refused before anything is said
        keys = self._without_refused(keys)
        for begin in range(0, len(keys), _MOST_AT_ONCE):
            some = keys[begin : begin + _MOST_AT_ONCE]
            intent = put_intent(self._store, Intent(naming.new_attempt(), ABORTS, attempts=dict(some), base=newest or 0))
            if newest is None:
                self._abort_creations(some, intent)
            else:
                self._publish_abort(newest, some)
                for key in self._without_refused(some, own=intent.commit):
                    self._states[key[0]] = self._decide_finished(key)
            if newest is None or not any(key in self._refusals for key in some):
                remove_intent(self._store, intent)

    def _without_refused(self, keys: Sequence[Key], *, own: str = "") -> list[Key]:
        """Those that an abort is not refused of by what the log tells, before its version (what is refused leaves the table
        as it was) and, with its intent as `own`, behind it."""
        since = {key[0]: self._staged[key].read_version for key in keys}
        found = search(self._store, LogSearch(since, own=own, commits_only=True))
        self._states.update(found.states)
        if not self._request.certain:
            self._refusals.update({key: found.unknown[key[0]] for key in keys if key[0] in found.unknown})
        return [key for key in keys if key not in self._refusals and key[0] not in found.versions]

    def _publish_abort(self, newest: int, keys: Sequence[Key]) -> None:
        """A version that changes no row and says what is aborted: commits that go on find it and refuse, and each put for a
        number up to it has failed."""
        properties = dict(abort_property(key[0], (key[1], *self._states[key[0]].superseded)) for key in keys)
        transaction = Transaction(newest, str(uuids.uuid4()), ReserveFragments(0), properties=properties)
        version = commit_transaction(self._store, transaction).version
        log.info("%s: version %d aborts %s", self._store.uri, version, ", ".join(attempt for _, attempt in keys))

    def _decide_finished(self, key: Key) -> DecisionState:
        identity, attempt = key

        def choose(state: DecisionState) -> DecisionState | None:
            is_late = state.is_decided(attempt) or state.committed is not None or attempt in state.superseded
            return None if is_late else state.abort(attempt, by=self._request.by)

        state = decide(self._store, identity, choose)
        return decide(self._store, identity, choose) if state.is_aborted(attempt) else state

    def _abort_creations(self, keys: Sequence[Key], intent: Intent) -> None:
        """There is no table yet, so no version can say it: not while a commit may be about to create the table with it. A
        commit that comes later finds this intent (see `commit`)."""
        named = named_by(list_intents(self._store), [key[0] for key in keys], below=1, but=intent.commit)
        for key in keys:
            others = [item for item in named.get(key[0], ()) if not item.aborts]
            if others and not self._request.certain:
                what = f"{self._store.uri}: a commit was about to publish attempt {key[1]} of {key[0]}, and it is unknown "
                what += "whether its put is still in flight"
                cure = "Commit again: this settles it at once, whatever the other commit did."
                self._refusals[key] = CommitStateUnknownError(what, uri=self._store.uri, cure=cure)
            else:
                self._states[key[0]] = self._decide_finished(key)

    def remove(self) -> Removal:
        """The deletions: who adopts, then what the versions name, then the files."""
        store = self._store
        # Behind the decision: whoever adopts one of them later finds it. Before the log is read: an adopter that is not on
        # record any more was committed, and then a version names what it adopted.
        adopted = adopted_by_others(store, self._doomed)
        doomed = self._gone = [key for key in self._doomed if key not in adopted]
        wanted = self._paths(doomed)
        since = min((self._since(key) for key in doomed), default=0)
        paths = unneeded(store, wanted, Owners(key[1] for key in doomed), since=since)
        if not self._request.dry_run:
            delete_all(store, paths)
            delete_all(store, [record_path(*key) for key in doomed if not self._may_write_on(key)])
        return Removal(tuple(paths), self._refusals, (*self._left, *(key for key in self._doomed if key in adopted)))

    def _may_write_on(self, key: Key) -> bool:
        """Whether a suspended writer of the attempt may still write, so that its record has to show its files."""
        begun = self._begun[key]
        is_unfinished = key not in self._staged and self._states[key[0]].is_aborted(key[1])
        if begun is None or not is_unfinished or self._request.by == ITSELF:
            return False
        now = time.time() if self._request.now is None else self._request.now
        return now < begun[1] + begun[0].lease_seconds + LATE_SECONDS

    def freed(self) -> list[Key]:
        """What those that are gone had adopted, unless it may still be published by itself."""
        keys: dict[Key, None] = {}
        for key in self._gone:
            begun = self._begun[key]
            adopts = () if begun is None else begun[0].adopts
            keys.update(dict.fromkeys((key[0], item) for item in (*adopts, *self._adopted.get(key, ()))))
        states = {key: self._states[key[0]] for key in keys if key not in self._begun}
        return [key for key, state in states.items() if state.is_aborted(key[1]) or state.committed is not None]

    def _since(self, key: Key) -> int:
        begun, staged = self._begun[key], self._staged.get(key)
        versions = [item.read_version for item in (staged, begun and begun[0]) if item is not None]
        return min(versions, default=0)

    def _paths(self, keys: Sequence[Key]) -> list[str]:
        """What they wrote. One that finished knows its files; of any other they are found by their names."""
        found, unknown = [], []
        for key in keys:
            staged = self._staged.get(key)
            transaction = None if staged is None else read_transaction_file(self._store, staged.transaction_path)
            if transaction is not None:
                self._adopted[key] = staged_writers(transaction, key[1])[1:]
            if staged is None or transaction is None or not names_all(self._store, transaction):
                unknown.append(key[1])
            else:
                found += [*data_paths(transaction, writers=key[1:]), staged.transaction_path]
        if unknown:
            owners = Owners(unknown)
            found += [path for path in attempt_files(self._store) if owners.has(path)]
            # That of one which finished is known: a listing may lack it.
            for key in keys:
                begun, has_finished = self._begun[key], key[1] in self._states[key[0]].superseded or self._is_committed(key)
                if begun is not None and (has_finished or key in self._staged):
                    found.append(staged_transaction_path(*key, begun[0].read_version))
        return [*dict.fromkeys(found)]


def finished_reference(store: Store, identity: str, attempt: str) -> StagedTransaction | None:
    """What an attempt was finished with, also when it is decided by now."""
    state = look(store, identity)
    for number in range(state.number, 0, -1):
        found = read_decision(store, identity, number)
        if found is not None and found.is_finished(attempt):
            return found.finished
    return None


class Owners:
    """Attempts (or commits) whose files are looked for by name."""

    def __init__(self, attempts: Iterable[str]) -> None:
        self._prefixes = {attempt[:length] for attempt in attempts for length in (10, 12, 16)}

    def has(self, path: str) -> bool:
        """Whether one of them wrote this file."""
        return naming.attempt_prefix(path) in self._prefixes


def unneeded(store: Store, paths: Sequence[str], owners: Owners, *, since: int, transactions: bool = False) -> list[str]:
    """Those of some files of these that no version names (see `files_in_use`)."""
    needed = files_in_use(store, owners, since=since, transactions=transactions) if paths else frozenset()
    return [path for path in paths if not is_referenced(path, needed)]


def files_in_use(store: Store, owners: Owners, *, since: int, transactions: bool = False) -> frozenset[str]:
    """Files of these that a version names: those after `since` of this line, all of its branches, detached ones; with
    `transactions` the transaction files of all."""
    found: set[str] = set()
    for place, after in [(store, since), *((branch, 0) for branch in branch_stores(store))]:
        for item in (*look_since(place, after), *detached_versions(place)):
            # Of an index the whole folder is named, by a path that ends in "/".
            found.update(path for path in referenced_files(item.manifest) if owners.has(path))
            if transactions and item.manifest.transaction_file:
                found.add(naming.transaction_path(item.manifest.transaction_file))
    return frozenset(found)


def unused_files(store: Store, attempt: str, *, keep: Collection[str]) -> list[str]:
    """Files of the caller's own attempt that its transaction does not name."""
    return [path for path in attempt_files(store) if naming.is_of_attempt(path, attempt) and path not in keep]


def remove_unused(store: Store, attempt: str, *, keep: Collection[str]) -> list[str]:
    """Remove those of an attempt that nobody adopts, before it is finished: no version can name them."""
    paths = unused_files(store, attempt, keep=keep)
    delete_all(store, paths)
    return paths


def names_all(store: Store, transaction: Transaction) -> bool:
    """Whether a staged transaction names every file that was written for it; blobs beside data files may lack."""
    if facts_of(transaction).has_more or any(not index.files for index in new_indices(transaction.operation)):
        return False
    schema = new_schema(transaction.operation)
    if schema is None:
        try:
            schema = load_manifest(store).schema
        except NotFoundError:
            return False
    return all(item.extension_name != BLOB_V2 for item in schema.fields)
