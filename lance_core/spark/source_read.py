"""The reading half of the Python source `lance`: `TableReader` as PySpark's data source wants it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lance_core.spark.filters import split_filters
from lance_core.spark.options import SourceOptions
from lance_core.spark.table_reader import FragmentGroup, TableReader
from lance_core.spark.types import arrow_schema


@dataclass
class FragmentPartition(InputPartition):
    """What one task reads."""

    group: FragmentGroup


class LanceReader(DataSourceReader):
    """Reads one version of a table. `schema` is the Spark schema of the columns that are needed."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._reader = TableReader(options, [field.name for field in schema.fields], arrow_schema(schema))

    def partitions(self) -> Sequence[InputPartition]:
        """One task for each group of neighbouring fragments."""
        return [FragmentPartition(group) for group in self._reader.groups()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one task, in the types that Spark takes."""
        assert isinstance(partition, FragmentPartition)
        return self._reader.read(partition.group)


class PushingReader(LanceReader):
    """A reader that takes Spark's filters as well. Spark refuses a reader with this method unless its option allows it."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Takes the filters that mean the same here as in Spark, gives back the others."""
        text, left = split_filters(filters, self._reader.arrow_schema)
        self._reader.filter_also(text)
        yield from left
