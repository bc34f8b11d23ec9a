"""A source for drivers under test: rows that take their time, so that a driver can be killed halfway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def slow_rows(session: Any, rows: int, partitions: int, seconds: float) -> Any:
    """`id`, `day`, `name` for 0 to `rows`, from that many tasks, each in ten batches over `seconds`."""

    def wait(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(seconds / 10)
            yield batch

    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(max(1, rows // partitions // 10)))
    frame = session.range(0, rows, 1, partitions).selectExpr("id", "id % 7 AS day", "concat('row ', id) AS name")
    return frame.mapInArrow(wait, frame.schema)
