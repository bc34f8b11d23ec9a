"""Files of attempts and commits that are looked for by name, and which of them a version names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lance_core.arrow.logical import BLOB_V2
from lance_core.commit import naming
from lance_core.commit.look import branch_stores, detached_versions, look_since
from lance_core.commit.manifests import load_manifest
from lance_core.commit.references import referenced_files
from lance_core.errors import NotFoundError
from lance_core.io.many import delete_all
from lance_core.io.store import Store
from lance_core.publish.attempts import attempt_files
from lance_core.publish.staged_properties import facts_of
from lance_core.table.carried import new_indices, new_schema
from lance_core.table.transaction import Transaction


class Owners:
    """Attempts (or commits) whose files are looked for by name."""

    def __init__(self, attempts: Iterable[str]) -> None:
        self._prefixes = {attempt[:length] for attempt in attempts for length in (10, 12, 16)}

    def has(self, path: str) -> bool:
        """Whether one of them wrote this file."""
        return naming.attempt_prefix(path) in self._prefixes


def files_in_use(store: Store, owners: Owners, *, since: int, transactions: bool = False) -> frozenset[str]:
    """Files of these that a version names: those after `since` of this line, all of its branches, detached ones; with
    `transactions` the transaction files of all."""
    found: set[str] = set()
    for place, after in [(store, since), *((branch, 0) for branch in branch_stores(store))]:
        for item in (*look_since(place, after).opened, *detached_versions(place)):
            # Of an index the whole folder is named, by a path that ends in "/".
            found.update(path for path in referenced_files(item.manifest) if owners.has(path))
            if transactions and item.manifest.transaction_file:
                found.add(naming.transaction_path(item.manifest.transaction_file))
    return frozenset(found)


def unused_files(store: Store, attempt: str, *, keep: Collection[str]) -> list[str]:
    """Files of the caller's own attempt that its transaction does not name."""
    return [path for path in attempt_files(store) if naming.is_of_attempt(path, attempt) and path not in keep]


def remove_unused(store: Store, attempt: str, *, keep: Collection[str]) -> list[str]:
    """Remove those of an attempt that nobody adopts, before it is finished: no version can name them."""
    paths = unused_files(store, attempt, keep=keep)
    delete_all(store, paths)
    return paths


def names_all(store: Store, transaction: Transaction) -> bool:
    """Whether a staged transaction names every file that was written for it; blobs beside data files may lack."""
    if facts_of(transaction).has_more or any(not index.files for index in new_indices(transaction.operation)):
        return False
    schema = new_schema(transaction.operation)
    if schema is None:
        try:
            schema = load_manifest(store).schema
        except NotFoundError:
            return False
    return all(item.extension_name != BLOB_V2 for item in schema.fields)
