"""A source for jobs under test, sent along as a file (`py_files`): rows on HDFS that take their time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

BATCH_ROWS = 2000


def slow_rows(session: Any, paths: list[str], seconds: float) -> Any:
    """The rows of Parquet files, a task for each file, which waits after each few rows."""

    def wait(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    session.conf.set("spark.sql.files.openCostInBytes", str(128 << 20))  # no two files in one task
    frame = session.read.parquet(*paths)
    return frame.mapInArrow(wait, frame.schema)
