"""Whether the rows of a table are as fresh as the table says that they shall be.

::

    fresh_within = "26h"      version 9 compact 1 h ago, 8 describe 2 h ago, 7 append 3 days ago    -> late for 46 h

Only a version that changed rows or values counts: a compaction, an index or a setting makes no row younger. The versions are
looked through from the newest one backwards, not further than the time that is allowed, and not more than `MOST_VERSIONS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lance_core.commit.manifests import OpenVersion, open_or_none, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.dataset.edit.description import description_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.durations import parse_duration
from lance_core.errors import FormatError, InputError
from lance_core.io.store import Store
from lance_core.table.carried import merges_column_files

MOST_VERSIONS = 32
_SAME_ROWS = frozenset({"Rewrite", "CreateIndex", "Project", "UpdateConfig", "UpdateBases", "ReserveFragments"})
"""Operations after which every row says what it said before."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """`within` seconds are allowed. `changed_at` is when rows changed most recently, in seconds since the epoch; None where
    that was before the versions that were read. "unchecked": too many versions since then changed no row."""

    within: float
    state: Literal["fresh", "late", "unchecked"]
    changed_at: float | None = None


def freshness_of(snapshot: Snapshot, now: float) -> Freshness | None:
    """Compare the table's own rule with its history. None for a table without a rule, and for one that nobody can read."""
    rule = description_of(snapshot.manifest).fresh_within
    if not rule:
        return None
    try:
        within = parse_duration(rule).total_seconds()
    except InputError:
        return None  # another tool's word; the page shows it
    for opened in _newest_first(snapshot):
        moment = opened.manifest.timestamp_ns / 1e9
        changed = _changes_rows(snapshot.store, opened)
        if moment < now - within:
            return Freshness(within, "late", moment if changed else None)
        if changed:
            return Freshness(within, "fresh", moment)
    return Freshness(within, "unchecked")


def _newest_first(snapshot: Snapshot) -> Iterator[OpenVersion]:
    numbers = [number for number in version_numbers(snapshot.store) if number <= snapshot.version]
    for number in numbers[: -MOST_VERSIONS - 1 : -1]:
        opened = open_or_none(snapshot.store, number)
        if opened is not None:
            yield opened


def _changes_rows(store: Store, opened: OpenVersion) -> bool:
    """A version that does not tell what made it may have changed anything."""
    try:
        transaction = transaction_of(store, opened)
    except FormatError:
        return True
    return transaction is None or not (transaction.operation.name in _SAME_ROWS or merges_column_files(transaction))


def is_late(found: Freshness | None) -> bool:
    """Whether rows should have changed by now."""
    return found is not None and found.state == "late"


def lateness(found: Freshness | None, now: float) -> str:
    """A sentence about a late table, "" for another.

    >>> lateness(Freshness(86400.0, "late", 0.0), 86400.0 * 3)
    'no row has changed for 3.0 days, it shall within 1.0 days'
    """
    if found is None or found.state != "late":
        return ""
    since = "longer than that" if found.changed_at is None else _span(now - found.changed_at)
    return f"no row has changed for {since}, it shall within {_span(found.within)}"


def _span(seconds: float) -> str:
    return f"{seconds / 86400:.1f} days" if seconds >= 86400 else f"{seconds / 3600:.1f} h"
