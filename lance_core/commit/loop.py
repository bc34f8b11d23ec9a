"""The commit loop: judge the versions in between, rebase the transaction, publish it, or try again.

::

    read version 4, newest 6     judge our transaction against those of 5 and 6
                                 OK       nothing to do           REBASE  rewrite deletion files against 6
                                 RETRY    RetryableConflictError  NEVER   IncompatibleConflictError
    put 7                        lost?    wait a little, judge 7, put 8, …

A transaction that is found in the log already (same uuid) is not committed again: its version is the answer. That makes
every call of this function safe to repeat with the same transaction. (Spec: FORMAT D.1.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace

from lance_core.commit import conflicts, naming
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES, Backoff
from lance_core.commit.history import follows, is_ancestor
from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import OpenAt, OpenVersion, load_manifest, open_newest, open_or_none, write_hint
from lance_core.commit.put_manifest import WRITER_VERSION, PutOutcome, PutResult, put_manifest, require_put_if_absent
from lance_core.commit.rebase import Rebased, rebase
from lance_core.commit.references import fragment_paths
from lance_core.commit.transactions import transaction_of
from lance_core.errors import CommitError, CommitStateUnknownError, LanceError, RetryableConflictError, StoreError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import FLAG_NO_TRANSACTION_FILE, Manifest
from lance_core.io.parallel import beside, each, helps
from lance_core.io.pool import io_pool
from lance_core.io.store import Store
from lance_core.io.threads import settled
from lance_core.table.build import build
from lance_core.table.carried import written_fragments
from lance_core.table.conflicts import Verdict, VerdictKind, judge
from lance_core.table.draft import TableOptions
from lance_core.table.features import check_writable
from lance_core.table.moment import now_ns
from lance_core.table.operations import Delete, Overwrite, Restore, Update
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import MAX_INLINE_TRANSACTION_SIZE
from lance_core.wire.transaction import encode_transaction, with_packed_fragments

AlsoJudge = Callable[[Transaction, OpenVersion], None]
"""Looks at a version of others: its transaction and its manifest."""


@dataclass(frozen=True, slots=True)
class Committed:
    """How a commit went. `num_rebased`: versions of others that required a rebase. `already`: it had been committed before.

    `transaction` is the one in the log: an earlier try's, when its put arrived late.
    """

    manifest: Manifest
    transaction: Transaction
    num_rebased: int = 0
    already: bool = False


@dataclass(frozen=True, kw_only=True)
class LoopRequest:
    """How a transaction is published.

    `options` matter when it creates the table. `strict` refuses when the table
    moved at all since its read version. `attempt` goes into the names of files that a rebase writes. `opened` is the version
    that it was planned on: it is not read again where a listing shows that it still is the newest. `newest` is the newest
    version as it has just been read. `open_at` opens a version.

    `before_put` is called right before each publication, with its number; it may raise. `on_doubt` is called when a put got
    no response, so that it may still arrive whatever comes back, or when a file that was written in vain could not be
    removed. `keeps_files`: another put of this commit is in doubt: all stays. `there`: files that were there before; they
    are neither written nor removed.

    `also_judge` is called once for each version of others between the one that was read and the one that is written, in
    order, before the put; it raises RetryableConflictError where that version makes the transaction outdated.
    """

    max_retries: int = DEFAULT_MAX_RETRIES
    options: TableOptions | None = None
    strict: bool = False
    attempt: str | None = None
    before_put: Callable[[int], None] = lambda _: None
    on_doubt: Callable[[], None] = lambda: None
    also_judge: AlsoJudge | None = None
    opened: OpenVersion | None = None
    newest: OpenVersion | None = None
    open_at: OpenAt = open_or_none
    keeps_files: bool = False
    there: frozenset[str] = frozenset()


def commit_transaction(
    store: Store,
    transaction: Transaction,
    *,
    max_retries: int = DEFAULT_MAX_RETRIES,
    options: TableOptions | None = None,
    strict: bool = False,
    attempt: str | None = None,
    opened: OpenVersion | None = None,
) -> Manifest:
    """Publish a transaction as the next version and return its manifest. The arguments are fields of `LoopRequest`.

    Raises RetryableConflictError (plan again), IncompatibleConflictError, CommitStateUnknownError (look before you retry),
    StoreError (nothing happened; the same call may be repeated), NotFoundError (no table, and not a creating transaction).
    """
    request = LoopRequest(max_retries=max_retries, options=options, strict=strict, attempt=attempt, opened=opened)
    return commit_in_detail(store, transaction, request).manifest


def commit_in_detail(store: Store, transaction: Transaction, request: LoopRequest) -> Committed:
    """Like `commit_transaction`, with how it went."""
    require_put_if_absent(store)
    loop = CommitLoop(store, transaction, request)
    try:
        return loop.run()
    except CommitStateUnknownError:
        raise  # what was written may be in use
    except LanceError as error:
        loop.clean_up()
        if isinstance(error, CommitError) or (told := loop.doubtful(error)) is error:
            raise
        raise told from error


def rebase_onto(store: Store, transaction: Transaction, newest: OpenVersion, request: LoopRequest) -> Rebased:
    """A planned transaction brought up to `newest`: judged against everything in between and rebased if necessary.

    Nothing is published. Raises what `commit_transaction` raises for conflicts; PartlyCommittedError when it is committed.
    """
    return CommitLoop(store, transaction, request).rebased(newest)


def publish_on(store: Store, transaction: Transaction, newest: OpenVersion, request: LoopRequest) -> Committed | None:
    """Put a transaction that was planned on `newest` as the version behind it, once; None when the number is taken, or when
    that is not known yet: then `on_doubt` is called.

    Its file is the one of the attempt, which was written when it was staged: nothing but the manifest is written. Raises
    what `commit_in_detail` raises.
    """
    require_put_if_absent(store)
    name = naming.transaction_name(transaction.read_version, f"{transaction.uuid}.{request.attempt}")
    there = frozenset((naming.transaction_path(name),))
    loop = CommitLoop(store, transaction, replace(request, opened=newest, newest=newest, there=there))
    try:
        done = loop.try_once()
    except StoreError as error:
        raise loop.doubtful(error) from error
    if done is None or done.manifest.timestamp_ns == loop.tried_at:
        return done
    return replace(done, already=True)  # another commit of this attempt had put it


class CommitLoop:
    """One commit: the transaction as planned, and how far the log has been judged."""

    def __init__(self, store: Store, planned: Transaction, request: LoopRequest) -> None:
        self._store = store
        self._planned = with_packed_fragments(planned)
        self._request = request
        self._options, self._strict, self._attempt = request.options, request.strict, request.attempt
        self._attempts = {identity: str(note.get("attempt", "")) for identity, note in identities_of(planned).items()}
        self._judged = planned.read_version
        self._read: Manifest | None = None
        self._originals: Mapping[int, Fragment] | None = None
        self._to_rebase: list[Transaction] = []
        self._written: set[str] = set()
        self._in_doubt, self._doubtful_version = False, 0
        self._early = Early(store, request.there)
        self._opened, self._newest_known = request.opened or request.newest, request.newest
        self.tried_at = 0

    def run(self) -> Committed:
        backoff, max_retries = Backoff(), self._request.max_retries
        for _ in range(max_retries + 1):
            began = time.monotonic()
            found = self.try_once()
            if found is not None:
                return found
            backoff.wait(try_seconds=time.monotonic() - began)
        if self._in_doubt:
            raise StoreError(f"{self._store.uri}: the store rejected the manifest {max_retries + 1} times")
        raise RetryableConflictError(
            f"{self._store.uri}: lost the race for the next version {max_retries + 1} times",
            uri=self._store.uri,
            operation=self._planned.operation.name,
            cure="Too many writers commit at once: retry, or run the commit tasks in the table's commit pool.",
        )

    def rebased(self, newest: OpenVersion) -> Rebased:
        if self._judge_until(newest) is not None:
            what = f"{self._store.uri}: {self._planned.uuid} was committed in the meantime"
            raise conflicts.PartlyCommittedError(what, uri=self._store.uri)
        return self._rebase(newest)

    def doubtful(self, error: LanceError) -> LanceError:
        """Something failed: after a put without an answer, or one that is in the log, that is more than a failure."""
        return conflicts.unanswered(self._store, self._planned, error) if self._in_doubt else error

    def clean_up(self) -> None:
        """Remove what was written for a version that is not to be."""
        self._early.settle()
        if not self._in_doubt:
            self._delete(self._written)

    def try_once(self) -> Committed | None:
        """One put of the next version; None when it is somebody else's, or nobody's yet (see `doubtful`)."""
        self._put_early()
        newest = self._newest()
        if newest is not None:
            committed = self._judge_until(newest)
            if committed is not None:
                return self._found(committed)
            check_writable(newest.manifest, uri=self._store.uri)
        rebased = self._rebase(newest)
        operation, self.tried_at = self._planned.operation, now_ns()
        manifest = build(
            None if newest is None else newest.manifest,
            rebased.transaction,
            timestamp_ns=self.tried_at,
            writer_version=WRITER_VERSION,
            options=self._options,
            source=load_manifest(self._store, operation.version) if isinstance(operation, Restore) else None,
            transaction_file=self._transaction_file(newest, rebased.transaction),
        )
        put = self._put(manifest, rebased.transaction, newest)
        if put.outcome is PutOutcome.OURS:
            done = Committed(manifest, rebased.transaction) if put.found is None else self._committed(put.found)
            self._in_doubt, before = True, self._in_doubt  # should the look fail: what it may name has to stay
            with beside(self._store, lambda: write_hint(self._store, done.manifest.version)):
                self._require_lineage(done, is_doubtful=before)
            self._keep_only(done)
            return replace(done, num_rebased=len(self._to_rebase))
        if put.outcome is PutOutcome.NOT_THERE:
            self._in_doubt, self._doubtful_version = True, manifest.version
            self._request.on_doubt()
        return None

    def _committed(self, opened: OpenVersion, *, already: bool = False) -> Committed:
        """What is in the log as ours: an earlier try may have written it, with other files than the latest one."""
        found = transaction_of(self._store, opened) or self._planned
        return Committed(opened.manifest, found, len(self._to_rebase), already)

    def _found(self, opened: OpenVersion) -> Committed:
        """It is in the log already. A put that was in doubt for this number, or one before, cannot arrive any more."""
        self._early.settle()
        done = self._committed(opened, already=True)
        if not self._in_doubt or opened.manifest.version >= self._doubtful_version:
            self._keep_only(done)
        return done

    def _require_lineage(self, done: Committed, *, is_doubtful: bool) -> None:
        """One more look: a number that another library pruned may be taken again, and then nobody comes from our version."""
        if not is_ancestor(self._store, done.manifest, done.transaction):
            self._in_doubt = is_doubtful
            stray = (naming.manifest_path(done.manifest.version, scheme) for scheme in naming.NamingScheme)
            conflicts.delete_quietly(self._store, *stray)  # look-ups judge it again
            raise conflicts.history_gone(self._store, self._planned, done.manifest.version)

    def _newest(self) -> OpenVersion | None:
        newest, self._newest_known = self._newest_known, None
        if newest is None:
            newest = self._opened = open_newest(self._store, known=self._opened)
        if newest is not None:
            return newest
        if self._planned.read_version == 0 and isinstance(self._planned.operation, Overwrite):
            return None
        raise conflicts.no_table(self._store, self._planned)

    def _judge_until(self, newest: OpenVersion) -> OpenVersion | None:
        """Judge every version not judged yet. The version of our own earlier commit, if that is what we find."""
        numbers = range(self._judged + 1, newest.manifest.version + 1)
        opened = [*each(self._store, numbers[:-1], self._request.open_at), newest] if numbers else []
        others: list[tuple[Transaction, OpenVersion]] = []
        if len(opened) > 1 and opened[0] is not None and not follows(self._store, opened[0], self._judged):
            raise conflicts.history_gone(self._store, self._planned, numbers[0])
        for number, item in zip(numbers, opened, strict=True):
            theirs = None if item is None else transaction_of(self._store, item)
            if item is None or theirs is None:
                raise conflicts.history_gone(self._store, self._planned, number)
            if theirs.uuid == self._planned.uuid or conflicts.is_carried(self._store, self._attempts, theirs, number):
                self._require_lineage(self._committed(item), is_doubtful=self._in_doubt)
                return item
            others.append((theirs, item))
        # Ours may be found behind a conflict (others followed it), so all are read before any is complained about.
        if newest.manifest.version >= self._doubtful_version:
            self._in_doubt = False  # the number is taken, and not by us: the put that got no answer has lost
        for theirs, item in others:
            conflicts.refuse_aborted(self._store, self._attempts, theirs, item.manifest.version)
        for theirs, item in others:
            self._accept(theirs, self._verdict(theirs), item.manifest.version)
            if self._request.also_judge is not None:
                self._request.also_judge(theirs, item)
        self._judged = newest.manifest.version
        return None

    def _verdict(self, theirs: Transaction) -> Verdict:
        if not isinstance(self._planned.operation, (Delete, Update)):
            return judge(self._planned, theirs)
        original = self._original()
        if original is not None and self._originals is None:
            touched = self._planned.operation.touches().fragments
            self._originals = FragmentList.of(original.fragments).pick(touched)
        return judge(self._planned, theirs, affected_rows=original is not None, originals=self._originals)

    def _original(self) -> Manifest | None:
        """The version the transaction was planned on, when it can still be read."""
        if self._read is None and self._planned.read_version:
            opened = self._request.open_at(self._store, self._planned.read_version)
            self._read = None if opened is None else opened.manifest
        return self._read

    def _accept(self, theirs: Transaction, verdict: Verdict, number: int) -> None:
        if self._strict and not conflicts.is_abort(theirs):
            raise conflicts.moved(self._store, self._planned, theirs.operation.name, number)
        if verdict.kind in (VerdictKind.NEVER, VerdictKind.RETRY):
            raise conflicts.conflict(self._store, self._planned, theirs, verdict, number)
        if verdict.kind is VerdictKind.REBASE:
            self._to_rebase.append(theirs)

    def _rebase(self, newest: OpenVersion | None) -> Rebased:
        if newest is None or not self._to_rebase:
            return Rebased(self._planned)
        theirs, original = self._to_rebase, self._original()
        rebased = rebase(
            self._store, self._planned, newest.manifest, theirs=theirs, original=original, attempt=self._attempt
        )
        self._written.update(rebased.files)
        return rebased

    def _transaction_file(self, newest: OpenVersion | None, transaction: Transaction) -> str:
        if newest is not None:
            has_none = bool(newest.manifest.writer_feature_flags & FLAG_NO_TRANSACTION_FILE)
            without = has_none or conflicts.is_abort(transaction)
        else:
            without = self._options is not None and self._options.no_transaction_file
        if without or self._attempt is None:
            return "" if without else transaction.file_name
        # Named after the commit as well: two commits of the same work never share a file, so each may remove its own.
        return naming.transaction_name(transaction.read_version, f"{transaction.uuid}.{self._attempt}")

    def _put_early(self) -> None:
        """Send the transaction's file while the log is checked: most commits find nothing there that changes it."""
        is_wanted = self._opened is not None and not self._to_rebase and self._early.is_wanted
        if is_wanted and (name := self._transaction_file(self._opened, self._planned)):
            self._written.add(naming.transaction_path(name))
            self._early.put(naming.transaction_path(name), self._planned)

    def _put(self, manifest: Manifest, transaction: Transaction, newest: OpenVersion | None) -> PutResult:
        data = self._early.encoded(transaction)
        if manifest.transaction_file:
            self._written.update({path := naming.transaction_path(manifest.transaction_file)} - self._early.there)
            # The inline copy counts, unless the transaction is too large for one.
            durable = len(data) > MAX_INLINE_TRANSACTION_SIZE
            if not self._early.has_sent(path, transaction):
                self._store.put(path, data, durable=durable)
        self._request.before_put(manifest.version)
        if self._early.has_failed() and manifest.transaction_file:
            self._store.put(path, data, durable=durable)
        is_v1 = newest is None and self._options is not None and self._options.v1_manifest_names
        scheme = newest.scheme if newest else naming.NamingScheme.V1 if is_v1 else naming.NamingScheme.V2
        return put_manifest(self._store, manifest, uuid=transaction.uuid, transaction=data, scheme=scheme)

    def _keep_only(self, done: Committed) -> None:
        # Earlier tries left files that this version does not use; their puts have failed, because their numbers are taken.
        written = self._written - {naming.transaction_path(done.manifest.transaction_file)}
        self._delete(written and written.difference(fragment_paths(written_fragments(done.transaction.operation))))

    def _delete(self, paths: Collection[str]) -> None:
        if not self._request.keeps_files and not conflicts.delete_quietly(self._store, *paths):
            self._request.on_doubt()


class Early:
    """The file of a transaction, written before it is certain that it is wanted as it is."""

    def __init__(self, store: Store, there: frozenset[str]) -> None:
        """`there`: files that were there before; they are neither written nor removed."""
        self._store, self.there = store, there
        self._encoded: tuple[Transaction, bytes] | None = None
        self._sent: tuple[str, Transaction, Future[None]] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether something can be put early: once, and where that helps."""
        return self._sent is None and not self.there and helps(self._store)

    def encoded(self, transaction: Transaction) -> bytes:
        """The bytes of a transaction, made once."""
        if self._encoded is None or self._encoded[0] is not transaction:
            self._encoded = (transaction, encode_transaction(transaction))
        return self._encoded[1]

    def put(self, path: str, transaction: Transaction) -> None:
        """Begin to write."""
        done = io_pool(self._store.uri).submit(self._store.put, path, self.encoded(transaction))
        self._sent = (path, transaction, done)

    def has_sent(self, path: str, transaction: Transaction) -> bool:
        """Whether just this is on its way, or written."""
        return path in self.there or (self._sent is not None and self._sent[0] == path and self._sent[1] is transaction)

    def has_failed(self) -> bool:
        """Whether something was sent and could not be written. Nothing is under way afterwards."""
        self.settle()
        return self._sent is not None and self._sent[2].exception() is not None

    def settle(self) -> None:
        """Wait until nothing is under way."""
        if self._sent is not None:
            settled([self._sent[2]])
