"""Create a table as a clone of a version of another table: the only commit without a previous version.

::

    commit_clone(store of /b.lance, Clone(is_shallow=True, ref_version=7, ref_path="/a.lance"), source=version 7 of /a.lance)
    -> /b.lance begins with version 7, whose files are found below base path /a.lance

The transaction's read version is the version cloned, as the official library writes it.
"""

from __future__ import annotations

import uuid as uuids

from lance_core.commit import naming
from lance_core.commit.loop import WRITER_VERSION
from lance_core.commit.manifests import find_latest_version, write_hint
from lance_core.commit.put_manifest import PutOutcome, put_manifest, require_put_if_absent
from lance_core.errors import AlreadyExistsError, StoreError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.table.build import build
from lance_core.table.moment import now_ns
from lance_core.table.operations.clone import Clone
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import encode_transaction


def commit_clone(store: Store, operation: Clone, source: Manifest) -> Manifest:
    """Publish the first manifest of a clone. `source` is the manifest of `operation.ref_version`.

    Raises AlreadyExistsError when there is a table already, PreconditionError, StoreError, CommitStateUnknownError.
    """
    require_put_if_absent(store)
    if find_latest_version(store) is not None:
        raise _exists(store)
    transaction = Transaction(source.version, str(uuids.uuid4()), operation)
    manifest = build(None, transaction, timestamp_ns=now_ns(), writer_version=WRITER_VERSION, source=source)
    data = encode_transaction(transaction)
    store.put(naming.transaction_path(manifest.transaction_file), data)
    put = put_manifest(store, manifest, uuid=transaction.uuid, transaction=data, scheme=naming.NamingScheme.V2)
    if put.outcome is not PutOutcome.OURS:
        if put.outcome is PutOutcome.LOST:
            store.delete(naming.transaction_path(manifest.transaction_file))
            raise _exists(store)
        raise StoreError(f"{store.uri}: the store rejected the manifest of the clone", uri=store.uri)
    write_hint(store, manifest.version)
    return manifest


def _exists(store: Store) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"there is already a table at {store.uri}", uri=store.uri, operation="Clone", cure="Clone to a uri without a table."
    )
