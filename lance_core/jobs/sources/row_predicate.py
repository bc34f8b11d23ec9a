"""Check that all rows of a source satisfy a filter: the first that does not fails the job.

::

    satisfying(batches, "day = date '2013-01-02'", schema=...)
    InputError: row 17 of the source does not satisfy day = date '2013-01-02': {'day': datetime.date(2013, 1, 3)}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_core.arrow_numpy import true_of
from lance_core.errors import InputError
from lance_core.expr import Expr, columns_of, evaluate, parse_filter


def satisfying(batches: Iterable[pa.RecordBatch], predicate: str, *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches, each checked as it passes. InputError names the first row (of this partition) and its values."""
    expr = parse_filter(predicate, schema)
    first = 0
    for batch in batches:
        known = true_of(evaluate(expr, batch))
        if not known.all():
            row = int(known.argmin())
            raise InputError(
                f"row {first + row} of the source does not satisfy {predicate}: {_shown(batch, row, expr)}",
                cure="Widen the predicate, or exclude such rows from the source.",
            )
        first += batch.num_rows
        yield batch


def _shown(batch: pa.RecordBatch, row: int, expr: Expr) -> dict[str, object]:
    names = dict.fromkeys(name.split(".")[0] for name in columns_of(expr))
    return {name: batch.column(name)[row].as_py() for name in names if name in batch.schema.names}
