"""The rows of a task that come first by some columns, in Spark's order: `ORDER BY a DESC NULLS LAST, b LIMIT 10`.

::

    keys of all rows      a, b, _rowaddr          in batches, of which those rows are held that may still be among the first
    the other columns     of those rows alone

    numbers     NaN is equal to NaN and above all others, -0.0 is 0.0
    texts       by their bytes, as bytes are, unsigned
    nulls       first or last, as the query says, whichever way the values go

Each task gives at most so many rows, in no order, and Spark sorts what all tasks gave. Which of some equal rows are given is
left open, as it is by the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_core.arrays import Addresses
from lance_core.arrow_numpy import numpy_of
from lance_core.pick import keep, take
from lance_core.spark.table_reader import ADDRESS, FragmentGroup, TableReader

_LEAST_HELD = 4_096
"""Rows that are gathered before they are sorted again."""
_WORTH_IT = 16
"""Of a group with fewer times as many rows as are asked all is read: its other columns would be decoded nearly whole."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column that rows are sorted by."""

    column: str
    descending: bool
    nulls_first: bool

    @property
    def direction(self) -> str:
        """In Arrow's word."""
        return "descending" if self.descending else "ascending"


class TopRows:
    """The addresses of the first `most` of the rows that are added, by `keys` (at least one, each of another column).

    Holds the keys of about twice as many rows, and of a batch.
    """

    def __init__(self, keys: Sequence[SortKey], most: int) -> None:
        self._keys = tuple(keys)
        self._most = most
        self._held: list[pa.Table] = []
        self._num_held = 0
        self._last: Any = None
        """The first key, as `_comparable` has it, of the last row that is good enough; None while any row is."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows with the columns of the keys and `_rowaddr`."""
        if not self._most:
            return
        if self._last is not None:
            batch = keep(batch, self._may_be_first(batch))
        if batch.num_rows:
            columns = {key.column: _comparable(batch.column(key.column)) for key in self._keys}
            self._held.append(pa.table({**columns, ADDRESS: batch.column(ADDRESS)}))
            self._num_held += batch.num_rows
        if self._num_held >= max(2 * self._most, _LEAST_HELD):
            self._settle()

    def addresses(self) -> Addresses:
        """Of the rows found, ascending."""
        self._settle()
        if not self._held:
            return np.empty(0, np.uint64)
        found: Addresses = np.sort(numpy_of(self._held[0].column(ADDRESS)))
        return found

    def _settle(self) -> None:
        if self._num_held > self._most:
            table = pa.concat_tables(self._held).combine_chunks()
            table = take(table, _order(table, self._keys).slice(0, self._most))
            self._last = table.column(self._keys[0].column)[self._most - 1]
            self._held, self._num_held = [table], table.num_rows
        elif self._held:
            self._held = [pa.concat_tables(self._held)]

    def _may_be_first(self, batch: pa.RecordBatch) -> Any:
        """Which rows are before the last one that is good enough, as far as the first key tells."""
        key, last = self._keys[0], self._last
        values = _comparable(batch.column(key.column))
        is_tie_kept = len(self._keys) > 1
        if last.is_valid:
            better, is_null_better = _COMPARISONS[key.descending, is_tie_kept](values, last), key.nulls_first
            return pc.if_else(pc.is_valid(values), better, is_null_better) if values.null_count else better
        return pc.if_else(pc.is_valid(values), not key.nulls_first, is_tie_kept)


_COMPARISONS: Any = {
    (False, False): pc.less,
    (False, True): pc.less_equal,
    (True, False): pc.greater,
    (True, True): pc.greater_equal,
}
"""By whether the order descends, and whether equal values go on."""


def _order(table: pa.Table, keys: Sequence[SortKey]) -> Any:
    columns: dict[str, Any] = {}
    directions: list[tuple[str, str]] = []
    for number, key in enumerate(keys):
        column = table.column(key.column)
        if column.null_count:
            # Where nulls go is a key of its own, because the sort puts those of all columns on the same side.
            columns[f"{number}?"] = column.is_null().cast(pa.int8())
            directions.append((f"{number}?", "descending" if key.nulls_first else "ascending"))
        columns[str(number)] = column
        directions.append((str(number), key.direction))
    return pc.sort_indices(pa.table(columns), sort_keys=cast("Any", directions))


def _comparable(values: Any) -> Any:
    """Values that Arrow compares as Spark compares those given; nulls stay."""
    if pt.is_floating(values.type):
        return _bits(values)
    return values.cast(pa.int8()) if pt.is_boolean(values.type) else values


def _bits(values: Any) -> Any:
    """Whole numbers that compare as Spark's floats do."""
    filled = values.fill_null(0) if values.null_count else values
    numbers = numpy_of(filled, may_copy=True)
    kind = np.dtype(f"i{numbers.dtype.itemsize}")
    most = np.iinfo(kind).max
    bits = (numbers + numbers.dtype.type(0)).view(kind)  # -0.0 + 0.0 is 0.0
    bits ^= (bits >> (8 * kind.itemsize - 1)) & most
    bits[np.isnan(numbers)] = most
    mask = pc.is_null(values).to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(bits, mask=mask)


@dataclass(frozen=True)
class TopReader:
    """Reads of each group the rows that may be among the first `most` of the table; `columns`: the keys' types. Pickles."""

    rows: TableReader
    columns: pa.Schema
    keys: tuple[SortKey, ...]
    most: int

    @property
    def target(self) -> pa.Schema:
        """The columns of its batches."""
        return self.rows.target

    def read(self, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
        """At most `most` rows of a group, or all of one that has not many more."""
        opened = self.rows.opened(group)
        if opened.num_rows < self.most * _WORTH_IT:
            yield from self.rows.scanned(opened, self.rows.target)
            return
        first = TopRows(self.keys, self.most)
        for batch in self.rows.scanned(opened, self.columns.append(pa.field(ADDRESS, pa.uint64()))):
            first.add(batch)
        yield from self.rows.taken(opened, first.addresses())


def parse_keys(described: Iterable[Any]) -> tuple[SortKey, ...]:
    """As the jar describes them; a column that comes again decides nothing more."""
    found: dict[str, SortKey] = {}
    for item in described:
        name = str(item["column"])
        found.setdefault(name, SortKey(name, bool(item["descending"]), bool(item["nulls_first"])))
    return tuple(found.values())
