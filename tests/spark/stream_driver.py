"""A streaming query in a process of its own, which kills itself at a step of one batch, once.

::

    python stream_driver.py TABLE FEED CHECKPOINT STEP MARKER      STEP: "rows written" | "committed" | "never"
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

BATCH = 1


def main(uri: str, feed: str, checkpoint: str, step: str, marker: str) -> None:
    """Run the query to the end of what is in `feed`."""
    from pyspark.sql import SparkSession

    from lance_core.spark.streaming import batches_into

    builder: Any = SparkSession.builder
    spark = builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    write = batches_into(uri, options={"maxRowsPerFile": 5})

    def each(frame: Any, batch: int) -> None:
        dies = batch == BATCH and not Path(marker).exists()
        if dies and step == "rows written":
            frame = frame.mapInArrow(killer(os.getpid(), marker), frame.schema)
        write(frame, batch)
        if dies and step == "committed":
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    stream = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(feed)
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def killer(driver: int, marker: str) -> Any:
    """A function over a task's batches that kills the driver when the writer has had them all."""

    def pass_on(batches: Any) -> Any:
        yield from batches
        Path(marker).touch()
        os.kill(driver, signal.SIGKILL)

    return pass_on


if __name__ == "__main__":
    main(*sys.argv[1:])
