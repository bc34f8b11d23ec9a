"""What a commit call writes: its intent, the files of its tries and its manifests.

One staged transaction may be published just as it is, on the very version that it was planned on, with as few requests as
safe::

    the decision that it is finished, and that there is none behind it  ‖  the version that it was planned on
    intent  ‖  its files
    manifest                   as the next version, if absent; it names the staged transaction's own file
    -> lineage, decision, clearing  as ever

The versions are not listed before: if there is a later one, the put fails, and if there was one that has been removed, the
look behind the put finds it. (Why that is enough: docs/protocol.md.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar

from lance_core.commit import naming
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.conflicts import delete_quietly
from lance_core.commit.loop import AlsoJudge, Committed, LoopRequest, commit_in_detail, publish_on, rebase_onto
from lance_core.commit.manifests import KnownVersions, OpenVersion, find_latest_version, open_or_none, open_version
from lance_core.commit.rebase import Rebased
from lance_core.commit.references import fragment_paths
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    IncompatibleConflictError,
    LanceError,
    StoreError,
    StoreRefusedError,
)
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import begin, each
from lance_core.io.store import Store
from lance_core.publish.decisions import DecisionState, read_decision, say_committed
from lance_core.publish.fold import Fold, fold_uuid, grow, merge_rows, plan_folds
from lance_core.publish.history import committed_in
from lance_core.publish.intent import Intent, extend_intent, put_intent, remove_intent
from lance_core.publish.members import STAGE_AGAIN, Loaded, NotWholeError, clear_committed, lost_files, outdated, quietly
from lance_core.publish.model import COMMITTED, CommitResult, StagedTransaction
from lance_core.publish.staged_properties import facts_of, num_new_fragments
from lance_core.publish.table_id import is_other_table, require_known_records, table_id_of
from lance_core.table.carried import written_fragments
from lance_core.table.draft import TableOptions
from lance_core.table.operations import Append, Delete, Update
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import MAX_INLINE_TRANSACTION_SIZE
from lance_core.wire.transaction import encode_transaction

_T = TypeVar("_T")
IfMoved = Literal["fail", "overwrite"]
Concerns = Callable[[Loaded, Transaction, OpenVersion], bool]
"""Whether a version of others (its transaction, its manifest) brought rows that a staged transaction should have known."""
Check = Callable[[Sequence[tuple[StagedTransaction, Transaction]], Manifest | None], None]
"""Called with what is about to be published and the newest version, before every publication; raises to refuse."""
ReExecute = Callable[[StagedTransaction, str], StagedTransaction]
"""Plans and stages one identity's work again on the newest version, in the place of a finished attempt; called while the
commit has its turn. The second argument names the commit that asks."""


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """What is to be committed, and how.

    `if_moved`: whether a staged Overwrite or Restore refuses ("fail") or replaces ("overwrite") what came since it was
    planned. `options` matter when this creates the table. `re_execute` is asked to stage again what a concurrent commit
    invalidated; without it, or when `may_re_execute` says no of one of them, such a conflict is raised. `concerns` is called
    for each version between the one a member was planned on and the one that is written, right before it is written: if one
    brought rows that the member should have known, that is a conflict. With `partial`, members that cannot be committed are
    named in the result (`refused`) and the others are committed; if none can, the first refusal is raised. `states`: the
    decisions as the caller has just read them. `single`: one reference may go by `publish_single`; not if that was tried.
    """

    refs: tuple[StagedTransaction, ...]
    if_moved: IfMoved = "fail"
    options: TableOptions | None = None
    check: Check | None = None
    re_execute: ReExecute | None = None
    may_re_execute: Callable[[StagedTransaction], bool] = lambda _: True
    max_retries: int = DEFAULT_MAX_RETRIES
    concerns: Concerns | None = None
    partial: bool = False
    states: Mapping[str, DecisionState] = field(default_factory=dict)
    single: bool = True


class InDoubtError(StoreError):
    """The store gave no answer about a publication; making the same commit again settles it."""


class NotDecidedError(StoreError):
    """The work was committed, and its decision could not be put; making the same commit again puts it."""


class RefusedInDoubtError(InDoubtError, StoreRefusedError):
    """The store also refuses to tell: the same commit settles it once the permissions are repaired, a retry does not."""


class RefusedDecisionError(NotDecidedError, StoreRefusedError):
    """The store refused the decision: the same commit puts it once the permissions or the space are there."""


class Publisher:
    """The writing half of one commit call."""

    def __init__(self, store: Store, request: CommitRequest, wanted: Mapping[str, StagedTransaction]) -> None:
        self._store, self._request = store, request
        members = {ref.identity: ref.attempt for ref in wanted.values()}
        self._intent = Intent(naming.new_attempt(), uuids=(fold_uuid(wanted.values()),), attempts=members)
        self.versions = KnownVersions()
        self.in_doubt = False  # a put may still arrive, or a file that was written in vain is there: the intent stays
        self._is_deciding = False  # a version may be there whose members have no decision yet
        self._whole: set[tuple[str, str]] = set()
        self._intended: Callable[[], Intent] | None = None

    @property
    def commit_id(self) -> str:
        """The name of this commit, which its files carry."""
        return self._intent.commit

    @property
    def records(self) -> list[str]:
        """What may be removed when all is committed and decided. Nothing while a put is in doubt."""
        return [] if self.in_doubt or self._intended is None else [self._intent.path]

    def intend(self, newest: int) -> None:
        """Begin to put the intent, once; `newest` is the newest version."""
        if self._intended is None:
            self._intent = replace(self._intent, base=newest)
            self._intended = begin(self._store, partial(put_intent, self._store, self._intent))

    @property
    def is_intended(self) -> bool:
        """Whether the intent is there, or on its way."""
        return self._intended is not None

    def wait_for_intent(self) -> None:
        """The intent is there when this returns."""
        if self._intended is not None:
            self._intended()

    def extend_intent(self, refs: Iterable[StagedTransaction], *, uuids: Iterable[str] = ()) -> None:
        """Say in the intent what may be published; writes only changes."""
        members = {ref.identity: ref.attempt for ref in refs}
        self._intent = extend_intent(self._store, self._intent, uuids=uuids, attempts=members)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Where the block fails the commit is over, unless the store failed: a put may still arrive, so the intent stays."""
        try:
            yield
        except StoreError:
            raise
        except Exception:
            self.end()
            raise

    def decide(self, done: Committed, identities: Sequence[str], known: dict[str, DecisionState], *, table_id: str) -> None:
        """A version is in the log: each of these gets its decision, so that it stays known when the log is pruned."""
        version = done.manifest.version

        def say(store: Store, uuid: str) -> None:
            work = committed_in(done.transaction, uuid, version=version, table_id=table_id)
            known[uuid] = say_committed(store, work, by=self.commit_id, known=known.get(uuid))

        try:
            each(self._store, identities, say)
        except StoreError as error:
            kind = RefusedDecisionError if isinstance(error, StoreRefusedError) else NotDecidedError
            what = f"{self._store.uri}: version {version} was committed, but its decision could not be put: {error}"
            cure = "Make the same commit again: it finds the version and puts the decision."
            raise kind(what, uri=self._store.uri, version=version, cure=cure) from error
        self._is_deciding = False

    def end(self) -> None:
        """This commit is over, no put of it can arrive and none lacks its decision: the absence of its intent says so."""
        if self.in_doubt or self._is_deciding or self._intended is None:
            return
        quietly(self._intended)
        quietly(partial(remove_intent, self._store, self._intent))

    def commit(self, fold: Fold, newest: OpenVersion | None) -> Committed:
        """Publish a fold; `newest` is the newest version, if that was read after what this call has published last."""
        if not fold.late:
            return self._publish(fold, fold.transaction, newest)
        onto = newest or open_version(self._store)
        by_uuid = {item.ref.identity: item for item in fold.members}

        def onto_newest(transaction: Transaction) -> Rebased:
            judge = self._judge_for([by_uuid[transaction.uuid]])
            asked = LoopRequest(attempt=self.commit_id, also_judge=judge, open_at=self.versions)
            return rebase_onto(self._store, transaction, onto, asked)

        if fold.late == "grow":
            return self._publish(fold, grow(fold.members, onto.manifest, fold.transaction, rebase=onto_newest), newest)
        merged = merge_rows(
            self._store, fold.members, onto.manifest, fold.transaction, attempt=self.commit_id, rebase=onto_newest
        )
        try:
            done = self._publish(fold, merged.transaction, newest)
        except InDoubtError:
            raise  # the files may be in use, as they may behind what is no error of ours
        except LanceError:
            self._delete(merged.files)
            raise
        used = frozenset(fragment_paths(written_fragments(done.transaction.operation)))
        self._delete(path for path in merged.files if path not in used)
        return done

    def _delete(self, paths: Iterable[str]) -> None:
        self.in_doubt = not delete_quietly(self._store, *paths) or self.in_doubt

    def note_doubt(self) -> None:
        """A put of it may still arrive."""
        self.in_doubt = True

    def _publish(self, fold: Fold, transaction: Transaction, newest: OpenVersion | None) -> Committed:
        asked = LoopRequest(
            max_retries=self._request.max_retries,
            options=self._request.options,
            strict=fold.strict,
            attempt=self.commit_id,
            before_put=lambda _: self._require_whole(fold),
            on_doubt=self.note_doubt,
            also_judge=self._judge_for(fold.members),
            newest=newest,
            open_at=self.versions,
            keeps_files=self.in_doubt,
        )
        return self.putting(transaction, lambda: commit_in_detail(self._store, transaction, asked))

    def putting(self, transaction: Transaction, put: Callable[[], _T]) -> _T:
        """What `put` gives. From then until `decide`, or an error of ours that says that nothing was put, a version may be
        there of which nothing but the intent tells: what is no error of ours (no memory) leaves that."""
        self._is_deciding = True
        try:
            found = put()
        except CommitStateUnknownError as error:
            # The next call looks at the log before it does anything: this one is safe to repeat, unlike a bare commit.
            kind = RefusedInDoubtError if isinstance(error.__cause__, StoreRefusedError) else InDoubtError
            what = f"{error} It is safe to make this commit again, because it first checks which identities were committed."
            raise kind(what, uri=self._store.uri, operation=transaction.operation.name) from error
        except LanceError:
            self._is_deciding = False
            raise
        self._is_deciding = found is not None
        return found

    def _require_whole(self, fold: Fold) -> None:
        """Before the first put that may carry them: see that all files are there. What aborts a finished attempt makes the
        put fail by a version before it deletes, so once is enough."""
        fresh = [item for item in fold.members if (item.ref.identity, item.ref.attempt) not in self._whole]
        refusals = lost_files(self._store, fresh) if fresh else {}
        self._whole.update((item.ref.identity, item.ref.attempt) for item in fresh if item.ref.identity not in refusals)
        if refusals:
            raise NotWholeError(refusals)

    def _judge_for(self, members: Sequence[Loaded]) -> AlsoJudge | None:
        """What raises MemberConflictError for the members that should have known the rows of a version of others."""
        concerns = self._request.concerns
        if concerns is None:
            return None

        def judge(theirs: Transaction, opened: OpenVersion) -> None:
            version = opened.manifest.version
            later = [number for number, item in enumerate(members) if version > item.ref.read_version]
            found = [number for number in later if concerns(members[number], theirs, opened)]
            if found:
                raise outdated(self._store, members, found, theirs, version)

        return judge


def is_planned_on(item: Loaded, newest: Manifest) -> bool:
    """Whether a staged transaction was planned on just this version: the same number, made by the same transaction."""
    base = facts_of(item.transaction).base
    return bool(base) and (item.ref.read_version, base) == (newest.version, newest.transaction_file)


def require_same_table(
    store: Store,
    items: Sequence[Loaded],
    newest: Manifest,
    *,
    table_id: str | None = None,
    present: Sequence[int] | None = None,
) -> str:
    """The table's id; IncompatibleConflictError for what was planned on another table at this place, and
    UnsupportedRecordError where its records need a newer release."""
    require_known_records(store, newest)
    if table_id is None:
        # Planned on just this version: it is the same table as then, and what it was called then, it is called now.
        known = {facts_of(item.transaction).table_id for item in items if is_planned_on(item, newest)}
        table_id = known.pop() if len(known) == 1 else table_id_of(store, present=present)
    for item in items:
        planned_on = facts_of(item.transaction).table_id
        if is_other_table(planned_on, table_id):
            what = f"{store.uri}: {item.ref.operation} {item.ref.identity} was planned on table {planned_on}, "
            what += f"but the table was created again and now is {table_id}"
            raise IncompatibleConflictError(what, uri=store.uri, cure=STAGE_AGAIN)
    return table_id


@dataclass
class Tally:
    """What this call has done so far."""

    settled: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Of each identity the version, and whether it was committed by this call."""
    published: list[tuple[Sequence[Loaded], Transaction, str]] = field(default_factory=list)
    """Of each version the members, the transaction, and the name of its file."""
    rebased: int = 0
    re_executed: int = 0
    refused: dict[str, LanceError] = field(default_factory=dict)

    def result(self) -> CommitResult:
        """The result for the caller."""
        committed = [item for members, _, _ in self.published for item in members]
        return CommitResult(
            version=max(version for version, _ in self.settled.values()),
            num_versions=len(self.published),
            identities={uuid: outcome for uuid, (_, outcome) in self.settled.items()},
            rows_added=sum(item.ref.num_rows for item in committed),
            rows_deleted=sum(item.ref.num_deleted_rows for item in committed),
            fragments_added=sum(num_new_fragments(item.transaction) for item in committed),
            bytes_added=sum(item.ref.num_bytes for item in committed),
            conflicts_rebased=self.rebased,
            re_executed=self.re_executed,
            refused={uuid: str(error) for uuid, error in self.refused.items()},
        )


_PLAIN = frozenset({"append", "delete", "update", "merge", "replace_where"})
"""What may be published just as it was staged, on the version that it was planned on."""
_FRESH_SECONDS = 60.0
"""So long after the work was planned, a later version is hardly to be expected. A wrong clock costs requests, no more."""


def publish_single(store: Store, ref: StagedTransaction, *, states: dict[str, DecisionState]) -> CommitResult | None:
    """Publish it, exactly once; None where it takes more than this knows: then nothing has happened, or an intent alone, and
    `commit` does it. `states`: decisions as they were just read; what this reads is added.

    Raises what `commit` raises.
    """
    began = time.monotonic()
    if ref.operation not in _PLAIN or not ref.number or not ref.read_version:
        return None
    publisher = Publisher(store, CommitRequest(refs=(ref,)), {ref.identity: ref})
    with publisher.ending():
        result = _publish_single(store, ref, states, publisher)
    if result is None:
        publisher.end()
        return None
    return replace(result, seconds=round(time.monotonic() - began, 6))


def _publish_single(
    store: Store, ref: StagedTransaction, states: dict[str, DecisionState], publisher: Publisher
) -> CommitResult | None:
    """See that the attempt is whole, put it, and say so."""
    opening = begin(store, lambda: open_or_none(store, ref.read_version))
    known = states.get(ref.identity)
    # What is behind it is not needed to publish once: but what only a newer release can read is refused before.
    deciding, behind = (begin(store, partial(_decision, store, ref, ref.number + more, known)) for more in (0, 1))
    opened, state, following = opening(), deciding(), behind()
    if not isinstance(state, DecisionState) or not state.is_finished(ref.attempt) or following is not None:
        return None
    states[ref.identity] = state
    transaction = state.transaction or read_transaction_file(store, ref.transaction_path)
    if opened is None or transaction is None or transaction.uuid != ref.identity:
        return None
    item = Loaded(ref, transaction)
    if not _is_plain(transaction) or not is_planned_on(item, opened.manifest) or _has_moved(store, item):
        return None
    (fold,) = plan_folds([item], newest=opened.manifest, if_moved="fail")
    if fold.late or replace(transaction, properties=fold.transaction.properties) != fold.transaction:
        return None
    table_id = require_same_table(store, [item], opened.manifest)
    publisher.intend(ref.read_version)
    is_lost = bool(lost_files(store, [item]))
    publisher.wait_for_intent()
    if is_lost:
        return None  # the other way says which
    asked = LoopRequest(attempt=ref.attempt, on_doubt=publisher.note_doubt)
    done = publisher.putting(fold.transaction, lambda: publish_on(store, fold.transaction, opened, asked))
    if done is None or done.already:
        return None
    decided = {ref.identity: state}
    publisher.decide(done, [ref.identity], decided, table_id=table_id)
    published = [item], done.transaction, done.manifest.transaction_file
    quietly(lambda: clear_committed(store, *published, states=decided, last=publisher.records))
    return Tally({ref.identity: (done.manifest.version, COMMITTED)}, [published]).result()


def _decision(
    store: Store, ref: StagedTransaction, number: int, known: DecisionState | None
) -> DecisionState | CorruptFileError | None:
    if known is not None and known.number == ref.number and known.is_finished(ref.attempt):
        return known if number == ref.number else None
    try:
        return read_decision(store, ref.identity, number)
    except CorruptFileError as error:
        return error


def _is_plain(transaction: Transaction) -> bool:
    """Whether just this may be the version: unless its transaction is inside, the staged file would be needed for good."""
    is_small = len(encode_transaction(transaction)) <= MAX_INLINE_TRANSACTION_SIZE
    return is_small and isinstance(transaction.operation, Append | Delete | Update)


def _has_moved(store: Store, item: Loaded) -> bool:
    """Whether there is a later version, as far as that is worth a request."""
    is_fresh = 0 <= time.time() - facts_of(item.transaction).planned_at < _FRESH_SECONDS
    return not is_fresh and find_latest_version(store) != item.ref.read_version
