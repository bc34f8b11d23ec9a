"""Before versions are removed, every identity that landed in them and the incarnation get their records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import version_numbers
from lance_core.commit.transactions import load_transaction
from lance_core.errors import NotFoundError
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, write_record
from lance_core.publish.registry.incarnation import keep_incarnation
from lance_core.publish.registry.ledger import COMPLETE_PATH, complete_version, record_fold
from lance_core.table.transaction import Transaction


def record_history(
    store: Store, versions: Sequence[int], *, load: Callable[[Store, int], Transaction | None] | None = None
) -> None:
    """Give every identity that landed in `versions` its record; call it before pruning them.

    `load` gives the transaction of a version, for a caller that has read them already.

    When no version at or before the newest of them is left out (gone earlier without a record), the ledger is marked
    complete up to there, so that pruning leaves no doubt behind.
    """
    if not versions:
        return
    incarnation = keep_incarnation(store, present=version_numbers(store), doomed=versions, load=load)
    newest = max(versions)
    complete = complete_version(store)
    certain = set(range(complete + 1, newest + 1)) <= set(versions)
    for version in sorted(versions):
        transaction = (load or _load)(store, version)
        if transaction is None:
            certain = certain and version <= complete
            continue
        record_fold(store, identities_of(transaction), version=version, transaction=transaction, incarnation=incarnation)
    if certain and newest > complete:
        write_record(store, COMPLETE_PATH, {"format": FORMAT, "version": newest})


def _load(store: Store, version: int) -> Transaction | None:
    try:
        return load_transaction(store, version)
    except NotFoundError:
        return None
