"""Commit an operation, or a transaction that was staged elsewhere: `LanceDataset.commit`.

::

    commit_operation("/t.lance", Append(fragments), read_version=3)       -> the new snapshot
    commit_operation("/t.lance", transaction)                             read version and uuid are the transaction's

Several staged appends as one version.

::

    commit_batch("/t.lance", [Append of 2 fragments, Append of 1])      -> one version with 3 new fragments

What each transaction says about itself (its properties) is kept. Other operations are folded by the commit service, see
`lance_core.publish.commit`.
"""

from __future__ import annotations

import os
import uuid as uuids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_core.arrow.storable import check_storable
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.loop import LoopRequest, commit_in_detail, commit_transaction
from lance_core.commit.manifests import load_manifest
from lance_core.commit.put_manifest import commit_detached
from lance_core.dataset.edit.insert import COMMIT_MESSAGE
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.versions.auto_cleanup import after_commit
from lance_core.errors import InputError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.version import DEFAULT_VERSION, FileVersion
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.table.draft import TableOptions
from lance_core.table.operations.append import Append
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.transaction import Transaction


def commit_operation(
    target: str | os.PathLike[str] | Snapshot,
    operation: Any,
    *,
    read_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    max_retries: int = DEFAULT_MAX_RETRIES,
    commit_message: str | None = None,
    stable_row_ids: bool = False,
    v1_names: bool = False,
    detached: bool = False,
) -> Snapshot:
    """Publish an operation (or a whole transaction) planned on `read_version`. Raises InputError, CommitError.

    `detached`: as a version beside the history, which only who knows its number finds.
    """
    store = target.store if isinstance(target, Snapshot) else resolve_store(target, storage_options)
    access = target.storage_options if isinstance(target, Snapshot) and storage_options is None else storage_options
    transaction = _transaction(operation, read_version)
    if isinstance(transaction.operation, Overwrite) and not transaction.operation.fragments:
        check_storable(transaction.operation.schema, _version_of(target, store))
    if commit_message is not None:
        transaction = replace(transaction, properties={**transaction.properties, COMMIT_MESSAGE: commit_message})
    if detached:
        return Snapshot(store, commit_detached(store, transaction), access)
    options = TableOptions(stable_row_ids=stable_row_ids, v1_manifest_names=v1_names)
    manifest = commit_transaction(store, transaction, max_retries=max_retries, options=options, strict=max_retries == 0)
    return after_commit(Snapshot(store, manifest, access))


def _version_of(target: object, store: Store) -> FileVersion:
    """The version of the files that a table will get; of none the one that a new table has."""
    if isinstance(target, Snapshot):
        return target.manifest.file_version
    try:
        return load_manifest(store).file_version
    except NotFoundError:
        return DEFAULT_VERSION


def _transaction(operation: Any, read_version: int | None) -> Transaction:
    if isinstance(operation, Transaction):
        return operation
    if not hasattr(operation, "apply") or not hasattr(operation, "touches"):
        raise InputError(f"expected an operation or a transaction, got {type(operation).__name__}")
    if read_version is None and not isinstance(operation, Overwrite):
        raise InputError(
            f"commit of {operation.name} needs read_version", cure="Pass the version on which the operation was planned."
        )
    return Transaction(read_version or 0, str(uuids.uuid4()), operation)


def commit_batch(
    target: str | os.PathLike[str] | Snapshot,
    transactions: Iterable[Transaction],
    *,
    storage_options: Mapping[str, str] | None = None,
    max_retries: int = DEFAULT_MAX_RETRIES,
    detached: bool = False,
) -> tuple[Snapshot, Transaction]:
    """Publish appends together: the new version and the transaction that made it. Raises InputError, CommitError.

    `detached`: as a version beside the history, on the oldest version that any append was planned on.
    """
    merged = merge_appends([*transactions])
    store = target.store if isinstance(target, Snapshot) else resolve_store(target, storage_options)
    access = target.storage_options if isinstance(target, Snapshot) and storage_options is None else storage_options
    if detached:
        return Snapshot(store, commit_detached(store, merged), access), merged
    committed = commit_in_detail(store, merged, LoopRequest(max_retries=max_retries))
    return after_commit(Snapshot(store, committed.manifest, access)), committed.transaction


def merge_appends(transactions: Sequence[Transaction]) -> Transaction:
    """One append that does what all do, planned on the oldest version any was planned on."""
    if not transactions:
        raise InputError("commit_batch needs at least one transaction")
    fragments: list[Fragment] = []
    for item in transactions:
        if not isinstance(item.operation, Append):
            raise InputError(
                f"commit_batch accepts only Append transactions, got {item.operation.name}",
                cure="Commit other transactions one by one.",
            )
        fragments.extend(item.operation.fragments)
    properties = {key: value for item in transactions for key, value in item.properties.items()}
    oldest = min(item.read_version for item in transactions)
    return Transaction(oldest, str(uuids.uuid4()), Append(tuple(fragments)), properties=properties)
