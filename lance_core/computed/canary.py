"""The canary of a refresh: the rows that are computed first, and judged before any value is published.

::

    100,000 stale rows, Canary(check, rows=1000)
    1,000 are given to the function     their values are put aside, as those of every call are
    check(rows)                         raises: nothing is published, the old values stay, the new ones wait
    the others                          what the canary computed is not computed again

A row for which the function failed is null here, as it will be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of
from lance_core.computed.fragments import DeclaredColumn, FragmentWork
from lance_core.computed.limits import Meter
from lance_core.computed.results import Results
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.pick import take


@dataclass(frozen=True)
class CanaryRows:
    """The canary of a column: inputs but blobs, new values, and beside them (`before`) those that they would replace."""

    uri: str
    column: str
    before: str
    table: pa.Table


@dataclass(frozen=True)
class Canary:
    """So many `rows`, or the rows of so many `fragments`, `rows` at most; `check` raises what ends the refresh."""

    check: Callable[[CanaryRows], None]
    rows: int
    fragments: int | None = None

    def of(self, due: Sequence[Fragment]) -> tuple[Sequence[Fragment], int]:
        """The fragments that it is taken from, and its number of rows at most."""
        return due[: self.fragments], self.rows


def canary_rows(
    snapshot: Snapshot,
    column: DeclaredColumn,
    fragments: Sequence[Fragment],
    results: Results,
    most: int,
    meter: Meter,
    *,
    retry_failed: bool,
) -> CanaryRows:
    """The first stale rows of fragments, with the values that were computed for them. Rows that a budget left out are not
    among them."""
    value = snapshot.arrow_schema.field(column.value.name)
    before = f"{value.name}_before"
    while before in column.input_names:
        before += "_"
    blobs = {item.name for item in column.blobs(snapshot.manifest.schema)}
    moves = column.moved_rows(snapshot)
    found: list[pa.Table] = []
    for fragment in fragments:
        if not most:
            break
        work = FragmentWork(reader_of(snapshot, fragment), column, moves=moves)
        for judged, rows in work.first_rows(most, retry_failed=retry_failed):
            batch = judged.batch
            most -= len(rows)
            known, values = results.find(work.keys_of(judged, rows, results))
            if meter.used_up:
                rows, known = rows[known], known[known]
            places = np.where(known, np.cumsum(known) - 1, -1)
            made = take(values, pa.array(places, mask=~known))
            shown = work.inputs_of(batch)
            shown = shown.select([name for name in shown.schema.names if name not in blobs])
            picked = pa.Table.from_batches([take(shown, arrow_of(rows))])
            former = take(batch.column(value.name), arrow_of(rows))
            found.append(picked.append_column(value.name, made).append_column(before, former))
    if not found:
        return CanaryRows(snapshot.uri, value.name, before, pa.table({}))
    return CanaryRows(snapshot.uri, value.name, before, pa.concat_tables(found))
