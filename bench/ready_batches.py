"""The floor of a Python data source: one that decodes nothing and hands Spark batches that lie ready in Arrow files.

::

    t/0.arrow  t/1.arrow     memory-mapped, one task each     ->  spark.read.format("ready").load("t")

Whatever a table costs to read comes on top of this; no format read through a Python data source can be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from lance_core.spark.types import readable_schema, spark_schema

BATCH_ROWS = 16_384
"""As the source `lance` has it."""


def write_ready(table: pa.Table, folder: Path, *, parts: int) -> None:
    """The table as `parts` files of batches in the very types that Spark takes."""
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-table.num_rows // parts)
    table = table.cast(readable_schema(table.schema))
    for number in range(parts):
        with pa.OSFile(str(folder / f"{number}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.slice(number * step, step), max_chunksize=BATCH_ROWS)


class ReadyBatches(DataSource):
    """The source named `ready`; its path is a folder that `write_ready` filled."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "ready"

    def schema(self) -> Any:
        """The columns of the first file."""
        first = _files(self.options["path"])[0]
        with pa.memory_map(first) as file:
            return spark_schema(pa.ipc.open_file(file).schema)

    def reader(self, schema: Any) -> ReadyReader:
        """A reader of all columns."""
        return ReadyReader(self.options["path"])


class ReadyReader(DataSourceReader):
    """One task for each file."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        """The files."""
        return [InputPartition(path) for path in _files(self._folder)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The file's batches, as they are mapped."""
        with pa.memory_map(partition.value) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def _files(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).glob("*.arrow"))
