"""What a commit takes up and what it leaves: loading staged transactions, clearing away those that have landed.

::

    load_staged    finished record of this very attempt, no withdrawal mark, transaction file, every data file
    drain_landed   superseded deletion files, the staged transaction, records; the ledger keeps the memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.bulk import delete_all, delete_groups
from lance_core.commit.log.manifests import load_manifest
from lance_core.commit.log.transactions import read_transaction_file
from lance_core.commit.model import StagedTransaction
from lance_core.commit.records import each
from lance_core.commit.references import data_paths, referenced_files
from lance_core.commit.registry import attempts as registry
from lance_core.commit.registry.ledger import landing_of
from lance_core.commit.staging.abort import remove_attempt
from lance_core.commit.staging.staged import missing_files
from lance_core.errors import IncompatibleConflictError, NotFoundError
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction


def load_staged(store: Store, refs: Sequence[StagedTransaction]) -> list[Loaded | None]:
    """What references refer to, checked to be whole; None for one that has landed meanwhile.

    Called when the commit's claim is there: marks are looked at after that, never before (see `claims`).
    """
    withdrawn = registry.withdrawn_attempts(store, [(ref.uuid, ref.attempt) for ref in refs])
    return each(store, refs, lambda place, ref: _load_one(place, ref, is_withdrawn=(ref.uuid, ref.attempt) in withdrawn))


def _load_one(store: Store, ref: StagedTransaction, *, is_withdrawn: bool) -> Loaded | None:
    try:
        return _load_whole(store, ref, is_withdrawn=is_withdrawn)
    except IncompatibleConflictError:
        # The ledger is written before records are cleared away, so what another commit cleared is found there.
        if landing_of(store, ref.uuid) is None:
            raise
        return None


def _load_whole(store: Store, ref: StagedTransaction, *, is_withdrawn: bool) -> Loaded:
    finished = registry.read_finished(store, ref.uuid)
    if finished is None or finished.attempt != ref.attempt or is_withdrawn:
        now = "nothing is staged" if finished is None else f"attempt {finished.attempt} is what counts"
        raise IncompatibleConflictError(
            f"{store.uri}: attempt {ref.attempt} of {ref.uuid} was withdrawn; {now} for this identity",
            uri=store.uri,
            cure="Run the staging task again and commit what it returns.",
        )
    transaction = read_transaction_file(store, ref.transaction_path)
    missing = [ref.transaction_path] if transaction is None else missing_files(store, transaction, attempt=ref.attempt)
    if transaction is None or missing:
        raise IncompatibleConflictError(
            f"{store.uri}: {len(missing)} staged files of {ref.uuid} are gone, {missing[0]} for one",
            uri=store.uri,
            cure="Another library's cleanup removed them before the commit; run the staging task again.",
        )
    return Loaded(ref, transaction)


def drain_landed(store: Store, identity: str) -> None:
    """Remove the records of a landed identity; files of attempts other than the landed one go, too."""
    landing = landing_of(store, identity)
    if landing is None:
        return
    finished = registry.read_finished(store, identity)
    if finished is None:
        return
    if landing.attempt and finished.attempt != landing.attempt:
        remove_attempt(store, identity, finished.attempt)
        return
    transaction = read_transaction_file(store, finished.transaction_path)
    if transaction is None:
        registry.forget_attempt(store, identity, finished.attempt)
    else:
        drain_published(store, [Loaded(finished, transaction)], landing.version)


def drain_published(store: Store, items: Sequence[Loaded], version: int) -> None:
    """Remove what staged transactions left that landed as `version`: the records go last, so a killed drain is resumed."""
    delete_all(store, _superseded(store, items, version))
    delete_groups(store, [_records(item.ref) for item in items])


def _records(ref: StagedTransaction) -> list[str]:
    started = registry.record_path(ref.uuid, ref.attempt, registry.STARTED)
    return [ref.transaction_path, registry.finished_path(ref.uuid), started]


def _superseded(store: Store, items: Sequence[Loaded], version: int) -> list[str]:
    """Deletion files of landed attempts that a rebase or a fold replaced by others."""
    staged = [path for item in items for path in data_paths(item.transaction, attempt=item.ref.attempt)]
    deletions = [path for path in staged if path.startswith(f"{naming.DELETIONS}/")]
    if not deletions:
        return []
    try:
        used = frozenset(referenced_files(load_manifest(store, version)))
    except NotFoundError:
        return []
    return [path for path in deletions if path not in used]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A staged transaction with its reference."""

    ref: StagedTransaction
    transaction: Transaction
