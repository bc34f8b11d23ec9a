"""Which batch of a stream a write brings, and whether the table has it: by our records, or by those of lance-spark's sink.

::

    options streamingQueryId, streamingBatch    -> the batch's identity, as for any other work
                                                -> what its version says of it (`table.stream_batches`)

A query that wrote by lance-spark's sink before goes on here, with its checkpoint and its `streamingQueryId`: the batch that
runs again is looked for in the log, by the two properties that this sink leaves there.
"""

from __future__ import annotations

from lance_core.commit.manifests import open_or_none, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.errors import InputError
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.jobs.specs.identity import canonical_uri, make_identity
from lance_core.spark.options import SourceOptions
from lance_core.table.stream_batches import StreamBatch

MOST_LOOKBACK = 10_000
"""The most versions that lance-spark's sink looks at, too."""


def batch_identity(uri: str, query: str, batch_id: int) -> str:
    """The identity of one batch of one query into one table.

    >>> batch_identity("/t", "q", 1) == batch_identity("file:///t/", "q", 1) != batch_identity("/t", "q", 2)
    True
    """
    return _identity(uri, query, str(batch_id))


def batch_of(options: SourceOptions) -> StreamBatch | None:
    """The batch that a write brings; None where it is none of a stream."""
    if options.batch is None:
        return None
    if not options.query or options.batch < 0:
        raise InputError("a batch of a stream needs streamingQueryId and a number from 0 on")
    return StreamBatch(options.query, _identity(options.uri, options.query, ""), options.batch)


def version_of_lance_spark(store: Store, batch: StreamBatch, manifest: Manifest | None, *, lookback: int) -> int | None:
    """The version in which lance-spark's sink has committed a batch, by the two properties that it looks for itself; None
    where there is none in the last `lookback` versions, and once the table has had a batch of the stream by this sink."""
    if manifest is None or batch.is_known(manifest.config):
        return None
    numbers = [number for number in reversed(version_numbers(store)) if number <= manifest.version]
    numbers = numbers[: min(max(lookback, 0), MOST_LOOKBACK)]
    for number, opened in zip(numbers, each(store, numbers, open_or_none), strict=True):
        transaction = None if opened is None else transaction_of(store, opened)
        if transaction is not None and batch.is_of(transaction.properties):
            return number
    return None


def _identity(uri: str, query: str, task: str) -> str:
    return make_identity(canonical_uri(uri), dag_id="spark-streaming", run_id=query, task_id=task)
