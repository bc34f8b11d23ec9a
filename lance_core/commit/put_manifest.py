"""The step that publishes: put a manifest if it is absent.

::

    put_manifest(store, manifest 7)     -> OURS     it is there, and it is ours; perhaps as an earlier try wrote it
                                        -> LOST     somebody else's version 7 is there
                                        -> NOT_THERE  the store failed, and looking shows that nothing came of it

A failed put says little: the request may have been lost, or only its answer. So the target is read before anything is said;
when even that fails, the outcome is unknown and CommitStateUnknownError says so. NOT_THERE is no end either: the request may
still arrive. What it would publish must not be deleted, and a later try may find that it was committed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.manifests import OpenVersion, open_path
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
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.wire.manifest_file import encode_manifest_file


class PutOutcome(enum.Enum):
    """What became of a put."""

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
    except AlreadyExistsError:
        # A retry inside the store's client may have found its own first try there; or an earlier put of ours came late.
        return _settle(store, path, version=manifest.version, uuid=uuid)
    except PreconditionError:
        raise
    except (StoreError, MemoryShortageError) as error:
        return _settle(store, path, version=manifest.version, uuid=uuid, cause=error)


def _settle(
    store: Store, path: str, *, version: int, uuid: str, cause: StoreError | MemoryShortageError | None = None
) -> PutResult:
    try:
        opened = open_path(store, version, path)
        found = transaction_of(store, opened)
    except NotFoundError:
        return PutResult(PutOutcome.NOT_THERE)
    except LanceError as error:
        raise CommitStateUnknownError(
            f"{store.uri}: it is unknown whether this commit wrote version {version}: "
            f"the put failed ({cause or 'it exists'}), "
            f"and the manifest could not be read back ({error})",
            uri=store.uri,
            version=version,
            cure=f"Read the transaction of version {version}: the commit took effect if its uuid is {uuid}.",
        ) from error
    is_ours = found is not None and found.uuid == uuid
    return PutResult(PutOutcome.OURS, opened) if is_ours else PutResult(PutOutcome.LOST)
