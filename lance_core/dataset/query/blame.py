"""Blame: the versions that wrote the rows that a filter selects, and the tasks that requested them.

::

    blame(snapshot, where="city = 'Lagos'")
        -> version 7, update, 12 rows, dag "flights", run "manual__2013-01-02", task "mend"
           version 3, append, 5 rows, ...

With stable row ids the table itself says when a row was last written. Without, it is the oldest kept version that has the
row's fragment: a compaction then stands for the writers of all that it rewrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lance_core.arrow.buffers import numbers_of
from lance_core.commit.identities import Asked, asked_by
from lance_core.commit.manifests import open_version, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest

_UPDATED, _ADDRESS = "_row_last_updated_at_version", "_rowaddr"


@dataclass(frozen=True, slots=True)
class Blame:
    """A version that wrote some of the rows.

    `operation` and `timestamp` are None when it is gone, `asked` is empty if it is not recorded. Where `is_exact` is False,
    an older version that is no longer kept may have written them.
    """

    version: int
    num_rows: int
    is_exact: bool
    timestamp: float | None = None
    operation: str | None = None
    asked: tuple[Asked, ...] = ()


def blame(snapshot: Snapshot, *, where: str | None = None) -> list[Blame]:
    """The versions that wrote the selected rows, newest first."""
    rows, oldest = _by_version(snapshot, where)
    return [_told(snapshot, version, rows[version], is_exact=version != oldest) for version in sorted(rows, reverse=True)]


def _by_version(snapshot: Snapshot, where: str | None) -> tuple[Counter[int], int | None]:
    """Rows by version; and the version that stands for all before it, None when each tells its own."""
    if snapshot.manifest.uses_stable_row_ids:
        return Counter(_values(snapshot, _UPDATED, where)), None
    fragments = Counter(address >> 32 for address in _values(snapshot, _ADDRESS, where))
    wanted = {_key(item): item.id for item in snapshot.manifest.fragments if item.id in fragments}
    versions, oldest = _introduced(snapshot, set(wanted))
    rows: Counter[int] = Counter()
    for key, number in wanted.items():
        rows[versions[key]] += fragments[number]
    return rows, oldest


def _values(snapshot: Snapshot, column: str, where: str | None) -> Iterator[int]:
    for batch in LanceScanner(snapshot, ScanRequest(columns=[column], filter=where)).to_reader():
        yield from numbers_of(batch.column(column))


def _key(fragment: Fragment) -> tuple[int, str]:
    """What stays of a fragment in later versions: its number, and the file that it began with."""
    return fragment.id, fragment.files[0].path if fragment.files else ""


def _introduced(snapshot: Snapshot, keys: set[tuple[int, str]]) -> tuple[dict[tuple[int, str], int], int | None]:
    """The oldest kept version that has each fragment, without a gap; and the oldest kept one, when some go back to it."""
    since = dict.fromkeys(keys, snapshot.version)
    left = set(keys)
    numbers = [number for number in version_numbers(snapshot.store) if number < snapshot.version]
    for number in reversed(numbers):
        manifest = _manifest(snapshot, number)
        if manifest is None or not left:
            break
        left &= {_key(item) for item in manifest.fragments}
        since.update(dict.fromkeys(left, number))
    oldest = min((since[key] for key in left), default=None)
    return since, None if oldest == 1 else oldest


def _manifest(snapshot: Snapshot, version: int) -> Manifest | None:
    try:
        return open_version(snapshot.store, version).manifest
    except NotFoundError:
        return None


def _told(snapshot: Snapshot, version: int, num_rows: int, *, is_exact: bool) -> Blame:
    try:
        opened = open_version(snapshot.store, version)
    except NotFoundError:
        return Blame(version, num_rows, is_exact)
    transaction = transaction_of(snapshot.store, opened)
    return Blame(
        version=version,
        num_rows=num_rows,
        is_exact=is_exact,
        timestamp=opened.manifest.timestamp_ns / 1e9,
        operation=None if transaction is None else transaction.operation.name,
        asked=() if transaction is None else asked_by(transaction),
    )
