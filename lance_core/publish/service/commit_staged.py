"""The commit task: any number of staged transactions, published exactly once, in as few versions as possible.

::

    claim                which files are this commit's, so that what it leaves can be found by name
    ledger, log          leave out what has landed
    load                 each staged transaction: counts, not withdrawn, every file there
    fold -> check -> judge -> fence -> put -> ledger            once per version to be
    drain                records and staged transaction files of what has landed; then the claim

The fence of each member is put right before the first manifest that may carry it, and its files are checked once more
behind it. Killed between any two steps, the same call again, or another commit, finishes the work at once: what landed is
found in the ledger or the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lance_core.commit import naming
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.committed import Committed
from lance_core.commit.conflicts import PartlyLandedError
from lance_core.commit.manifests import Listing, OpenVersion, open_newest
from lance_core.errors import (
    CommitStateUnknownError,
    IncompatibleConflictError,
    InputError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
)
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.model import ALREADY_LANDED, LANDED, CommitResult, StagedTransaction
from lance_core.publish.registry.claims import make_claim
from lance_core.publish.registry.incarnation import incarnation_of
from lance_core.publish.registry.landings import find_landed_many, known_landing
from lance_core.publish.registry.ledger import record_fold
from lance_core.publish.service.alone import publish_alone
from lance_core.publish.service.callbacks import Check, IfMoved, ReExecute, Withdraw
from lance_core.publish.service.clearing import clear
from lance_core.publish.service.errors import NotWholeError, not_in_ledger, too_many_rounds
from lance_core.publish.service.fold import Fold, fold_uuid, plan_folds
from lance_core.publish.service.lost_files import explain_lost_file
from lance_core.publish.service.merge_rows import MemberConflictError
from lance_core.publish.service.preconditions import (
    Concerns,
    distinct,
    find_too_early,
    lost_creation,
    refuse_if_moved,
    require_same_table,
)
from lance_core.publish.service.publisher import Publisher
from lance_core.publish.service.tally import Tally
from lance_core.publish.service.turns import Turns, blame_members
from lance_core.publish.staging.drain import Loaded, load_staged
from lance_core.publish.staging.supersede import give_up_for_another
from lance_core.table.draft import TableOptions
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

_MAX_ROUNDS = 40


def commit_staged(
    store: Store,
    refs: Sequence[StagedTransaction],
    *,
    if_moved: IfMoved = "fail",
    options: TableOptions | None = None,
    check: Check | None = None,
    re_execute: ReExecute | None = None,
    may_re_execute: Callable[[StagedTransaction], bool] = lambda _: True,
    withdraw: Withdraw | None = None,
    max_retries: int = DEFAULT_MAX_RETRIES,
    concerns: Concerns | None = None,
    partial: bool = False,
    known: Mapping[StagedTransaction, Transaction] | None = None,
    alone: bool = True,
) -> CommitResult:
    """Publish staged transactions exactly once; calling it again with the same references adds nothing.

    `if_moved`: whether a staged Overwrite or Restore refuses ("fail") or replaces ("overwrite") what came since it was
    planned. `options` matter when this creates the table. `re_execute` is asked to stage again what a concurrent commit
    invalidated; without it, or when `may_re_execute` says no of one of them, such a conflict is raised. `withdraw` gives the
    former attempt up before that; without it, the attempt is aborted. `concerns` is called for each version between the one
    a member was planned on and the one that is written, right before it is written: if one brought rows that the member
    should have known, that is a conflict. With `partial`, members that cannot be committed are named in the result
    (`refused`) and the others land; if none can, the first refusal is raised. `known`: what the caller has read already.
    `alone`: one reference may be published without a claim (see `service.alone`); not if that was tried just now.

    Raises RetryableConflictError and StoreError (the same call may be made again), IncompatibleConflictError,
    SchemaMismatchError, InputError (staged files gone, reference withdrawn), whatever `check` raises, and
    CommitStateUnknownError when the ledger is silent and the history needed to decide is gone.
    """
    if if_moved not in ("fail", "overwrite"):
        raise InputError(f"if_moved={if_moved!r} is invalid, expected 'fail' or 'overwrite'")
    if not refs:
        raise InputError("no staged transactions were passed", cure="Pass the results of the staging tasks.")
    began = time.monotonic()
    wanted = distinct(refs)
    if alone and check is None and len(wanted) == 1:
        done = publish_alone(store, refs[0], known=(known or {}).get(refs[0]))
        if done is not None:
            return done
        known = None  # whatever was read before, it may be gone
    members = {ref.identity: ref.attempt for ref in wanted.values()}
    claim = make_claim(uuids=[fold_uuid(wanted.values())], attempts=members, commit=naming.new_attempt())
    publisher = Publisher(store, claim, options=options, max_retries=max_retries)
    publisher.concerns = concerns
    service = _Service(store, wanted, publisher, if_moved=if_moved)
    try:
        service.may_re_execute = may_re_execute
        service.concerns, service.partial, service.known = concerns, partial, known or {}
        service.withdraw = withdraw or service.withdraw
        result = service.run(check, re_execute)
    except StoreError:
        raise  # the claim stays: something may have been written, or a put may still land
    except Exception:
        publisher.end()
        raise
    return replace(result, seconds=round(time.monotonic() - began, 6))


class _Service:
    def __init__(
        self,
        store: Store,
        wanted: Mapping[str, StagedTransaction],
        publisher: Publisher,
        *,
        if_moved: IfMoved,
    ) -> None:
        self._store, self._publisher, self._pending, self._if_moved = store, publisher, dict(wanted), if_moved
        self._tally, self._turns = Tally(), Turns()
        self._repeated: set[str] = set()
        self.may_re_execute: Callable[[StagedTransaction], bool] = lambda _: True
        self.withdraw: Withdraw = lambda ref, own: give_up_for_another(store, ref, own_commit=own)
        self.concerns: Concerns | None = None
        self.partial = False
        self._loaded: dict[str, Loaded] = {}
        self._incarnation: str | None = None
        self._opened: OpenVersion | None = None
        self._opening: Callable[[], OpenVersion | None] | None = None
        self._present: Sequence[int] | None = None
        self.known: Mapping[StagedTransaction, Transaction] = {}
        self._in_ledger: set[str] = set()
        """Those of which the ledger is asked whatever their references say: work that had nothing to do has landed in no
        version, so that the log alone does not show it."""

    def run(self, check: Check | None, re_execute: ReExecute | None) -> CommitResult:
        for _ in range(_MAX_ROUNDS + 2 * len(self._pending)):
            if self._pending:
                self._leave_out_landed()
            if not self._pending:
                break
            try:
                self._round(check, re_execute)
            except NotFoundError as error:
                self._leave_out(explain_lost_file(self._store, [*self._pending.values()], error))
        if self._pending:
            raise too_many_rounds(self._store, _MAX_ROUNDS)
        if not self._tally.versions and self._tally.refused:
            raise next(iter(self._tally.refused.values()))
        self._drain()
        return self._tally.result()

    def _round(self, check: Check | None, re_execute: ReExecute | None) -> None:
        """Commit what is pending, until done or until the table changed in a way that asks for new folds."""
        self._publisher.wait_for_claim()
        wanted = self._turns.ready(self._pending)
        found = load_staged(self._store, wanted, known=self.known)
        for ref, item in zip(wanted, found, strict=True):
            if isinstance(item, LanceError):
                self._refuse(ref.identity, item)
        self._in_ledger.update(ref.identity for ref, item in zip(wanted, found, strict=True) if item is None)
        loaded = [item for item in found if isinstance(item, Loaded)]
        if len(loaded) < len(found):
            return  # some landed since we looked, by another commit's hand, or were left out
        opening, self._opening = self._opening, None
        self._opened = open_newest(self._store) if opening is None else opening()
        newest = None if self._opened is None else self._opened.manifest
        folds = plan_folds(loaded, newest=newest, if_moved=self._if_moved)
        if check is not None:
            check([(item.ref, item.transaction) for item in loaded], newest)
        early = find_too_early(self._store, folds, newest, self.concerns)
        if early is not None:
            self._part(*early, re_execute)
            return
        if newest is not None:
            self._incarnation = require_same_table(
                self._store, loaded, newest, incarnation=self._incarnation, present=self._present
            )
        refuse_if_moved(self._store, folds, newest)
        self._renew_claim(*(fold.transaction.uuid for fold in folds))
        for fold in folds:
            try:
                opened, self._opened = self._opened, None  # what is published first makes it old
                done = self._publisher.commit(fold, opened)
            except PartlyLandedError:
                return
            except MemberConflictError as error:
                self._part(fold, error, re_execute)
                return
            except RetryableConflictError as error:
                if fold.settles_late and error.other_version is not None:
                    return  # the next round says which members it concerns
                blamed = blame_members(self._store, fold, error, open_at=self._publisher.versions)
                self._execute_again([fold.members[number] for number in blamed], re_execute, error)
                return
            except NotWholeError as error:
                self._leave_out(error.refusals)
                return
            except IncompatibleConflictError as error:
                if lost_creation(fold, self._store):
                    return
                if len(fold.members) > 1 or not self.partial:
                    raise
                self._refuse(fold.members[0].ref.identity, error)
                return
            self._note(fold, done)
            if done.already:
                return  # somebody else published it just now

    def _leave_out(self, refusals: Mapping[str, LanceError]) -> None:
        """Members that are not whole: refused, unless another commit landed and cleared them, which the ledger was told
        before."""
        for uuid, refusal in refusals.items():
            if known_landing(self._store, uuid) is None:
                self._refuse(uuid, refusal)
            else:
                self._in_ledger.add(uuid)

    def _renew_claim(self, *uuids: str) -> None:
        self._publisher.renew_claim({ref.identity: ref.attempt for ref in self._pending.values()}, uuids=uuids)

    def _refuse(self, uuid: str, error: LanceError) -> None:
        """A member that cannot be committed: left out and named, or raised."""
        if not self.partial:
            raise error
        log.warning("left out: %s", error)
        self._tally.refused[uuid] = error
        self._pending.pop(uuid, None)

    def _leave_out_landed(self) -> None:
        since = {uuid: ref.read_version for uuid, ref in self._pending.items()}
        unknown: dict[str, CommitStateUnknownError] = {}
        own = self._publisher.claim.commit
        later = {uuid for uuid, ref in self._pending.items() if ref.later_only and uuid not in self._in_ledger}
        keep, versions = self._keep_listing, self._publisher.versions
        found = find_landed_many(
            self._store, since, own_commit=own, unknown=unknown, listed=keep, later_only=later, open_at=versions
        )
        for uuid, error in unknown.items():
            self._refuse(uuid, error)
        for uuid, version in found.items():
            if version is not None:
                self._settle(self._pending.pop(uuid), version, ALREADY_LANDED)

    def _keep_listing(self, found: Listing) -> None:
        # The newest version is most likely needed next: it is read while folded records are looked for.
        self._opening, self._present = begin(self._store, lambda: found.open_newest(self._store)), found.numbers

    def _note(self, fold: Fold, done: Committed) -> None:
        """The fold is in the log: tell the ledger, so that it stays known when the log is pruned."""
        version, uuids = done.manifest.version, [item.ref.identity for item in fold.members]
        try:
            record_fold(
                self._store, uuids, version=version, transaction=done.transaction, incarnation=self._incarnation_at(done)
            )
        except StoreError as error:
            raise not_in_ledger(self._store, version, error) from error
        if done.already:
            for uuid in uuids:  # a later listing may lag behind what was read now, and would say that it has not landed
                self._settle(self._pending.pop(uuid), version, ALREADY_LANDED)
            return
        self._tally.num_versions += 1
        self._tally.rebased += done.num_rebased
        self._tally.published[version] = done.transaction, done.manifest.transaction_file
        for item in fold.members:
            self._settle(self._pending.pop(item.ref.identity), version, LANDED)
            self._loaded[item.ref.identity] = item

    def _incarnation_at(self, done: Committed) -> str:
        if self._incarnation is None:
            first = done.transaction.uuid if done.manifest.version == 1 else None
            self._incarnation = incarnation_of(self._store) if first is None else first
        return self._incarnation

    def _settle(self, ref: StagedTransaction, version: int, outcome: str) -> None:
        self._tally.outcome[ref.identity] = outcome
        self._tally.versions[ref.identity] = version
        if outcome == LANDED:
            self._tally.landed.append(ref)

    def _execute_again(self, members: Sequence[Loaded], re_execute: ReExecute | None, error: RetryableConflictError) -> None:
        stuck = [item for item in members if re_execute is None or not self._may_try_again(item.ref)]
        if stuck and not self.partial:
            raise error
        for item in stuck:
            self._refuse(item.ref.identity, error)
        for item in members:
            if re_execute is None or item in stuck:
                continue
            log.info("%s; staging again: %s", error, item.ref.identity)
            self.withdraw(item.ref, self._publisher.claim.commit)
            self._tally.try_again(item.ref)
            self._pending[item.ref.identity] = re_execute(item.ref, self._publisher.claim.commit)
            self._renew_claim()

    def _may_try_again(self, ref: StagedTransaction) -> bool:
        return self._tally.may_try_again(ref.identity) and self.may_re_execute(ref)

    def _part(self, fold: Fold, error: MemberConflictError, re_execute: ReExecute | None) -> None:
        """Members of a fold met a concurrent commit, or another member, in a row."""
        again = [fold.members[number] for number in error.outdated]
        for number, other in error.behind.items():
            item = fold.members[number]
            if item.ref.identity in self._repeated:
                # Staged on the newest version and still in conflict: with a member that has not landed. That one goes first.
                self._turns.wait(item.ref.identity, behind=fold.members[other].ref.identity, pending=self._pending)
            else:
                again.append(item)
        self._execute_again(again, re_execute, error)
        self._repeated.update(item.ref.identity for item in again)

    def _drain(self) -> None:
        publisher = self._publisher
        last = [] if self._tally.refused else publisher.records
        is_gone = clear(self._store, self._tally, self._loaded, fenced=publisher.fenced, shared=publisher.shared, last=last)
        if last and not is_gone:
            publisher.end(records=last)
