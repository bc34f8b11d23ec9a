"""Vectors passed in to be compared with an index, as they are in the batches: found by row id, gathered a few at a time.

::

    handed = Handed(batches, "l2")           ids [7, 3, 9], of which 9 is null
    handed.find([3, 8, 7])                   which are handed: [True, False, True], their places [1, 0]; 1 and 0 are seen now
    handed.vectors([1, 0])                   two rows, in the type of the column
    handed.require_all_seen()                7 and 3, each once; had 9 been found, CorruptFileError

Nothing is copied but what is gathered. Safe to share between threads once all is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Ids
from lance_core.arrow_numpy import numpy_of
from lance_core.format.index_details import Metric
from lance_core.index.base import ID, VALUE
from lance_core.index.scalar.verify import require

Places = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
MUST, MAY, NEVER = 0, 1, 2
_STEP = 1 << 20
_LEAST, _MOST = 1e-30, 1e36
"""Squared lengths that single precision can tell: what is done with others is left to who wrote the index."""


class ReferenceVectors:
    """Rows by id. Vectors that are null or not finite are in no index, with cosine those of length zero neither."""

    def __init__(self, batches: Iterable[pa.RecordBatch], metric: Metric) -> None:
        pieces = [_piece(batch, metric) for batch in batches if batch.num_rows]
        self._chunks = [rows for rows, _, _ in pieces]
        self._starts = np.cumsum([0, *(len(rows) for rows in self._chunks)])
        ids = np.concatenate([mine for _, mine, _ in pieces]) if pieces else np.empty(0, np.uint64)
        self._duties = np.concatenate([duties for _, _, duties in pieces]) if pieces else np.empty(0, np.uint8)
        self._order: Places | None = None
        if len(ids) > 1 and not bool((ids[1:] > ids[:-1]).all()):
            self._order = np.argsort(ids, kind="stable")
            ids = ids[self._order]
        self._ids = ids
        self._seen = np.zeros(len(ids), np.bool_)
        self._times = 0

    @property
    def num_rows(self) -> int:
        """How many were handed, with those that should be in no index."""
        return len(self._ids)

    def find(self, ids: Ids) -> tuple[Bits, Places]:
        """(which ids were handed, the places of these), noted as seen. CorruptFileError: one has no place in an index."""
        at = np.searchsorted(self._ids, ids)
        known = np.zeros(len(ids), np.bool_)
        inside = at < len(self._ids)
        known[inside] = self._ids[at[inside]] == ids[inside]
        at = at[known]
        self._times += len(at)
        self._seen[at] = True
        places = at if self._order is None else self._order[at]
        require((self._duties[places] != NEVER).all(), "a row without a vector is indexed")
        return known, places

    def require_all_seen(self) -> None:
        """Raises CorruptFileError unless each row was found once."""
        require(self._times == int(self._seen.sum()), "a row is indexed twice")
        duties = self._duties if self._order is None else self._duties[self._order]
        require((self._seen | (duties != MUST)).all(), "a row is missing in the index")

    def is_sound(self, places: Places) -> Bits:
        """Of which rows the codes can be judged: lengths that single precision can tell."""
        return np.asarray(self._duties[places] == MUST, np.bool_)

    def vectors(self, places: Places) -> npt.NDArray[Any]:
        """Rows [n, dim] at some places."""
        if len(self._chunks) == 1:
            return self._chunks[0][places]
        owners = np.searchsorted(self._starts, places, side="right") - 1
        out = np.empty((len(places), self._chunks[0].shape[1]), self._chunks[0].dtype)
        for owner in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == owner)
            out[mine] = self._chunks[owner][places[mine] - self._starts[owner]]
        return out


def _piece(batch: pa.RecordBatch, metric: Metric) -> tuple[npt.NDArray[Any], Ids, npt.NDArray[np.uint8]]:
    column: Any = batch.column(VALUE)
    array = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    width = array.type.list_size
    values = array.values.slice(array.offset * width, len(array) * width)
    rows = numpy_of(values, may_copy=True).reshape(len(array), width)
    if metric == "hamming":
        rows = rows.astype(np.uint8, copy=False)
    duties = np.full(len(rows), MUST, np.uint8) if metric == "hamming" else _duties(rows, metric)
    if array.null_count:
        duties[~numpy_of(array.is_valid(), may_copy=True)] = NEVER
    return rows, numpy_of(batch.column(ID)), duties


def _duties(rows: npt.NDArray[Any], metric: Metric) -> npt.NDArray[np.uint8]:
    out = np.full(len(rows), MUST, np.uint8)
    step = max(1, _STEP // max(1, rows.shape[1]))
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        part = part if part.dtype == np.float64 else part.astype(np.float32, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", part, part)
        mine = out[first : first + step]
        mine[~(squares <= _MOST)] = MAY
        if metric == "cosine":
            mine[squares < _LEAST] = MAY
            mine[~part.any(axis=1)] = NEVER
        large = np.flatnonzero(~np.isfinite(squares))
        mine[large[~np.isfinite(part[large]).all(axis=1)]] = NEVER
    return out
