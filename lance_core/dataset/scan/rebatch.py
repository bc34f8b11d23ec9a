"""Rebatch a stream: into batches of exactly so many rows, or of about so many bytes at most.

::

    rows 7 7 1 6, exactly 5      ->  5 5 5 5 1
    1 MiB in 100 rows, 256 KiB   ->  25 25 25 25
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_core.dataset.snapshot.assemble import empty_columns


def exactly(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of `rows` rows; the last one may have fewer."""
    pending: list[pa.RecordBatch] = []
    waiting = 0
    for batch in batches:
        start = 0
        while waiting + batch.num_rows - start >= rows:
            taken = rows - waiting
            yield _joined([*pending, batch.slice(start, taken)])
            pending, waiting, start = [], 0, start + taken
        if start < batch.num_rows:
            pending.append(batch.slice(start))
            waiting += batch.num_rows - start
    if pending:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if batches[0].num_columns == 0:
        return empty_columns(sum(batch.num_rows for batch in batches))
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def at_most_bytes(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Batches of about `size` bytes at most, by the mean size of a row; a row is never cut."""
    for batch in batches:
        rows = batch.num_rows
        if batch.nbytes > size and rows > 1:
            rows = max(1, batch.num_rows * size // batch.nbytes)
        for start in range(0, batch.num_rows, max(rows, 1)):
            yield batch.slice(start, rows)
