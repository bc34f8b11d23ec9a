"""The log of a table: which transaction made which version.

::

    version 3  Append      read 2  +25000 rows
    version 2  Delete      read 1  -17 rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lance_core.commit.identities import Asked, asked_by
from lance_core.commit.manifests import OpenVersion, open_version, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.errors import NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One version. `operation` and what follows it are None or empty when the version does not tell its transaction.

    `timestamp` is seconds since the epoch; `rows_changed` the difference to the version before, None when that is gone.
    """

    version: int
    timestamp: float
    rows: int
    rows_changed: int | None = None
    operation: str | None = None
    read_version: int | None = None
    uuid: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[Asked, ...] = ()


def read_log(store: Store, *, limit: int | None = None) -> list[LogEntry]:
    """The entries of the newest `limit` versions (None: all), newest first."""
    numbers = [*version_numbers(store)]
    # One more than asked, to know what the oldest entry changed.
    wanted = numbers if limit is None else numbers[-(limit + 1) :]
    opened = [item for item in each(store, wanted, _open) if item is not None]
    entries = [_entry(store, item, before) for before, item in zip([None, *opened], opened, strict=False)]
    return entries[::-1] if limit is None else entries[::-1][:limit]


def _open(store: Store, version: int) -> OpenVersion | None:
    try:
        return open_version(store, version)
    except NotFoundError:
        return None  # cleaned up between the listing and the read


def _entry(store: Store, opened: OpenVersion, before: OpenVersion | None) -> LogEntry:
    manifest = opened.manifest
    transaction = transaction_of(store, opened)
    follows = before is not None and before.manifest.version == manifest.version - 1
    change = None
    if manifest.version == 1 or follows:
        change = manifest.num_rows - (before.manifest.num_rows if follows and before is not None else 0)
    return LogEntry(
        version=manifest.version,
        timestamp=manifest.timestamp_ns / 1e9,
        rows=manifest.num_rows,
        rows_changed=change,
        operation=None if transaction is None else transaction.operation.name,
        read_version=None if transaction is None else transaction.read_version,
        uuid=None if transaction is None else transaction.uuid,
        properties={} if transaction is None else transaction.properties,
        asked=() if transaction is None else asked_by(transaction),
    )


def read_transactions(store: Store, numbers: Sequence[int]) -> list[Transaction | None]:
    """The transactions of some versions, None where a version or its transaction is gone."""
    return [None if item is None else transaction_of(store, item) for item in each(store, numbers, _open)]
