"""What writes through the Python source `lance`: a task's rows, and the commit of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.spark.options import SourceOptions
from lance_core.spark.table_writer import TableWriter
from lance_core.spark.types import arrow_schema


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
