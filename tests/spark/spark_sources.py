"""Sources that tests name as `spark_sources:function`; imported by the driver and by executors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def numbers(spark: Any, rows: int = 1000, partitions: int = 4, start: int = 0) -> Any:
    """`id`, `name` (null for every 7th)."""
    frame = spark.range(start, start + rows, 1, partitions)
    return frame.selectExpr("id", "if(id % 7 = 0, null, concat('n', id)) as name")


def expected(rows: int = 1000, start: int = 0) -> pa.Table:
    """What `numbers` holds."""
    ids = range(start, start + rows)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [None if i % 7 == 0 else f"n{i}" for i in ids]})


def fails_once(spark: Any, marker: str, rows: int = 1000, how: str = "raise") -> Any:
    """`numbers`, of which partition 1 fails halfway the first time it is run, or takes its process with it."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            if TaskContext.get().partitionId() == 1 and not Path(marker).exists():
                Path(marker).touch()
                if how == "exit":
                    os._exit(1)
                raise OSError("the disk went away")
            yield batch.slice(half)

    frame = numbers(spark, rows)
    return frame.mapInArrow(pass_on, frame.schema)


def waits(spark: Any, marker: str, rows: int = 1000) -> Any:
    """`numbers`, of which the last partition waits until a file is there."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for batch in batches:
            yield batch
            while TaskContext.get().partitionId() == 3 and not Path(marker).exists():
                time.sleep(0.1)

    frame = numbers(spark, rows)
    return frame.mapInArrow(pass_on, frame.schema)


def typed(spark: Any) -> Any:
    """Columns of many types, among them vectors."""
    return spark.sql(
        """
        select cast(id as int) as i, cast(id as double) as f, id % 2 = 0 as b,
               date_add(date'2013-01-01', cast(id as int)) as d,
               timestamp'2013-07-01 12:00:00 UTC' + make_dt_interval(0, 0, 0, id) as t,
               cast(id as decimal(10, 2)) as m, cast(concat('b', id) as binary) as y,
               array(cast(id as float), cast(0.5 as float)) as v, named_struct('k', id, 'l', array(concat('x', id))) as s,
               map('id', id) as p
        from range(0, 10, 1, 2)
        """
    )


def negative(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column for `add_columns`."""
    return pa.record_batch([pc.negate(batch.column("id"))], names=["minus"])
