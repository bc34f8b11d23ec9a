"""Check that the pages of a B-tree are sorted and match the bounds in their table.

::

    pages of 4    [null, 1, 1, 2] [3, 5, 5, 9]     table of pages (min, max, null_count): (null, 2, 1) (3, 9, 0)

Pages are passed in as they are read, whole pages at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.index.scalar.verify import not_above, null_mask, require, require_bounds


class PageEnds:
    """The ends of all pages read so far, against the table `pages` (min, max, null_count, page_idx)."""

    def __init__(self, pages: pa.RecordBatch, page_rows: int) -> None:
        self._pages, self._page_rows = pages, page_rows
        self.num_rows = 0
        self._rows_of = np.full(pages.num_rows, -1, np.int64)
        self._rows_of[numpy_of(pages.column(3))] = np.arange(pages.num_rows)
        require((self._rows_of >= 0).all(), "a page is not listed")
        self._nulls = numpy_of(pages.column(2))
        self._found: list[tuple[Any, Any, Any]] = []

    def note(self, values: Any) -> None:
        """Take in pages (all but the last of the file are full). CorruptFileError: they are not in order."""
        count = len(values)
        if count == 0:
            return
        starts = np.arange(0, count, self._page_rows)
        numbers = self.num_rows // self._page_rows + np.arange(len(starts))
        self.num_rows += count
        require(numbers[-1] < len(self._rows_of), "the index has more pages than it declares")
        ends, rows = np.minimum(starts + self._page_rows, count), self._rows_of[numbers]
        if values.null_count:
            is_null = null_mask(values)
            nulls = np.add.reduceat(is_null.astype(np.int64), starts)
            places = np.arange(count) - np.repeat(starts, ends - starts)
            require(np.array_equal(is_null, places < np.repeat(nulls, ends - starts)), "nulls are not first in a page")
            require((nulls <= self._nulls[rows]).all(), "a page has more nulls than it declares")
            self._require_order(values.drop_null(), np.cumsum(ends - starts - nulls))
        else:
            nulls = np.zeros(len(starts), np.int64)
            self._require_order(values, ends)
        has_values = starts + nulls < ends
        firsts, lasts = (starts + nulls)[has_values], ends[has_values] - 1
        if len(firsts):
            self._found.append((rows[has_values], values.take(arrow_of(firsts)), values.take(arrow_of(lasts))))

    def _require_order(self, present: Any, ends: Any) -> None:
        """Values that are not null, and where those of each page end."""
        if len(present) < 2:
            return
        follows = not_above(present.slice(0, len(present) - 1), present.slice(1))
        borders = ends[(ends > 0) & (ends < len(present))] - 1
        follows[borders] = True
        require(follows.all(), "a page is not sorted")

    def require_bounds(self) -> None:
        """CorruptFileError: the table of pages does not allow for a value."""
        if self._found:
            rows, lows, highs = zip(*self._found, strict=True)
            require_bounds(self._pages, np.concatenate(rows), pa.concat_arrays(lows), pa.concat_arrays(highs))
