"""Conditions that must hold before a commit publishes anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lance_core.commit import naming
from lance_core.commit.conflicts import is_abort, moved
from lance_core.commit.manifests import OpenVersion, find_latest_version, open_version
from lance_core.commit.transactions import load_transaction
from lance_core.errors import InputError, LanceError, NotFoundError, RetryableConflictError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.publish.fold import Fold
from lance_core.publish.members import Loaded, MemberConflictError, of_another_table, outdated
from lance_core.publish.model import StagedTransaction
from lance_core.publish.staged_properties import facts_of
from lance_core.publish.table_id import is_other_table, require_known_records, table_id_of
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction

Concerns = Callable[[Loaded, Transaction, OpenVersion], bool]
"""Whether a version of others (its transaction, its manifest) brought rows that a staged transaction should have known."""


def distinct(refs: Sequence[StagedTransaction]) -> dict[str, StagedTransaction]:
    """References by identity. InputError when one was passed with two attempts."""
    found: dict[str, StagedTransaction] = {}
    for ref in refs:
        other = found.setdefault(naming.checked_identity(ref.identity), ref)
        if other.attempt != ref.attempt:
            raise InputError(
                f"identity {ref.identity} was passed with two attempts, {other.attempt} and {ref.attempt}",
                cure="Pass only the result of the last run of its staging task.",
            )
    return found


def is_planned_on(item: Loaded, newest: Manifest) -> bool:
    """Whether a staged transaction was planned on just this version: the same number, made by the same transaction."""
    base = facts_of(item.transaction).base
    return bool(base) and (item.ref.read_version, base) == (newest.version, newest.transaction_file)


def require_same_table(
    store: Store, items: Sequence[Loaded], newest: Manifest, *, table_id: str | None, present: Sequence[int] | None
) -> str:
    """The table's id; IncompatibleConflictError for what was planned on another table at this place, and
    UnsupportedRecordError where its records need a newer release."""
    require_known_records(store, newest)
    if table_id is None:
        # Planned on just this version: it is the same table as then, and what it was called then, it is called now.
        known = {facts_of(item.transaction).table_id for item in items if is_planned_on(item, newest)}
        table_id = known.pop() if len(known) == 1 else table_id_of(store, present=present)
    for item in items:
        if is_other_table(facts_of(item.transaction).table_id, table_id):
            raise of_another_table(store, item, table_id)
    return table_id


def refuse_if_moved(store: Store, folds: Sequence[Fold], newest: Manifest | None) -> None:
    """Strict work refuses before anything is published, not halfway through the folds."""
    for fold in folds:
        read_version = fold.transaction.read_version
        if fold.strict and newest is not None and _has_moved(store, read_version, newest.version):
            raise moved(store, fold.transaction, "others, up to the newest,", newest.version)


def _has_moved(store: Store, read_version: int, newest: int) -> bool:
    """Whether anything but versions of aborts came since."""
    if newest == read_version:
        return False
    try:
        between = [load_transaction(store, number) for number in range(read_version + 1, newest + 1)]
    except NotFoundError:
        return True
    return not all(item is not None and is_abort(item) for item in between)


def find_too_early(
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


def judge_members(
    store: Store, members: Sequence[Loaded], concerns: Concerns, theirs: Transaction, opened: OpenVersion
) -> None:
    """MemberConflictError for the members that should have known the rows of a version of others."""
    version = opened.manifest.version
    later = [number for number, item in enumerate(members) if version > item.ref.read_version]
    found = [number for number in later if concerns(members[number], theirs, opened)]
    if found:
        raise outdated(store, members, found, theirs, version)


def lost_creation(fold: Fold, store: Store) -> bool:
    """Whether another writer created the table that this fold should create."""
    return fold.transaction.read_version == 0 and fold.members[0].ref.creates and find_latest_version(store) is not None


def versions_removed(store: Store, error: NotFoundError) -> LanceError:
    """A version that the commit compared its work with went."""
    return RetryableConflictError(
        f"{store.uri}: versions were removed while the commit compared its work with them ({error})",
        uri=store.uri,
        cure="Commit again. If it comes back, keep versions for longer than the work takes, and check the table with "
        "`lance validate`.",
    )
