"""The step that publishes: put a manifest if it is absent.

::

    put_manifest(store, manifest 7)     -> OURS     it is there, and it is ours; perhaps as an earlier try wrote it
                                        -> LOST     somebody else's version 7 is there
                                        -> NOT_THERE  the store failed, and looking shows that nothing came of it

A failed put says little: the request may have been lost, or only its answer. So the target is read before anything is said;
when even that fails, the outcome is unknown and CommitStateUnknownError says so. NOT_THERE is no end either: the request may
still arrive. What it would publish must not be deleted, and a later try may find that it was committed.

Two commits have no race for a number, and so no loop::

    commit_clone       the first version of a table: version 7 of /a.lance becomes version 7 of /b.lance, whose files are
                       found below base path /a.lance; the transaction's read version is the version cloned
    commit_detached    applied to the version that it was planned on, and published under a random number with bit 63 set:
                       found only by its number, at _versions/d9223….manifest; the newest version stays what it is
"""

from __future__ import annotations

import enum
import secrets
import uuid as uuids
from dataclasses import dataclass, replace

from lance_core.commit import naming
from lance_core.commit.manifests import OpenVersion, find_latest_version, open_path, open_version, write_hint
from lance_core.commit.transactions import transaction_of
from lance_core.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    LanceError,
    MemoryShortageError,
    NotFoundError,
    PreconditionError,
    StoreError,
)
from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.io.store import Store
from lance_core.table.build import build
from lance_core.table.features import check_writable
from lance_core.table.moment import now_ns
from lance_core.table.operations.clone import Clone
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import encode_manifest_file
from lance_core.wire.transaction import encode_transaction

WRITER_VERSION = WriterVersion("lance_core", "14.0.2", build_metadata="airflow-provider-lance")
"""The number says which release of the official library this writes like: other readers compare it with that library's
releases to work around old bugs."""


class PutOutcome(enum.Enum):
    OURS = "ours"
    LOST = "lost"
    NOT_THERE = "not there"


@dataclass(frozen=True, slots=True)
class PutResult:
    """The result of a put; `found` is the existing manifest of this transaction if an earlier try wrote it."""

    outcome: PutOutcome
    found: OpenVersion | None = None


def require_put_if_absent(store: Store) -> None:
    """Refuse a store on which two writers could both win."""
    if not store.has_put_if_absent:
        raise PreconditionError(
            f"{store.uri}: this store has no put-if-absent, so two commits could overwrite each other",
            uri=store.uri,
            cure="Use a store with conditional put, or configure an external manifest store.",
        )


def put_manifest(
    store: Store, manifest: Manifest, *, uuid: str, transaction: bytes | None, scheme: naming.NamingScheme
) -> PutResult:
    """Publish a manifest as its version, with the serialized transaction inline; `uuid` is that transaction's.

    Raises PreconditionError; CommitStateUnknownError when neither the put nor a look at the target gives an answer.
    """
    path = naming.manifest_path(manifest.version, scheme)
    data = encode_manifest_file(manifest, transaction=transaction)
    try:
        store.put_if_absent(path, data)
        return PutResult(PutOutcome.OURS)
    except PreconditionError:
        raise
    except (StoreError, MemoryShortageError) as error:
        # What exists may be ours: the store's client retried and found its own first try, or an earlier put came late.
        why = "it exists" if isinstance(error, AlreadyExistsError) else str(error)
        return _settle(store, path, version=manifest.version, uuid=uuid, why=why)


def _settle(store: Store, path: str, *, version: int, uuid: str, why: str) -> PutResult:
    try:
        opened = open_path(store, version, path)
        found = transaction_of(store, opened)
    except NotFoundError:
        return PutResult(PutOutcome.NOT_THERE)
    except LanceError as error:
        raise CommitStateUnknownError(
            f"{store.uri}: it is unknown whether this commit wrote version {version}: "
            f"the put failed ({why}), and the manifest could not be read back ({error})",
            uri=store.uri,
            version=version,
            cure=f"Read the transaction of version {version}: the commit took effect if its uuid is {uuid}.",
        ) from error
    is_ours = found is not None and found.uuid == uuid
    return PutResult(PutOutcome.OURS, opened) if is_ours else PutResult(PutOutcome.LOST)


def commit_clone(store: Store, operation: Clone, source: Manifest) -> Manifest:
    """Publish the first manifest of a clone. `source` is the manifest of `operation.ref_version`.

    Raises AlreadyExistsError when there is a table already, PreconditionError, StoreError, CommitStateUnknownError.
    """
    require_put_if_absent(store)
    exists = AlreadyExistsError(
        f"there is already a table at {store.uri}", uri=store.uri, operation="Clone", cure="Clone to a uri without a table."
    )
    if find_latest_version(store) is not None:
        raise exists
    transaction = Transaction(source.version, str(uuids.uuid4()), operation)
    manifest = build(None, transaction, timestamp_ns=now_ns(), writer_version=WRITER_VERSION, source=source)
    outcome = _put_at_once(store, manifest, transaction)
    if outcome is PutOutcome.LOST:
        store.delete(naming.transaction_path(manifest.transaction_file))
        raise exists
    if outcome is not PutOutcome.OURS:
        raise StoreError(f"{store.uri}: the store rejected the manifest of the clone", uri=store.uri)
    write_hint(store, manifest.version)
    return manifest


def commit_detached(store: Store, transaction: Transaction) -> Manifest:
    """Publish a transaction as a detached version of the table at `store` and return its manifest.

    Raises NotFoundError when the version it was planned on is gone, PreconditionError, StoreError, CommitStateUnknownError.
    """
    require_put_if_absent(store)
    base = open_version(store, transaction.read_version).manifest
    check_writable(base, uri=store.uri)
    built = build(base, transaction, timestamp_ns=now_ns(), writer_version=WRITER_VERSION)
    manifest = replace(built, version=naming.DETACHED_BIT | secrets.randbits(63))
    if _put_at_once(store, manifest, transaction) is not PutOutcome.OURS:
        raise StoreError(f"{store.uri}: the store rejected a detached version", uri=store.uri)
    return manifest


def _put_at_once(store: Store, manifest: Manifest, transaction: Transaction) -> PutOutcome:
    data = encode_transaction(transaction)
    if manifest.transaction_file:
        store.put(naming.transaction_path(manifest.transaction_file), data)
    return put_manifest(store, manifest, uuid=transaction.uuid, transaction=data, scheme=naming.NamingScheme.V2).outcome
