"""The Python source `lance` of PySpark 4.0 and later: tables as its data sources want them. `source` registers it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from lance_core.errors import InputError
from lance_core.spark.filters import split_filters
from lance_core.spark.names import NAME
from lance_core.spark.options import SourceOptions, parse_options
from lance_core.spark.table_reader import FragmentGroup, TableReader, read_schema
from lance_core.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from lance_core.spark.python_writer import LanceWriter


class LanceSource(DataSource):
    """The source named `lance`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return NAME

    def schema(self) -> Any:
        """Columns of the version that is read."""
        return spark_schema(read_schema(self._parsed))

    def reader(self, schema: Any) -> LanceReader:
        """A reader of the columns in `schema`."""
        return LanceReader(self._parsed, schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Refused: Spark tells such a writer neither the query nor, while rows are written, the batch."""
        raise InputError(
            "the lance source cannot be used directly as a streaming sink",
            cure="Use stream.writeStream.foreachBatch(lance_core.spark.streaming.batches_into(uri)).",
        )

    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """A writer of rows with `schema`."""
        # Spark plans each read in two new processes, and runs it in others: none of them needs what writes.
        from lance_core.spark.python_writer import LanceWriter

        return LanceWriter(self._parsed, schema, overwrite=overwrite)


class PushingLanceSource(LanceSource):
    """The source with filters pushed down by Spark; see the module's head for when that is safe."""

    def reader(self, schema: Any) -> LanceReader:
        """A reader that takes filters."""
        return PushingReader(self._parsed, schema)


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
        # Of no partition Spark makes one that is None.
        return [FragmentPartition(group) for group in self._reader.groups() or [FragmentGroup(0, 0)]]

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
