"""Publish one staged transaction just as it is, on the very version that it was planned on, with as few requests as safe.

::

    the decision that it is finished, and that there is none behind it  ‖  the version that it was planned on
    intent  ‖  its files
    manifest                   as the next version, if absent; it names the staged transaction's own file
    -> lineage, decision, clearing  as ever

What became of finished work is in the log since its read version: a commit, or the version of an abort. So where the put of
the next version succeeds, and later versions come from it, nothing had become of it, and no decision after that one is
requested. The versions are not listed before: if there is a later one, the put fails, and if there was one that has been
removed, the look behind the put finds it. For work that was planned longer ago the versions are listed all the same,
because then there often is a later one, and a try in vain costs more than a listing.

If anything is not as expected, nothing has happened, or an intent alone, and the work is left to `commit`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lance_core.commit import naming
from lance_core.commit.committed import Committed
from lance_core.commit.loop import LoopRequest, publish_on
from lance_core.commit.manifests import OpenVersion, find_latest_version, open_or_none
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import CommitStateUnknownError, CorruptFileError, LanceError, StoreError
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.decisions import DecisionState, read_decision, say_committed
from lance_core.publish.errors import in_doubt, not_decided
from lance_core.publish.fold import plan_folds
from lance_core.publish.history import committed_in
from lance_core.publish.intent import Intent, put_intent, remove_intent
from lance_core.publish.members import Loaded, clear_committed, lost_files, quietly
from lance_core.publish.model import COMMITTED, CommitResult, StagedTransaction
from lance_core.publish.preconditions import is_planned_on, require_same_table
from lance_core.publish.staged_properties import facts_of
from lance_core.publish.tally import Tally
from lance_core.table.operations import Append, Delete, Update
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import MAX_INLINE_TRANSACTION_SIZE
from lance_core.wire.transaction import encode_transaction

_PLAIN = frozenset({"append", "delete", "update", "merge", "replace_where"})
"""What may be published just as it was staged, on the version that it was planned on."""
_FRESH_SECONDS = 60.0
"""So long after the work was planned, a later version is hardly to be expected. A wrong clock costs requests, no more."""


def publish_single(store: Store, ref: StagedTransaction, *, states: dict[str, DecisionState]) -> CommitResult | None:
    """Publish it, exactly once; None where it takes more than this knows, and then `commit` does it. `states`: decisions as
    they were just read; what this reads is added.

    Raises what `commit` raises.
    """
    began = time.monotonic()
    if ref.operation not in _PLAIN or not ref.number or not ref.read_version:
        return None
    work = _Single(store, ref, states)
    try:
        result = work.publish()
    except StoreError:
        raise  # a put may still arrive
    except LanceError:
        work.end()
        raise
    if result is None:
        work.end()
        return None
    return replace(result, seconds=round(time.monotonic() - began, 6))


class _Single:
    def __init__(self, store: Store, ref: StagedTransaction, states: dict[str, DecisionState]) -> None:
        self._store, self._ref, self._states = store, ref, states
        known = states.get(ref.identity)
        is_last = known is not None and known.is_finished(ref.attempt) and known.number == ref.number
        self._known = known if is_last else None
        self._intent = Intent(naming.new_attempt(), attempts={ref.identity: ref.attempt}, base=ref.read_version)
        self._intended: Callable[[], object] | None = None
        self._in_doubt = False

    def publish(self) -> CommitResult | None:
        """See that the attempt is whole, put it, and say so."""
        store, ref = self._store, self._ref
        opening = begin(store, lambda: open_or_none(store, ref.read_version))
        deciding = begin(store, self._decided)
        is_last = begin(store, self._is_last)
        opened, state, last = opening(), deciding(), is_last()
        if state is None or not last:
            return None
        self._states[ref.identity] = state
        if opened is None:
            return None
        transaction = state.transaction or read_transaction_file(store, ref.transaction_path)
        if transaction is None or transaction.uuid != ref.identity:
            return None
        if not isinstance(transaction.operation, Append | Delete | Update):
            return None
        item = Loaded(ref, transaction)
        if not is_planned_on(item, opened.manifest) or self._has_moved(item):
            return None
        if len(encode_transaction(transaction)) > MAX_INLINE_TRANSACTION_SIZE:
            return None  # a version without its transaction inside would need the file of the staged one for good
        (fold,) = plan_folds([item], newest=opened.manifest, if_moved="fail")
        if fold.settles_late or replace(transaction, properties=fold.transaction.properties) != fold.transaction:
            return None
        table_id = require_same_table(store, [item], opened.manifest, table_id=None, present=None)
        self._intended = begin(store, partial(put_intent, store, self._intent))
        is_lost = bool(lost_files(store, [item]))
        self._intended()
        if is_lost:
            return None  # the other way says which
        done = self._put(fold.transaction, opened)
        if done is None or done.already:
            return None
        return self._note(item, done, state, table_id)

    def _has_moved(self, item: Loaded) -> bool:
        """Whether there is a later version, as far as that is worth a request."""
        is_fresh = 0 <= time.time() - facts_of(item.transaction).planned_at < _FRESH_SECONDS
        return not is_fresh and find_latest_version(self._store) != self._ref.read_version

    def _decided(self) -> DecisionState | None:
        """The decision that it is finished, unless that is not there."""
        if self._known is not None:
            return self._known
        try:
            found = read_decision(self._store, self._ref.identity, self._ref.number)
        except CorruptFileError:
            return None
        return found if found is not None and found.is_finished(self._ref.attempt) else None

    def _is_last(self) -> bool:
        """Whether nothing is decided behind it. Not needed to publish it once: but what only a newer release can read is
        refused before anything is published."""
        if self._known is not None:
            return True
        try:
            return read_decision(self._store, self._ref.identity, self._ref.number + 1) is None
        except CorruptFileError:
            return False

    def end(self) -> None:
        """Nothing that was put can arrive any more: the intent goes."""
        if self._intended is None or self._in_doubt:
            return
        quietly(self._intended)  # what is on its way would come behind its removal
        quietly(partial(remove_intent, self._store, self._intent))

    def _note_doubt(self) -> None:
        self._in_doubt = True

    def _put(self, transaction: Transaction, opened: OpenVersion) -> Committed | None:
        asked = LoopRequest(attempt=self._ref.attempt, on_doubt=self._note_doubt)
        try:
            return publish_on(self._store, transaction, opened, asked)
        except CommitStateUnknownError as error:
            raise in_doubt(self._store, transaction, error) from error

    def _note(self, item: Loaded, done: Committed, state: DecisionState, table_id: str) -> CommitResult:
        version, identity = done.manifest.version, self._ref.identity
        work = committed_in(done.transaction, identity, version=version, table_id=table_id)
        try:
            known = say_committed(self._store, work, by=self._intent.commit, known=state)
        except StoreError as error:
            raise not_decided(self._store, version, error) from error
        named, last = done.manifest.transaction_file, [self._intent.path]
        quietly(
            lambda: clear_committed(self._store, [item], done.transaction, named=named, states={identity: known}, last=last)
        )
        return Tally(outcome={identity: COMMITTED}, versions={identity: version}, num_versions=1, committed=[item]).result()
