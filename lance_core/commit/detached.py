"""A detached version: published under a random number with bit 63 set, and found only by its number.

::

    commit_detached(store, Delete(...) on version 4)   -> version 9223372036854775810 + …, at _versions/d9223…10.manifest
    the newest version is still 4; cleaning up version 4 leaves the detached one whole

There is no race for the number and so no conflict: the transaction is applied to the version it was planned on.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from lance_core.commit import naming
from lance_core.commit.loop import WRITER_VERSION
from lance_core.commit.manifests import open_version
from lance_core.commit.put_manifest import PutOutcome, put_manifest, require_put_if_absent
from lance_core.errors import StoreError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.table.build import build
from lance_core.table.features import check_writable
from lance_core.table.moment import now_ns
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import encode_transaction


def commit_detached(store: Store, transaction: Transaction) -> Manifest:
    """Publish a transaction as a detached version of the table at `store` and return its manifest.

    Raises NotFoundError when the version it was planned on is gone, PreconditionError, StoreError, CommitStateUnknownError.
    """
    require_put_if_absent(store)
    base = open_version(store, transaction.read_version).manifest
    check_writable(base, uri=store.uri)
    built = build(base, transaction, timestamp_ns=now_ns(), writer_version=WRITER_VERSION)
    manifest = replace(built, version=naming.DETACHED_BIT | secrets.randbits(63))
    data = encode_transaction(transaction)
    if manifest.transaction_file:
        store.put(naming.transaction_path(manifest.transaction_file), data)
    put = put_manifest(store, manifest, uuid=transaction.uuid, transaction=data, scheme=naming.NamingScheme.V2)
    if put.outcome is not PutOutcome.OURS:
        raise StoreError(f"{store.uri}: the store rejected a detached version", uri=store.uri)
    return manifest
