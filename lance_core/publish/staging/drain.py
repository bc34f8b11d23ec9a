"""Load the staged transactions of a commit, and clear those that have landed.

::

    load_staged      the staged transaction of each reference
    require_whole    fenced for this commit, still the one that counts, every file there; nothing is published before
    drain_landed     superseded deletion files, the staged transaction, records; the ledger keeps the memory
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.references import data_paths, deletion_paths, fragment_paths, named_fragments, names_files
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import CorruptFileError, IncompatibleConflictError, LanceError
from lance_core.io.many import delete_landed, missing
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry import attempts as registry
from lance_core.publish.registry.fences import chain_paths, fence_for_publishing, fence_path
from lance_core.publish.registry.group_fences import publish_together
from lance_core.publish.registry.landings import known_landing
from lance_core.publish.registry.ledger import landing_of
from lance_core.publish.staging.remove import Key, remove_attempt
from lance_core.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Loaded:
    """A staged transaction with its reference."""

    ref: StagedTransaction
    transaction: Transaction


def load_staged(
    store: Store, refs: Sequence[StagedTransaction], *, known: Mapping[StagedTransaction, Transaction]
) -> list[Loaded | LanceError | None]:
    """What references refer to; None for one that the ledger says has landed, the refusal for one that cannot be committed.

    `known` has transactions that were read already.
    """
    asked = [ref for ref in refs if ref not in known]
    found = dict(zip(asked, each(store, asked, _load_one), strict=True))
    return [_loaded(store, ref, known[ref]) if ref in known else found[ref] for ref in refs]


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision for publication: `refusals` by identity; `shared`: attempts that another commit had decided
    to publish before; `together`: those that were decided by their groups, for this version only."""

    refusals: Mapping[str, LanceError]
    shared: frozenset[Key]
    together: frozenset[Key]


def require_whole(store: Store, items: Sequence[Loaded], *, commit: str, version: int) -> Decided:
    """Decide for publication in `version`, then see that each attempt is still what counts and has its files.

    In this order: a process that withdrew an attempt before had won its fence, and deletes everything before the fence goes
    again; a process that withdraws it from now on finds this commit's.
    """
    groups = {(item.ref.identity, item.ref.attempt): item.ref.group for item in items}
    together, others = publish_together(store, [*groups], groups, commit=commit, version=version)
    fences = fence_for_publishing(store, [key for key in groups if key not in together], commit=commit)
    # Where another commit had decided by a group, this one is named by a fence of its own now, but was not the first.
    fences.update({key: theirs for key, theirs in others.items() if not fences[key].withdraws})
    fences.update(together)
    mine = [item for item in items if fences[item.ref.identity, item.ref.attempt].commit == commit]
    lost = _without_files(store, mine)

    def check(store: Store, item: Loaded) -> LanceError | None:
        key = (item.ref.identity, item.ref.attempt)
        if fences[key].commit == commit and names_files(item.transaction, writers=item.ref.writers):
            # Nobody had decided before, so if it was withdrawn, that is over, and its files, which come next, went first.
            return None
        try:
            require_counts(store, item.ref, is_withdrawn=fences[key].withdraws)
        except LanceError as error:
            return error
        return None

    found = each(store, items, check)
    refusals = {item.ref.identity: error for item, error in zip(items, found, strict=True) if error is not None}
    rest = [item for item in items if item.ref.identity not in refusals and item not in mine]
    refusals = {**lost, **_without_files(store, rest), **refusals}
    shared = frozenset(key for key, fence in fences.items() if fence.commit != commit)
    return Decided(refusals, shared, frozenset(together))


def _load_one(store: Store, ref: StagedTransaction) -> Loaded | LanceError | None:
    # Whether it still counts and is whole is checked after its fence; before that, a check would be worthless.
    try:
        transaction = read_transaction_file(store, ref.transaction_path) if ref.transaction_path else None
        if transaction is not None:
            return _loaded(store, ref, transaction)
        require_counts(store, ref, is_withdrawn=registry.is_withdrawn(store, ref.identity, ref.attempt))
        raise _files_gone(store, ref, [ref.transaction_path])
    except LanceError as error:
        if error.retryable:
            raise
        # The ledger is written before records are cleared away, so what another commit cleared is found there.
        return None if known_landing(store, ref.identity) is not None else error


def _loaded(store: Store, ref: StagedTransaction, transaction: Transaction) -> Loaded | LanceError | None:
    if transaction.uuid == ref.identity:
        return Loaded(ref, transaction)
    if known_landing(store, ref.identity) is not None:
        return None
    # Landed work is found by the uuid: under another one it would not be found, and would land twice.
    return CorruptFileError(
        f"{store.uri}: {ref.transaction_path}: the uuid is {transaction.uuid!r}, expected {ref.identity!r}",
        uri=store.uri,
        cure="Abort the staged transaction (`lance staged abort`) and clear its staging task.",
    )


def require_counts(store: Store, ref: StagedTransaction, *, is_withdrawn: bool) -> None:
    """IncompatibleConflictError unless the attempt is the one that counts for its identity."""
    finished = registry.read_finished(store, ref.identity)
    if finished is None or finished.attempt != ref.attempt or is_withdrawn:
        is_other = finished is not None and finished.attempt != ref.attempt
        now = f"attempt {finished.attempt} is staged" if finished is not None and is_other else "nothing is staged"
        raise IncompatibleConflictError(
            f"{store.uri}: attempt {ref.attempt} of {ref.identity} was withdrawn; for this identity {now}",
            uri=store.uri,
            cure="Run the staging task again and commit its result.",
        )


def _without_files(store: Store, items: Sequence[Loaded]) -> dict[str, LanceError]:
    """Refusals of those that have lost files, by identity; all files are looked for at once."""
    named = {item.ref: data_paths(item.transaction, writers=item.ref.writers) for item in items}
    gone = frozenset(missing(store, [path for paths in named.values() for path in paths]))
    lost = {ref: [path for path in paths if path in gone] for ref, paths in named.items()}
    return {ref.identity: _files_gone(store, ref, paths) for ref, paths in lost.items() if paths}


def _files_gone(store: Store, ref: StagedTransaction, missing: Sequence[str]) -> IncompatibleConflictError:
    return IncompatibleConflictError(
        f"{store.uri}: {len(missing)} staged files of {ref.identity} no longer exist, for example {missing[0]}",
        uri=store.uri,
        cure="The cleanup of another library may have removed them before the commit; run the staging task again.",
    )


def drain_landed(store: Store, identity: str) -> None:
    """Clear away every attempt of a landed identity; what a version names stays, and the ledger keeps the memory."""
    if landing_of(store, identity) is None:
        return
    finished = registry.find_finished(store, identity)
    attempts = [] if finished is None else [finished.attempt]
    for attempt in dict.fromkeys(attempts):
        remove_attempt(store, identity, attempt, by="its landing", landed_too=True)


def drain_published(
    store: Store,
    items: Sequence[Loaded],
    published: Transaction,
    *,
    named: str,
    shared: Collection[Key] = (),
    last: Sequence[str] = (),
) -> None:
    """Remove what staged transactions left that landed in `published`: files before records, so a killed drain is resumed.

    `named`: the transaction file of that version, which may be a staged one. `shared`: attempts that several commits had
    decided to publish. `last`: what goes behind all else, in the same request where the store removes many at once: the
    ledger has been told, so no record of these is asked any more.
    """
    by_name = [item.ref for item in items if item.ref.has_more or item.ref.adopts]
    for ref in by_name:
        remove_attempt(store, ref.identity, ref.attempt, by="its landing", landed_too=True)
    kept = naming.transaction_path(named) if named else ""
    plain = [item.ref for item in items if item.ref not in by_name]
    files = [*_superseded(items, published), *(ref.transaction_path for ref in plain if ref.transaction_path != kept)]
    delete_landed(store, files, [_records(ref, shared) for ref in plain], last=last)


def _records(ref: StagedTransaction, shared: Collection[Key]) -> list[str]:
    key = (ref.identity, ref.attempt)
    started = registry.record_path(*key, registry.STARTED)
    fences = chain_paths(*key) if key in shared else [fence_path(*key)]
    return [registry.finished_path(ref.identity), started, *fences]


def _superseded(items: Iterable[Loaded], published: Transaction) -> list[str]:
    """Deletion files of landed attempts that a rebase or a fold replaced by others: what landed does not name them."""
    staged = [path for item in items for path in deletion_paths(item.transaction, attempt=item.ref.attempt)]
    used = frozenset(fragment_paths(named_fragments(published.operation))) if staged else frozenset()
    return [path for path in staged if path not in used]
