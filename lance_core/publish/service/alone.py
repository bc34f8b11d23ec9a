"""Publish one staged transaction just as it is, on the very version that it was planned on, with as few requests as safe.

::

    fence "publish", alone  ‖  the version that it was planned on  ‖  the staged transaction
    its files, or its record   behind the fence: who withdraws an attempt removes them before the fence
    manifest                   as the next version, if absent; it names the staged transaction's own file
    -> look, ledger, clearing  as ever

The commit writes no file but the manifest, so nothing has to be found by its name if it dies, and it needs no claim for
that; that its put may be on its way is said by its fence. The versions are not listed before: if there is a later one, the
put fails, and if there was one that has been removed, the look behind the put finds it. For work that was planned longer ago
the versions are listed all the same, because then there often is a later one, and a try in vain costs more than a listing.

If anything is not as expected, nothing has happened but the fence, and the work is left to `commit_staged`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from lance_core.commit import naming
from lance_core.commit.committed import Committed
from lance_core.commit.manifests import OpenVersion, find_latest_version, open_or_none
from lance_core.commit.once import publish_on
from lance_core.commit.references import names_files
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError, StoreError
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.model import LANDED, CommitResult, StagedTransaction
from lance_core.publish.registry.fences import end_alone, fence_alone
from lance_core.publish.registry.ledger import record_fold
from lance_core.publish.service.clearing import quietly
from lance_core.publish.service.errors import in_doubt, not_in_ledger
from lance_core.publish.service.fold import plan_folds
from lance_core.publish.service.preconditions import is_planned_on, require_same_table
from lance_core.publish.service.tally import Tally
from lance_core.publish.staging.drain import Loaded, drain_published, require_counts
from lance_core.publish.staging.staged import missing_files
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import MAX_INLINE_TRANSACTION_SIZE
from lance_core.wire.transaction import encode_transaction

_FRESH_SECONDS = 60.0
"""So long after the work was planned, a later version is hardly to be expected. A wrong clock costs requests, no more."""


def publish_alone(store: Store, ref: StagedTransaction, *, known: Transaction | None = None) -> CommitResult | None:
    """Publish it, exactly once; None where it takes more than this knows, and then `commit_staged` does it. `known` is the
    staged transaction, for a caller that has read it.

    Raises what `commit_staged` raises.
    """
    began, now = time.monotonic(), time.time()
    if not _may_be_alone(ref):
        return None
    if not 0 <= now - ref.planned_at < _FRESH_SECONDS and find_latest_version(store) != ref.read_version:
        return None
    opening = begin(store, lambda: open_or_none(store, ref.read_version))
    reading = begin(store, lambda: known or read_transaction_file(store, ref.transaction_path))
    work = _Alone(store, ref)
    is_first = fence_alone(store, ref.identity, ref.attempt, commit=work.commit)
    if not is_first:
        return None
    try:
        result = work.publish(opening(), reading())
    except StoreError:
        raise  # a put may still land
    except LanceError:
        work.end()
        raise
    if result is None:
        work.end()
        return None
    return replace(result, seconds=round(time.monotonic() - began, 6))


def _may_be_alone(ref: StagedTransaction) -> bool:
    name = naming.transaction_name(ref.read_version, f"{ref.identity}.{ref.attempt}")
    is_plain = ref.plain and ref.transaction_path == naming.transaction_path(name)
    return is_plain and ref.later_only and bool(ref.base)


class _Alone:
    def __init__(self, store: Store, ref: StagedTransaction) -> None:
        self._store, self._ref = store, ref
        self.commit = naming.new_attempt()
        self._is_gone = self._in_doubt = False

    def publish(self, opened: OpenVersion | None, transaction: Transaction | None) -> CommitResult | None:
        """Behind the fence: see that the attempt is whole, put it, and tell the ledger."""
        if opened is None or not is_planned_on(self._ref, opened.manifest):
            return None
        if transaction is None or transaction.uuid != self._ref.identity or not self._is_whole(transaction):
            self._is_gone = True  # or not the one that was staged: no commit publishes it
            return None
        if len(encode_transaction(transaction)) > MAX_INLINE_TRANSACTION_SIZE:
            return None  # a version without its transaction inside would need the file of the staged one for good
        item = Loaded(self._ref, transaction)
        (fold,) = plan_folds([item], newest=opened.manifest, if_moved="fail")
        if fold.settles_late or replace(transaction, properties=fold.transaction.properties) != fold.transaction:
            return None
        incarnation = require_same_table(self._store, [item], opened.manifest, incarnation=None, present=None)
        done = self._put(fold.transaction, opened)
        if done is None or done.already:
            self._is_gone = done is not None  # another commit has landed it, so nobody publishes it again
            return None
        return self._note(item, done, incarnation)

    def end(self) -> None:
        """Nothing that was put can land any more: the fence says so, for another commit to go on with."""
        key = self._ref.identity, self._ref.attempt
        if not self._in_doubt:
            quietly(partial(end_alone, self._store, *key, commit=self.commit, is_gone=self._is_gone))

    def _is_whole(self, transaction: Transaction) -> bool:
        if names_files(transaction, writers=self._ref.writers):
            return not missing_files(self._store, transaction, writers=self._ref.writers)
        try:  # whole fragments are deleted: no file tells whether it was withdrawn
            require_counts(self._store, self._ref, is_withdrawn=False)
        except IncompatibleConflictError:
            return False
        return True

    def _put(self, transaction: Transaction, opened: OpenVersion) -> Committed | None:
        def note_doubt() -> None:
            self._in_doubt = True

        try:
            return publish_on(self._store, transaction, opened, attempt=self._ref.attempt, on_doubt=note_doubt)
        except CommitStateUnknownError as error:
            raise in_doubt(self._store, transaction, error) from error

    def _note(self, item: Loaded, done: Committed, incarnation: str) -> CommitResult:
        version, identity = done.manifest.version, self._ref.identity
        try:
            record_fold(self._store, [identity], version=version, transaction=done.transaction, incarnation=incarnation)
        except StoreError as error:
            raise not_in_ledger(self._store, version, error) from error
        named = done.manifest.transaction_file
        quietly(lambda: drain_published(self._store, [item], done.transaction, named=named))
        return Tally(outcome={identity: LANDED}, versions={identity: version}, num_versions=1, landed=[self._ref]).result()
