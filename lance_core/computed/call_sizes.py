"""Which rows one call of a function gets: bounded in rows, in bytes of inputs, and in tokens as the function counts them.

::

    rows of 10, 10, 90, 200, 10 bytes, batch_bytes=100      10 10 | 90 | 200 | 10

A row that alone has more than a bound is a call of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow.row_sizes import row_sizes
from lance_core.runs import runs_within


@dataclass(frozen=True)
class CallBounds:
    """What one call gets at most: rows, bytes of inputs, tokens; None is unbounded."""

    rows: int
    bytes: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class CallSizes:
    """How rows are cut into calls. `costs`: what each row takes, with the bound of it."""

    most_rows: int
    costs: Sequence[tuple[Ints, int]] = ()

    def cut(self, places: Ints) -> list[Ints]:
        """Ascending places among the rows, a piece for each call."""
        if not self.costs:
            return [places[begin : begin + self.most_rows] for begin in range(0, len(places), self.most_rows)]
        costs = [([1] * len(places), self.most_rows), *((taken[places].tolist(), most) for taken, most in self.costs)]
        return [places[begin:end] for begin, end in runs_within(*costs)]


def bytes_of_rows(batch: pa.RecordBatch) -> Ints:
    """Bytes of the values in each row of a batch."""
    sizes: Ints = np.sum([row_sizes(column) for column in batch.columns], axis=0, dtype=np.int64)
    return sizes
