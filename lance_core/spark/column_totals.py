"""`count`, `min` and `max` of the rows of a task, which Spark puts together: one row, whatever was read for it.

::

    count(*), count(b), min(a), max(a)   ->   3, 2, -1.0, NaN          min and max are null where a column has no value

NaN is above all other numbers, as Spark has it. Nothing is taken from statistics: data files from 2.0 on
have none, and an index may be older than its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_core.arrow_numpy import arrow_of
from lance_core.errors import InputError
from lance_core.spark.table_reader import FragmentGroup, TableReader

FUNCTIONS = ("count", "min", "max")


@dataclass(frozen=True, slots=True)
class Total:
    """A function of a column; `count` of none is the number of rows."""

    function: str
    column: str | None


@dataclass(frozen=True)
class TotalsReader:
    """Reads the columns of `totals` and gives one row for each group, in the types of `target`. Pickles."""

    rows: TableReader
    totals: tuple[Total, ...]
    target: pa.Schema

    def read(self, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
        """One row."""
        columns = {
            field.name: _Column(field.type, any(t.column == field.name and t.function != "count" for t in self.totals))
            for field in self.rows.target
        }
        num_rows = 0
        for batch in self.rows.read(group):
            num_rows += batch.num_rows
            for name, column in columns.items():
                column.add(batch.column(name))
        arrays = [
            _count(num_rows) if total.column is None else columns[total.column].total(total.function)
            for total in self.totals
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.target)


class _Column:
    """What is known of a column, of the values that were added."""

    def __init__(self, kind: Any, is_compared: bool) -> None:
        self._is_compared = is_compared
        self._is_floating = pt.is_floating(kind)
        self._num_values = 0
        none = pa.nulls(1, kind)
        self._extremes = {"min": none, "max": none}

    def add(self, values: Any) -> None:
        self._num_values += len(values) - values.null_count
        if not self._is_compared:
            return
        found = self._of(values)
        for name, so_far in self._extremes.items():
            both = pa.concat_arrays([so_far, pa.repeat(found[name], 1)])
            self._extremes[name] = pa.repeat(self._of(both)[name], 1)

    def total(self, function: str) -> Any:
        """An array of one value."""
        return _count(self._num_values) if function == "count" else self._extremes[function]

    def _of(self, values: Any) -> Any:
        """{"min", "max"} as scalars."""
        if not self._is_floating or not pc.any(pc.is_nan(values)).as_py():
            return pc.min_max(values)
        # Arrow passes NaN over.
        nan = pa.scalar(float("nan"), values.type)
        numbers = values.filter(pc.invert(pc.is_nan(values)))
        return {"min": pc.min_max(numbers)["min"] if len(numbers) > numbers.null_count else nan, "max": nan}


def _count(number: int) -> Any:
    return arrow_of(np.array([number], np.int64))


def parse_totals(described: Iterable[Mapping[str, Any]]) -> tuple[Total, ...]:
    """As the jar describes them. InputError for a function that is none of these."""
    found = tuple(Total(str(item["function"]), item.get("column")) for item in described)
    for total in found:
        if total.function not in FUNCTIONS or (total.column is None and total.function != "count"):
            raise InputError(f"no total {total.function!r} of {total.column!r}")
    return found
