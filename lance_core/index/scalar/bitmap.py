"""Bitmap: for each distinct value the set of rows that have it.

::

    values [b, a, null, b]     keys [null, a, b]     bitmaps [{2}, {1}, {0, 3}]

Asked something, it tests the distinct values and unites their sets. (Spec: FORMAT E.3.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import ID, Answer, IndexFolder, IndexKind
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.scalar.external_sort import in_order, is_ordered
from lance_core.index.scalar.id_lookup import Once, Places
from lance_core.index.scalar.postings import Postings, write_postings
from lance_core.index.scalar.predicates import is_value_test
from lance_core.index.scalar.verify import in_pieces, require_same_values


def train(
    folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, memory_limit: int | None = None
) -> tuple[IndexFile, ...]:
    """Sort the rows by value, on disk where they do not fit the memory that may be used, and write one set per value."""
    parts = in_order(batches, value_type, limit=memory_bytes(memory_limit))
    return (write_postings(folder, parts, value_type, metadata={}),)


class Bitmap:
    """An open bitmap index."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        self._postings = Postings(folder, path)
        self._type = value_type

    def search(self, part: Expr) -> Answer | None:
        """The rows whose value passes the test, exactly."""
        return Answer(self._postings.rows(self._postings.matching(part)), is_exact=True)

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in one set, that of its value."""
        batches = [*batches]
        ids = np.concatenate([np.empty(0, np.uint64), *(numpy_of(batch.column(ID)) for batch in batches)])
        rows, once = Places(ids), Once(len(ids))
        keys, key_of = self._postings.keys(), np.full(len(ids), -1, np.int32)
        for positions, stored in self._postings.pairs(ids):
            found = rows.of(stored)
            is_here = found >= 0
            once.note(found[is_here])
            key_of[found[is_here]] = positions[is_here]
        once.require_all()
        first = 0
        for values, _ in in_pieces(batches, self._type):
            require_same_values(keys.take(arrow_of(key_of[first : first + len(values)])), values)
            first += len(values)

    def statistics(self) -> dict[str, Any]:
        """The number of distinct values."""
        return {"num_bitmaps": self._postings.num_keys}


KIND = IndexKind(
    name="BITMAP",
    title="Bitmap",
    details="BitmapIndexDetails",
    version=0,
    written_version=0,
    accepts=is_ordered,
    can_answer=is_value_test,
    train=train,
    open=Bitmap,
    describe=lambda _type, _parameters: PlainDetails("BitmapIndexDetails"),
    parameters=frozenset({OPTION}),
)
