"""The transaction of a version: inline in its manifest file, else in a separate file.

::

    manifest field 23 (today) or 21 (older)   -> the inline section
    manifest field 12 "1-f9a6….txn"           -> _transactions/1-f9a6….txn
    neither                                   -> nobody knows; None

We write both, as the official library does: older readers look for the file only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from lance_core.commit import naming
from lance_core.commit.manifests import OpenVersion, open_version
from lance_core.errors import FormatError, NotFoundError
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import decode_transaction, decode_uuid, encode_transaction

T = TypeVar("T")


def transaction_of(store: Store, opened: OpenVersion) -> Transaction | None:
    """The transaction that made an opened version; None when the version does not tell."""
    found = _serialized(store, opened)
    return None if found is None else _decode(store, *found, decode_transaction)


def uuid_of(store: Store, opened: OpenVersion) -> str:
    """The uuid of the transaction that made an opened version; "" when it does not tell. The rest is not decoded."""
    found = _serialized(store, opened)
    return "" if found is None else _decode(store, *found, decode_uuid)


def _serialized(store: Store, opened: OpenVersion) -> tuple[bytes, str] | None:
    """The bytes, and where they are."""
    if opened.transaction is not None:
        return opened.transaction, opened.path
    path = naming.transaction_path(opened.manifest.transaction_file)
    with suppress(NotFoundError):
        return (bytes(store.get(path)), path) if opened.manifest.transaction_file else None
    return None


def load_transaction(store: Store, version: int) -> Transaction | None:
    """The transaction of a version by number. NotFoundError when the version is gone."""
    return transaction_of(store, open_version(store, version))


def read_transaction_file(store: Store, path: str) -> Transaction | None:
    """A transaction file; None when it is not there."""
    try:
        data = store.get(path)
    except NotFoundError:
        return None
    return _decode(store, bytes(data), path, decode_transaction)


def write_transaction(store: Store, transaction: Transaction, *, path: str | None = None) -> str:
    """Write a transaction file and return its name; by default `{read_version}-{uuid}.txn` in `_transactions/`."""
    name = naming.transaction_name(transaction.read_version, transaction.uuid)
    store.put(path or naming.transaction_path(name), encode_transaction(transaction))
    return name


def _decode(store: Store, data: bytes, where: str, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(data)
    except FormatError as error:
        raise type(error)(f"{store.uri}: transaction in {where}: {error}", uri=store.uri) from error
