"""The commit of any number of staged transactions, exactly once, in as few versions as possible.

::

    decisions, log, intent                                      leave out what is committed
    load -> fold -> check -> judge -> put -> decisions          once per version to be
    clear                                                       records and staged files of what is committed; the intent

    a, b, c, d    b and c update a row that a updates      -> a and d now; then b; then c
    a, b          a version of others changed rows of a    -> a is staged again, b is not

Killed between any two steps, the same call again, or another commit, finishes the work at once: what is committed is found
in the decisions or the log. Members that meet each other are put in a line behind the one that goes first, so each of them
is staged again once, when its turn comes. Independent lines advance together.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lance_core.commit import naming
from lance_core.commit.conflicts import PartlyCommittedError, is_abort, moved
from lance_core.commit.loop import Committed, LoopRequest, rebase_onto
from lance_core.commit.manifests import OpenVersion, find_latest_version, list_once, open_newest, open_version
from lance_core.commit.transactions import load_transaction
from lance_core.errors import IncompatibleConflictError, InputError, LanceError, NotFoundError, RetryableConflictError
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.abort import AbortRequest, remove_attempts
from lance_core.publish.decisions import DecisionState, decide, look_many
from lance_core.publish.fold import Fold, creates, plan_folds
from lance_core.publish.history import LogSearch, search
from lance_core.publish.intent import list_intents, named_by
from lance_core.publish.members import (
    Loaded,
    MemberConflictError,
    NotWholeError,
    clear_committed,
    load_members,
    outdated,
    quietly,
    was_aborted,
)
from lance_core.publish.model import ALREADY_COMMITTED, COMMITTED, CommitResult, StagedTransaction
from lance_core.publish.publisher import CommitRequest, Concerns, Publisher, Tally, publish_single, require_same_table
from lance_core.publish.table_id import table_id_of
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

_MAX_ROUNDS = 40
_MAX_RE_EXECUTIONS = 15
"""New columns meet every append of a writer outside; after the first time only what it appended is filled in, so another try
is cheap, and a busy machine needs many: five were too few beside two outside appends a second."""


def commit_staged(store: Store, refs: Sequence[StagedTransaction], **fields: Any) -> CommitResult:
    """`commit` with these fields of a `CommitRequest`."""
    return commit(store, CommitRequest(refs=tuple(refs), **fields))


def commit(store: Store, request: CommitRequest) -> CommitResult:
    """Publish staged transactions exactly once; calling it again with the same references adds nothing.

    Raises RetryableConflictError and StoreError (the same call may be made again), IncompatibleConflictError,
    SchemaMismatchError, InputError (staged files gone, attempt aborted), whatever the check raises, and
    CommitStateUnknownError when no decision tells and the history needed to decide is gone.
    """
    if request.if_moved not in ("fail", "overwrite"):
        raise InputError(f"if_moved={request.if_moved!r} is invalid, expected 'fail' or 'overwrite'")
    if not request.refs:
        raise InputError("no staged transactions were passed", cure="Pass the results of the staging tasks.")
    began = time.monotonic()
    wanted = _by_identity(request.refs)
    if request.single and request.check is None and len(wanted) == 1:
        states = dict(request.states)
        done = publish_single(store, request.refs[0], states=states)
        if done is not None:
            return done
        request = replace(request, states=states)
    service = _Commit(store, request, wanted)
    with service.publisher.ending():
        result = service.run()
    return replace(result, seconds=round(time.monotonic() - began, 6))


def _by_identity(refs: Sequence[StagedTransaction]) -> dict[str, StagedTransaction]:
    found: dict[str, StagedTransaction] = {}
    for ref in refs:
        other = found.setdefault(naming.checked_identity(ref.identity), ref)
        if other.attempt != ref.attempt:
            what = f"identity {ref.identity} was passed with two attempts, {other.attempt} and {ref.attempt}"
            raise InputError(what, cure="Pass only the result of the last run of its staging task.")
    return found


class _Commit:
    """All that one call has read, written, or has in doubt."""

    def __init__(self, store: Store, request: CommitRequest, wanted: Mapping[str, StagedTransaction]) -> None:
        self._store, self._request, self._pending = store, request, dict(wanted)
        self.publisher = Publisher(store, request, wanted)
        self._tally = Tally()
        self._before: dict[str, str] = {}  # the line in which each member stands: by identity, the one before it
        self._tries: dict[str, int] = {}
        self._repeated: set[str] = set()
        self._states = dict(request.states)
        self._known: dict[str, DecisionState] = {}
        self._found_in_log: list[str] = []
        self._table_id: str | None = None
        self._opened: OpenVersion | None = None
        self._opening: Callable[[], OpenVersion | None] | None = None
        self._present: Sequence[int] | None = None

    def run(self) -> CommitResult:
        for _ in range(_MAX_ROUNDS + 2 * len(self._pending)):
            if self._pending:
                self._leave_out_committed()
            if not self._pending:
                break
            try:
                self._round()
            except NotFoundError as error:
                self._explain(error)
        if self._pending:
            what = f"{self._store.uri}: other writers committed first {_MAX_ROUNDS} times"
            cure = "Commit again, or run the commit tasks in the table's commit pool."
            raise RetryableConflictError(what, uri=self._store.uri, cure=cure)
        if not self._tally.settled and self._tally.refused:
            raise next(iter(self._tally.refused.values()))
        self._clear()
        return self._tally.result()

    def _leave_out_committed(self) -> None:
        """What the decisions or the log know; what is not the attempt that waits is refused."""
        is_fresh = not self._states and self.publisher.is_intended
        if is_fresh:
            self.publisher.wait_for_intent()
        states = {uuid: self._states[uuid] for uuid in self._pending if uuid in self._states}
        if len(states) < len(self._pending):
            starts = {uuid: ref.number for uuid, ref in self._pending.items() if ref.number}
            damaged: dict[str, LanceError] = {}
            states = look_many(self._store, [*self._pending], starts=starts, damaged=damaged)  # type: ignore[arg-type]
            for uuid, error in damaged.items():
                what = f"{self._store.uri}: the decisions about {uuid} cannot be read: {error}"
                cure = "Run `lance staged repair`, then clear its staging task."
                self._refuse(uuid, IncompatibleConflictError(what, uri=self._store.uri, cure=cure))
        self._states = {}
        listing = list_once(self._store)
        if any(states[uuid].committed is None for uuid in self._pending):
            self.publisher.intend(max(listing.numbers, default=0))
        # The newest version is most likely needed next: it is read while the log is read.
        self._opening, self._present = begin(self._store, lambda: listing.open_newest(self._store)), listing.numbers
        asked = LogSearch(
            {uuid: ref.read_version for uuid, ref in self._pending.items()},
            own=self.publisher.commit_id,
            open_at=self.publisher.versions,
            listing=listing,
            is_fresh=is_fresh,
            prepare=self.publisher.wait_for_intent,
        )
        found = search(self._store, asked, states=states)
        self._known.update(found.states)
        for uuid, unknown in found.unknown.items():
            self._refuse(uuid, unknown)
        for uuid, version in found.versions.items():
            if states[uuid].committed is None:
                self._found_in_log.append(uuid)
            self._settle(uuid, version, ALREADY_COMMITTED)
        for uuid, ref in [*self._pending.items()]:
            state = found.states[uuid]
            waits = state.finished
            is_ours = waits is not None and ref.attempt in (waits.attempt, *state.superseded)
            # A version says so before the decision does, and a creation judges no version itself.
            if waits is not None and is_ours and waits.attempt not in found.aborted.get(uuid, ()):
                self._pending[uuid] = waits
            else:
                self._refuse(uuid, was_aborted(self._store, ref, state))

    def _round(self) -> None:
        """Commit what is pending, until done or until the table changed in a way that asks for new folds."""
        self.publisher.wait_for_intent()
        wanted = self._ready()
        found = load_members(self._store, wanted, self._known)
        for ref, item in zip(wanted, found, strict=True):
            if isinstance(item, LanceError):
                self._leave_out({ref.identity: item})
        loaded = [item for item in found if isinstance(item, Loaded)]
        if len(loaded) < len(found):
            return  # some were committed since we looked, by another commit's hand, or were left out
        opening, self._opening = self._opening, None
        self._opened = open_newest(self._store) if opening is None else opening()
        newest = None if self._opened is None else self._opened.manifest
        is_later = newest is not None and newest.version > max(self._present or (), default=0)
        if is_later and any(creates(item.transaction) for item in loaded):
            return  # the log was read up to the listing, and a creation judges no version up to this one
        folds = plan_folds(loaded, newest=newest, if_moved=self._request.if_moved)
        if self._request.check is not None:
            self._request.check([(item.ref, item.transaction) for item in loaded], newest)
        early = _find_too_early(self._store, folds, newest, self._request.concerns)
        if early is not None:
            self._part(*early)
            return
        if self._refuse_aborted_creations([item for item in loaded if not item.ref.read_version]):
            return
        if newest is not None:
            self._table_id = require_same_table(self._store, loaded, newest, table_id=self._table_id, present=self._present)
        _refuse_if_moved(self._store, folds, newest)
        self.publisher.extend_intent(self._pending.values(), uuids=[fold.transaction.uuid for fold in folds])
        for fold in folds:
            if not self._publish(fold):
                return

    def _publish(self, fold: Fold) -> bool:
        """Publish a fold; False where the others have to be read again."""
        try:
            opened, self._opened = self._opened, None  # what is published first makes it old
            done = self.publisher.commit(fold, opened)
        except PartlyCommittedError:
            pass
        except MemberConflictError as error:
            self._part(fold, error)
        except RetryableConflictError as error:
            if not fold.late or error.other_version is None:  # else the next round says which members it concerns
                self._execute_again(self._blamed(fold, error), error)
        except NotWholeError as error:
            self._leave_out(error.refusals)
        except IncompatibleConflictError as error:
            created = fold.transaction.read_version == 0 and fold.members[0].ref.creates
            if created and find_latest_version(self._store) is not None:
                return False  # another writer created the table
            if len(fold.members) > 1 or not self._request.partial:
                raise
            self._refuse(fold.members[0].ref.identity, error)
        else:
            self._note(fold, done)
            return not done.already  # else somebody else published it just now
        return False

    def _leave_out(self, refusals: Mapping[str, LanceError]) -> None:
        """Members that are not whole: refused, unless another commit published and cleared them, which it decided before."""
        states = look_many(self._store, [*refusals], damaged={})
        for uuid, refusal in refusals.items():
            state = states.get(uuid)
            if state is None or state.committed is None:
                self._refuse(uuid, refusal)

    def _explain(self, error: NotFoundError) -> None:
        """A file that the commit needed is gone: another commit has published its member and cleared it, the member was
        aborted, or a cleanup removed a version that it was compared with."""
        if open_newest(self._store) is None:
            raise error
        before = {*self._pending}
        states = self._refuse_ended([*before])
        if before == {*self._pending} and all(state.committed is None for state in states.values()):
            what = f"{self._store.uri}: versions were removed while the commit compared its work with them ({error})"
            cure = "Commit again. If it comes back, keep versions for longer than the work takes, and check the table with "
            raise RetryableConflictError(what, uri=self._store.uri, cure=cure + "`lance validate`.") from error

    def _refuse_ended(self, identities: Sequence[str]) -> Mapping[str, DecisionState]:
        """Their decisions, read once more; members that neither wait nor were committed are refused."""
        states = look_many(self._store, identities)
        for uuid in identities:
            ref, state = self._pending.get(uuid), states[uuid]
            if ref is not None and state.committed is None and not state.is_finished(ref.attempt):
                self._refuse(uuid, was_aborted(self._store, ref, state))
        return states

    def _refuse_aborted_creations(self, loaded: Sequence[Loaded]) -> bool:
        """Where there was no table, no version could say what is aborted: an intent did, and this commit finishes it. Their
        decisions are read once more behind the intent of this commit. Whether there were any."""
        if not loaded:
            return False
        identities = [item.ref.identity for item in loaded]
        named = named_by(list_intents(self._store), identities, below=1, but=self.publisher.commit_id)
        for uuid, intents in named.items():
            attempt = self._pending[uuid].attempt
            aborts = [item for item in intents if item.aborts and item.attempts.get(uuid) == attempt]
            if aborts and len(aborts) < len(intents):
                what = f"{self._store.uri}: {uuid} is being aborted while another commit may be about to publish it"
                raise RetryableConflictError(what, uri=self._store.uri, cure="Commit again.")
            if aborts:
                decide(self._store, uuid, partial(_against, attempt=attempt))
        self._refuse_ended(identities)
        return any(uuid not in self._pending for uuid in identities)

    def _refuse(self, uuid: str, error: LanceError) -> None:
        """A member that cannot be committed: left out and named, or raised."""
        if not self._request.partial:
            raise error
        log.warning("left out: %s", error)
        self._tally.refused[uuid] = error
        self._pending.pop(uuid, None)

    def _note(self, fold: Fold, done: Committed) -> None:
        """The fold is in the log: each member gets its decision, so that it stays known when the log is pruned."""
        version, members = done.manifest.version, [item.ref.identity for item in fold.members]
        if self._table_id is None:
            self._table_id = done.transaction.uuid if version == 1 else table_id_of(self._store)
        self.publisher.decide(done, members, self._known, table_id=self._table_id)
        for uuid in members:  # a later listing may lag behind what was read now, and would say that it was not committed
            self._settle(uuid, version, ALREADY_COMMITTED if done.already else COMMITTED)
        if not done.already:
            self._tally.rebased += done.num_rebased
            self._tally.published.append((fold.members, done.transaction, done.manifest.transaction_file))

    def _settle(self, uuid: str, version: int, outcome: str) -> None:
        del self._pending[uuid]
        self._tally.settled[uuid] = version, outcome

    def _blamed(self, fold: Fold, error: RetryableConflictError) -> Sequence[Loaded]:
        """The members of a fold that met a version of others, when their common transaction did; all when none did by
        itself."""
        newest = open_newest(self._store) if len(fold.members) > 1 and error.other_version is not None else None
        if newest is None:
            return fold.members
        blamed = []
        for item in fold.members:
            try:
                rebase_onto(self._store, item.transaction, newest, LoopRequest(open_at=self.publisher.versions))
            except RetryableConflictError:
                blamed.append(item)
        return blamed or fold.members

    def _execute_again(self, members: Sequence[Loaded], error: RetryableConflictError) -> None:
        again, tries = self._request.re_execute, self._tries
        stuck = [item for item in members if again is None or not self._may_execute_again(item.ref)]
        for item in stuck:
            self._refuse(item.ref.identity, error)
        for item in members:
            if again is None or item in stuck:
                continue
            log.info("%s; staging again: %s", error, item.ref.identity)
            tries[item.ref.identity] = tries.get(item.ref.identity, 0) + 1
            self._tally.re_executed += 1
            self._pending[item.ref.identity] = again(item.ref, self.publisher.commit_id)
            self.publisher.extend_intent(self._pending.values())

    def _may_execute_again(self, ref: StagedTransaction) -> bool:
        return self._tries.get(ref.identity, 0) < _MAX_RE_EXECUTIONS and self._request.may_re_execute(ref)

    def _part(self, fold: Fold, error: MemberConflictError) -> None:
        """Members of a fold met a concurrent commit, or another member, in a row."""
        again = [fold.members[number] for number in error.outdated]
        for number, other in error.behind.items():
            item = fold.members[number]
            if item.ref.identity in self._repeated:
                # Staged on the newest version and still in conflict: with a member that is not committed. That one goes
                # first.
                self._stand(item.ref.identity, behind=fold.members[other].ref.identity)
            else:
                again.append(item)
        self._execute_again(again, error)
        self._repeated.update(item.ref.identity for item in again)

    def _ready(self) -> list[StagedTransaction]:
        """Members that need not wait for another that is still pending."""
        found = [ref for identity, ref in self._pending.items() if self._before.get(identity) not in self._pending]
        return found or [*self._pending.values()]

    def _stand(self, identity: str, *, behind: str) -> None:
        """Put a member at the end of the line that begins with another."""
        following = {before: one for one, before in self._before.items() if one in self._pending and one != identity}
        while behind in following:
            behind = following[behind]
        self._before[identity] = behind

    def _clear(self) -> None:
        """Remove what is left of what was committed. Best effort: garbage collection does the same."""
        tally, publisher = self._tally, self.publisher
        last = [] if tally.refused else publisher.records
        # The intent goes along where nothing else is to be cleared behind it.
        is_all = bool(last) and len(tally.published) == 1 and not self._found_in_log
        clear = partial(clear_committed, self._store, states=self._known, last=last if is_all else ())
        done = [quietly(partial(clear, *published)) for published in tally.published]
        keys = [(uuid, attempt) for uuid in self._found_in_log for attempt in self._known[uuid].attempts()]
        if keys:
            quietly(lambda: remove_attempts(self._store, keys, AbortRequest("its commit", committed_too=True)))
        if last and not (is_all and all(done)):
            publisher.end()


def _against(state: DecisionState, *, attempt: str) -> DecisionState | None:
    is_over = state.is_decided(attempt) or state.committed is not None
    return None if is_over else state.abort(attempt, by="an abort that was begun")


def _refuse_if_moved(store: Store, folds: Sequence[Fold], newest: Manifest | None) -> None:
    """Strict work refuses before anything is published, not halfway through the folds. Versions of aborts do not count."""
    for fold in folds:
        if not fold.strict or newest is None:
            continue
        try:
            since = range(fold.transaction.read_version + 1, newest.version + 1)
            between = [load_transaction(store, number) for number in since]
        except NotFoundError:
            between = [None]
        if not all(item is not None and is_abort(item) for item in between):
            raise moved(store, fold.transaction, "others, up to the newest,", newest.version)


def _find_too_early(
    store: Store, folds: Sequence[Fold], newest: Manifest | None, concerns: Concerns | None
) -> tuple[Fold, MemberConflictError] | None:
    """Work that was staged before the table existed, for which other writers have added relevant rows in the meantime."""
    if newest is None or concerns is None:
        return None
    theirs = Transaction(0, "", Append(tuple(newest.fragments)))
    for fold in folds:
        created = [number for number, item in enumerate(fold.members) if item.ref.creates]
        opened = open_version(store, newest.version) if created else None
        found = [number for number in created if opened is not None and concerns(fold.members[number], theirs, opened)]
        if found:
            return fold, outdated(store, fold.members, found, theirs, newest.version)
    return None
