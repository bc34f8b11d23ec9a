"""The reading half of the Spark source `lance`: pruned columns, pushed filters, a few fragments per partition.

The version is fixed when Spark plans, so every task reads the same table. A task opens that version's manifest itself:
what travels is a uri, a number and fragment ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lance_core.dataset.plan import plan_scan
from lance_core.dataset.projection import plan_projection
from lance_core.dataset.scan import scan
from lance_core.dataset.snapshot import Snapshot, open_snapshot
from lance_core.expr import parse_filter
from lance_core.format.fragment import Fragment
from lance_core.jobs.conform import Conformer
from lance_core.spark.filters import split_filters
from lance_core.spark.options import SourceOptions
from lance_core.spark.types import arrow_schema


@dataclass
class FragmentGroup(InputPartition):
    """Fragments that one task reads, by their place in the manifest: `start` to `end` (excluded)."""

    start: int
    end: int


class LanceReader(DataSourceReader):
    """Reads one version of a table. `schema` is the Spark schema of the columns that are needed."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        snapshot = open_read_snapshot(options)
        self._options = options
        self._version = snapshot.version
        self._columns = [field.name for field in schema.fields]
        self._target = arrow_schema(schema)
        self._filter = options.filter
        if options.filter:
            parse_filter(options.filter, snapshot.arrow_schema)  # refused now, not on executors

    def partitions(self) -> Sequence[InputPartition]:
        """Neighbouring fragments together, up to `rowsPerPartition` rows."""
        return group_fragments(self._snapshot().manifest.fragments, self._options.rows_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one task, in the types that Spark takes."""
        assert isinstance(partition, FragmentGroup)
        snapshot = self._snapshot()
        manifest = snapshot.manifest
        fragments = [manifest.fragments[index] for index in range(partition.start, partition.end)]
        plan = plan_scan(
            manifest.schema,
            fragments,
            plan_projection(manifest.schema, self._columns),
            filter=parse_filter(self._filter, snapshot.arrow_schema) if self._filter else None,
        )
        conformer = Conformer(self._target, uri=self._options.uri)
        for batch in scan(snapshot, plan, batch_size=self._options.batch_size):
            yield conformer.apply(batch)

    def _and(self, text: str | None) -> None:
        self._filter = " AND ".join(f"({part})" for part in (self._options.filter, text) if part) or None

    def _snapshot(self) -> Snapshot:
        return open_snapshot(self._options.uri, version=self._version, storage_options=self._options.storage)


class PushingReader(LanceReader):
    """A reader that takes Spark's filters as well. Spark refuses a reader with this method unless its option allows it."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Takes the filters that mean the same here as in Spark, gives back the others."""
        text, left = split_filters(filters, self._snapshot().arrow_schema)
        self._and(text)
        yield from left


def open_read_snapshot(options: SourceOptions) -> Snapshot:
    """The version that the options name."""
    return open_snapshot(options.uri, version=options.version, asof=options.asof, storage_options=options.storage)


def group_fragments(fragments: Sequence[Fragment], max_rows: int) -> list[InputPartition]:
    """Consecutive fragments in groups of at most `max_rows` living rows; a larger fragment is a group of its own."""
    groups: list[InputPartition] = []
    start, rows = 0, 0
    for index, fragment in enumerate(fragments):
        if index > start and rows + fragment.num_rows > max_rows:
            groups.append(FragmentGroup(start, index))
            start, rows = index, 0
        rows += fragment.num_rows
    if start < len(fragments):
        groups.append(FragmentGroup(start, len(fragments)))
    return groups
