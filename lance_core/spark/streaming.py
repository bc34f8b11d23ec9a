"""Streaming into a table, each batch exactly once: the query's id and the batch's number are its identity.

::

    stream.writeStream.foreachBatch(batches_into("/t.lance")).option("checkpointLocation", "/checkpoints/t").start()

    batch 7 is committed, Spark dies before it notes that    -> it runs batch 7 again: it was committed, nothing is added

Why not `writeStream.format("lance")`: Spark's Python sinks are not told the query's id, and learn the batch's number only
after the rows were written, too late to look whether they were committed.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping
from typing import Any

from lance_core.errors import InputError
from lance_core.spark.source import register

_QUERY_ID = "sql.streaming.queryId"


def batches_into(
    uri: str, *, query: str | None = None, options: Mapping[str, Any] | None = None
) -> Callable[[Any, int], None]:
    """A function for `foreachBatch` that appends each batch, once.

    `query` tells streams into one table apart and must stay the same over restarts; None takes Spark's own id, which lives
    in the checkpoint (not known through Spark Connect). `options` as for `df.write.format("lance")`: storage options,
    `maxRowsPerFile`, `stageOnly`, `branch`, ...
    """

    def write(frame: Any, batch_id: int) -> None:
        session = frame.sparkSession
        register(session)
        name = query or query_id_of(session)
        writer = frame.write.format("lance").mode("append")
        writer = writer.option("streamingQueryId", name).option("streamingBatch", int(batch_id))
        for option, value in (options or {}).items():
            writer = writer.option(option, value)
        writer.save(uri)

    return write


def query_id_of(session: Any) -> str:
    """The id of the query that is running in this thread. InputError where Spark does not tell."""
    context = getattr(session, "_sc", None)
    found = None if context is None else context.getLocalProperty(_QUERY_ID)
    try:
        return str(uuids.UUID(str(found)))
    except ValueError:
        raise InputError(
            "the id of the streaming query is unknown",
            cure='Name the query: batches_into(uri, query="events").',
        ) from None
