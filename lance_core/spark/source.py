"""`spark.read.format("lance")` and `df.write.format("lance")`, on Spark's Python data source (PySpark 4.0 and later).

::

    from lance_core.spark.source import register
    register(spark)
    register(spark, name="lance_py")                                  where lance-spark's jar has the name already
    spark.read.format("lance").option("version", 3).load("/t.lance").where("id > 5").select("name")
    df.write.format("lance").mode("append").save("/t.lance")          mode is append or overwrite, and must be given

To read less, say so: `.option("columns", "id,name").option("filter", "id > 5")`.

Spark can also push filters down automatically (`register(spark, push_filters=True)`), but up to 4.2 it keeps what it pushed
with the DataFrame: `df.where("id > 5").count()` and then `df.count()` on the *same* `df` counts the filtered rows again.
With newer releases it is safe; with those, only where every `load()` serves one query.

The writing half of the Python source `lance`: `TableWriter` as PySpark's data source wants it.

The reading half of the Python source `lance`: `TableReader` as PySpark's data source wants it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, InputPartition, WriterCommitMessage

from lance_core.errors import InputError
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.spark.filters import split_filters
from lance_core.spark.options import SourceOptions, parse_options
from lance_core.spark.table_reader import FragmentGroup, TableReader, read_schema
from lance_core.spark.table_writer import TableWriter
from lance_core.spark.types import arrow_schema, spark_schema

NAME = "lance"
_NAME = re.compile(r"[A-Za-z]\w*")


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
        return LanceWriter(self._parsed, schema, overwrite=overwrite)


class PushingLanceSource(LanceSource):
    """The source with filters pushed down by Spark; see the module's head for when that is safe."""

    def reader(self, schema: Any) -> LanceReader:
        """A reader that takes filters."""
        return PushingReader(self._parsed, schema)


def register(spark: Any, *, name: str = NAME, push_filters: bool = False) -> None:
    """Make the source known to a session, as `spark.read.format(name)`.

    InputError where another source has that name already, such as lance-spark's with its jar on the class path: whoever
    went on would get that one, which knows other options.
    """
    from pyspark.errors import AnalysisException

    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a name of a data source", cure="Use letters, digits and _.")
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    base = PushingLanceSource if push_filters else LanceSource
    try:
        spark.dataSource.register(base if name == NAME else _named(base, name))
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        raise InputError(
            f"this Spark has a data source {name!r} of its own, of a jar on its class path (lance-spark's is {NAME!r})",
            cure='Register this one under another name: register(spark, name="lance_py") and spark.read.format("lance_py"); '
            "or use lance_core.spark.frame.read_table, which needs no name; or leave the jar out.",
        ) from None


def _named(base: type[LanceSource], text: str) -> type[LanceSource]:
    class Named(base):  # type: ignore[valid-type, misc]
        """The source under another name."""

        @classmethod
        def name(cls) -> str:
            """What goes into `format(...)`."""
            return text

    return Named


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task sends to the driver: its result, None when the work was done before."""

    result: TaskResult | None


class LanceWriter(DataSourceArrowWriter):
    """Writes a DataFrame with the Spark schema `schema` once."""

    def __init__(self, options: SourceOptions, schema: Any, *, overwrite: bool) -> None:
        self._writer = TableWriter(options, arrow_schema(schema), overwrite=overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task."""
        context = TaskContext.get()
        partition, task = (0, "0") if context is None else (context.partitionId(), str(context.taskAttemptId()))
        return TaskMessage(self._writer.write(partition, task, iterator))

    def commit(self, messages: list[Any]) -> None:
        """Stage, and publish unless `stageOnly`."""
        self._writer.commit([message.result for message in messages if message is not None])

    def abort(self, messages: list[Any]) -> None:
        """Remove what the tasks wrote, when it certainly is in no version."""
        self._writer.abort()


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
