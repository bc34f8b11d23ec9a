"""The last refreshes of a table, as they told what they did: for the task that asked, for pages, for the next price.

::

    _lance_core/columns/refreshes/{milliseconds}-{identity}.json     the newest 32 of them

A record of a refresh decides nothing: what is fresh stands beside the values.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lance_core.commit.naming import COLUMNS
from lance_core.computed.refresh import RefreshReport
from lance_core.errors import LanceError
from lance_core.io.store import Store

log = logging.getLogger(__name__)
FOLDER = f"{COLUMNS}/refreshes"
_KEPT = 32
_FORMAT = 1
_MAX_BYTES = 1 << 20
_NAME = re.compile(r"(\d{13})-([0-9a-f-]{36})\.json")


@dataclass(frozen=True)
class RefreshRecord:
    """A refresh that ended: when (seconds since the epoch), for whom, and its report as plain data. `column_ids`: of the
    columns in the report, whose names may be those of others since; {} in records that do not have them."""

    identity: str
    when: float
    task: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    column_ids: Mapping[str, str] = field(default_factory=dict)

    def did_all(self, column: str, column_id: str) -> bool:
        """Whether it left no row of a column stale."""
        counts = self.report.get("columns", {}).get(self.name_of(column, column_id))
        return isinstance(counts, Mapping) and not self.report.get("stopped") and not counts.get("left")

    def name_of(self, column: str, column_id: str) -> str:
        """What a column was called in it; "" where it was not among those that were refreshed."""
        if not self.column_ids:
            return column
        return next((name for name, known in self.column_ids.items() if known == column_id), "")


def write_record(store: Store, report: RefreshReport, *, identity: str = "", task: str = "") -> None:
    """Keep what a refresh did, and remove the oldest records. Never fails."""
    identity, when = identity or str(uuid.uuid4()), time.time()
    plain = {"format": _FORMAT, **asdict(RefreshRecord(identity, when, task, report.to_dict(), report.column_ids))}
    try:
        store.put(f"{FOLDER}/{int(when * 1000):013d}-{identity}.json", json.dumps(plain).encode(), durable=False)
        for name in _names(store)[:-_KEPT]:
            store.delete(f"{FOLDER}/{name}")
    except LanceError as error:
        log.warning("%s: the record of a refresh was not kept: %s", store.uri, error)


def read_record(store: Store, identity: str) -> RefreshRecord | None:
    """What the refresh of an identity did; None where that is not known any more."""
    names = [name for name in _names(store) if name[14:-5] == identity]
    return _read(store, names[-1]) if names else None


def read_records(store: Store, limit: int = _KEPT) -> list[RefreshRecord]:
    """The newest refreshes, newest first."""
    found = (_read(store, name) for name in reversed(_names(store)[-limit:]))
    return [record for record in found if record is not None]


def price_of_row(records: list[RefreshRecord], column: str, column_id: str) -> dict[str, float]:
    """What one row of a column cost in the newest refresh that told it, by what its function spent; {} where none did."""
    for record in records:
        name = record.name_of(column, column_id)
        spent = record.report.get("spent", {}).get(name)
        given = record.report.get("columns", {}).get(name, {}).get("rows_given")
        if spent and given:
            return {str(name): float(amount) / int(given) for name, amount in spent.items()}
    return {}


def add_estimate(report: RefreshReport, store: Store) -> None:
    """Tell in a dry run's report what computing would cost at the price of the last refresh that told one."""
    records = read_records(store)
    for name, counts in report.columns.items():
        prices = price_of_row(records, name, report.column_ids.get(name, ""))
        if prices:
            report.estimated[name] = {key: price * (counts.stale - counts.not_wanted) for key, price in prices.items()}


def _names(store: Store) -> list[str]:
    return sorted(name for name in store.list_names(f"{FOLDER}/") if _NAME.fullmatch(name))


def _read(store: Store, name: str) -> RefreshRecord | None:
    try:
        data = bytes(store.get(f"{FOLDER}/{name}"))
        if len(data) > _MAX_BYTES:
            raise ValueError("too large")
        plain = json.loads(data)
        if plain["format"] != _FORMAT:
            raise ValueError(f"format {plain['format']!r}")
        ids = {str(name): str(known) for name, known in dict(plain.get("column_ids", {})).items()}
        return RefreshRecord(str(plain["identity"]), float(plain["when"]), str(plain["task"]), dict(plain["report"]), ids)
    except (LanceError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s: the record %s of a refresh cannot be read: %s", store.uri, name, type(error).__name__)
        return None
