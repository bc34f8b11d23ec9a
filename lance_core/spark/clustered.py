"""Tasks of one value each, of a table whose fragments have one value of a column each: Spark joins them without a shuffle.

::

    fragments by day  1 1 2 3 3 3        tasks  [1 1] [2] [3 3] [3]       keys  1 2 3 3

A table of Lance has no partitions; that its rows came a day at a time is known from a zone map. Nothing is trusted that
a join rests on: a task compares the column, which is among those read, with the value that was told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_core.errors import CorruptFileError, SchemaMismatchError
from lance_core.jobs.sources.conform import Conformer
from lance_core.spark.table_reader import LEAST_BYTES, FragmentGroup, TableReader

_MOST_OF_A_SHARE = 2
"""Spark reads all of one value in one task, even for a scan that no join follows: at most so many shares of a processor."""
_MORE_TASKS = 4
"""So many times the tasks of a plain scan, or so many for each processor: a task takes about 10 ms, whoever joins or not."""


@dataclass(frozen=True)
class KeyedGroup(FragmentGroup):
    """Fragments whose rows all have one `value` in `column`, in the type that Spark takes."""

    column: str = ""
    value: Any = None


@dataclass(frozen=True)
class Clustering:
    """What tasks read, and the column that each has one value of."""

    column: str
    groups: tuple[KeyedGroup, ...]

    @property
    def keys(self) -> list[Any]:
        """The value of each group as JSON: days and microseconds since 1970 for dates and times."""
        return [_as_json(group.value) for group in self.groups]


def clustering(
    reader: TableReader, plain: Sequence[FragmentGroup], *, parallelism: int, column: str | None = None
) -> Clustering | None:
    """The column of those read with most values, or None where no column will do or it would slow a plain scan down.

    Args:
        plain: what tasks read otherwise.
        column: what Spark was told before, of the same version: kept, whatever a narrower filter leaves of it.
    """
    found = [
        made
        for name, values in reader.single_values().items()
        if column in (None, name) and _is_exact(reader.target.field(name).type)
        for made in [_clustering(reader, plain, name, values, parallelism)]
        if made is not None and (column is not None or _is_worth_it(reader, made, plain, parallelism))
    ]
    return max(found, key=_num_values, default=None)


def _clustering(
    reader: TableReader, plain: Sequence[FragmentGroup], name: str, values: Mapping[int, Any], parallelism: int
) -> Clustering | None:
    numbers = reader.fragment_ids
    if any(numbers[place] not in values for group in plain for place in range(group.start, group.end)):
        return None
    try:
        converted = _converted(values, reader.target.field(name))
    except SchemaMismatchError:  # told by the scan, of the rows themselves
        return None
    codes: dict[Any, int] = {}
    apart = [codes.setdefault(converted[number], len(codes)) if number in converted else -1 for number in numbers]
    groups = reader.groups(parallelism=parallelism, apart=apart)
    keyed = (KeyedGroup(group.start, group.end, group.described, name, converted[numbers[group.start]]) for group in groups)
    return Clustering(name, tuple(keyed))


def _converted(values: Mapping[int, Any], field: Any) -> Mapping[int, Any]:
    stored = pa.concat_arrays([pa.repeat(value, 1) for value in values.values()])
    batch = pa.RecordBatch.from_arrays([stored], names=[field.name])
    column = Conformer(pa.schema([field]), uri="").apply(batch).column(0)
    return dict(zip(values, column, strict=True))


def _is_exact(kind: Any) -> bool:
    """Whether equal values are the same value, to Spark as here."""
    is_number = pt.is_signed_integer(kind) or pt.is_boolean(kind)
    return bool(is_number or pt.is_date32(kind) or pt.is_timestamp(kind) or pt.is_string(kind))


def _is_worth_it(reader: TableReader, made: Clustering, plain: Sequence[FragmentGroup], parallelism: int) -> bool:
    most = _MORE_TASKS * max(len(plain), parallelism)
    if _num_values(made) < max(2, parallelism) or len(made.groups) > most:
        return False
    sizes: dict[Any, int] = {}
    for group in made.groups:
        sizes[group.value] = sizes.get(group.value, 0) + reader.bytes_of(group)
    share = sum(sizes.values()) // parallelism
    return max(sizes.values()) <= max(LEAST_BYTES, _MOST_OF_A_SHARE * share)


def _num_values(made: Clustering) -> int:
    return len({group.value for group in made.groups})


def _as_json(value: Any) -> Any:
    if pt.is_date32(value.type) or pt.is_timestamp(value.type):
        return value.value
    return value.as_py()


def only_of_value(batches: Iterator[pa.RecordBatch], group: FragmentGroup) -> Iterator[pa.RecordBatch]:
    """The batches of a group, as they are. CorruptFileError where a row has another value than the group's."""
    if not isinstance(group, KeyedGroup):
        yield from batches
        return
    for batch in batches:
        if not pc.all(pc.equal(batch.column(group.column), group.value), skip_nulls=False).as_py():
            raise CorruptFileError(
                f"a zone map says that column {group.column!r} has one value in fragments that hold others",
                cure="Build the index again, or set spark.sql.sources.v2.bucketing.enabled to false.",
            )
        yield batch
