"""Evidence: a row for each step in the Lance table `{base_uri}/_maintenance`.

::

    record(uri, [row, ...])                                   appended once; another writer in between is rebased over
    history(uri, since=now - 86400)                           -> [Evidence(...), ...], oldest first
    spent_today(rows, now), maintained_at(rows), measured(rows)   what the planner wants to know of them
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import pyarrow as pa

from lance_core.arrow.buffers import fields_schema
from lance_core.dataset.handle.open import dataset, write_dataset
from lance_core.errors import NotFoundError
from lance_core.maintenance.plan import Skipped
from lance_core.maintenance.price import Cost, Measured

_UTC = pa.timestamp("us", tz="UTC")
SCHEMA = fields_schema(
    [
        pa.field("at", _UTC), pa.field("uri", pa.string()), pa.field("action", pa.string()),
        pa.field("outcome", pa.string()), pa.field("reason", pa.string()), pa.field("run", pa.string()),
        pa.field("version_before", pa.int64()), pa.field("version_after", pa.int64()),
        pa.field("fragments_before", pa.int64()), pa.field("fragments_after", pa.int64()),
        pa.field("bytes_before", pa.int64()), pa.field("bytes_after", pa.int64()),
        pa.field("predicted_bytes_read", pa.int64()), pa.field("predicted_bytes_written", pa.int64()),
        pa.field("predicted_seconds", pa.float64()),
        pa.field("bytes_read", pa.int64()), pa.field("bytes_written", pa.int64()), pa.field("seconds", pa.float64()),
        pa.field("gb_hours", pa.float64()), pa.field("quantity", pa.float64()), pa.field("error", pa.string()),
    ]
)  # fmt: skip
DONE, NOTHING, FAILED, SKIPPED = "done", "nothing", "failed", "skipped"
ALL_STEPS = "all"
"""The action of a row that is about a table as a whole, such as one that could not be observed."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What became of a step. `outcome`: "done", "nothing" (nothing was due), "failed", or "skipped" (due, but postponed).

    `at` is seconds since the epoch; sizes are bytes; `run` names the Airflow run or the process.
    """

    at: float
    uri: str
    action: str
    outcome: str
    reason: str = ""
    run: str = ""
    version_before: int = 0
    version_after: int = 0
    fragments_before: int = 0
    fragments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    predicted_bytes_read: int = 0
    predicted_bytes_written: int = 0
    predicted_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    gb_hours: float = 0.0
    quantity: float = 0.0
    error: str | None = None


def record(uri: str, rows: Sequence[Evidence], *, storage_options: Mapping[str, str] | None = None) -> None:
    """Append rows; the table is created when it is missing. Raises LanceErrors."""
    if not rows:
        return
    values = [{**asdict(row), "at": dt.datetime.fromtimestamp(row.at, dt.timezone.utc)} for row in rows]
    options = None if storage_options is None else dict(storage_options)
    write_dataset(pa.Table.from_pylist(values, schema=SCHEMA), uri, mode="append", storage_options=options)


def history(
    uri: str, *, since: float = 0.0, table: str | None = None, storage_options: Mapping[str, str] | None = None
) -> list[Evidence]:
    """Return the rows since a moment, oldest first; of one table when `table` is its uri. Empty when there is none yet."""
    try:
        opened = dataset(uri, storage_options=None if storage_options is None else dict(storage_options))
    except NotFoundError:
        return []
    moment = dt.datetime.fromtimestamp(since, dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
    wanted = f"at >= timestamp '{moment}'"
    if table is not None:
        wanted += " AND uri = '{}'".format(table.replace("'", "''"))
    here = [item.name for item in fields(Evidence) if item.name in opened.schema.names]
    found = opened.to_table(columns=here, filter=wanted)
    rows = [Evidence(**{**row, "at": row["at"].timestamp()}) for row in found.to_pylist()]
    return sorted(rows, key=lambda row: row.at)


def spent_today(rows: Iterable[Evidence], now: float) -> Cost:
    """What the steps of this day (UTC) cost."""
    total = Cost()
    for row in rows:
        if row.at >= now - now % 86400 and row.outcome in (DONE, FAILED):
            total += Cost(row.bytes_read, row.bytes_written, row.seconds)
    return total


def rows_of_skipped(skipped: Iterable[Skipped], *, now: float, run: str = "") -> list[Evidence]:
    """Rows for what a plan leaves out: "skipped" where it is due, "nothing" where it is not."""
    return [
        Evidence(
            at=now, uri=item.uri, action=item.action, outcome=SKIPPED if item.due else NOTHING, reason=item.reason, run=run
        )
        for item in skipped
    ]


def last_upkeep(rows: Iterable[Evidence]) -> dict[str, float]:
    """When a step last changed each table, by uri."""
    found: dict[str, float] = {}
    for row in rows:
        if row.outcome == DONE:
            found[row.uri] = max(row.at, found.get(row.uri, 0.0))
    return found


def maintained_at(rows: Iterable[Evidence]) -> dict[str, float]:
    """Since when each table has not been maintained, by uri.

    A table is maintained when each of its steps was done or was not due. A step that was only skipped or failed so far
    counts from its first row. The step that waits longest decides for its table.

    >>> rows = [("compact", "skipped"), ("gc", "nothing"), ("compact", "failed")]
    >>> maintained_at([Evidence(at=at, uri="t", action=row[0], outcome=row[1]) for at, row in enumerate(rows, start=1)])
    {'t': 1}
    """
    first: dict[tuple[str, str], float] = {}
    kept: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row.uri, row.action)
        first[key] = min(row.at, first.get(key, row.at))
        if row.outcome in (DONE, NOTHING):
            kept[key] = max(row.at, kept.get(key, row.at))
    found: dict[str, float] = {}
    for key, since in first.items():
        uri, action = key
        moment = max(kept.get(key, since), kept.get((uri, ALL_STEPS), 0.0))
        # A row for the whole table is one of a look that failed; it is over as soon as any step has a row after it.
        if action == ALL_STEPS and key not in kept:
            moment = max([since, *(at for (other, name), at in kept.items() if other == uri and name != ALL_STEPS)])
        found[uri] = min(moment, found.get(uri, moment))
    return found


def levels_kept(rows: Iterable[Evidence]) -> float | None:
    """The share of looks at a table after which nothing that was due was left undone; None without any look.

    Rows of one run about one table are one look.
    """
    looks: dict[tuple[str, str], bool] = {}
    for row in rows:
        key = (row.uri, row.run or str(row.at))
        looks[key] = looks.get(key, True) and row.outcome in (DONE, NOTHING)
    return sum(looks.values()) / len(looks) if looks else None


def measured(rows: Iterable[Evidence]) -> list[Measured]:
    """What finished steps teach about rates."""
    return [
        Measured(row.action, row.quantity, row.seconds, row.predicted_bytes_read + row.predicted_bytes_written,
                 row.bytes_read + row.bytes_written)
        for row in rows
        if row.outcome == DONE
    ]  # fmt: skip
