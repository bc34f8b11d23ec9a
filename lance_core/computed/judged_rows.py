"""The rows of a fragment with what their evidence says of them; blobs among their inputs are read of rows that need them.

::

    row   evidence        proven by the log     to judge ("known")    to compute ("computed")
    0     fits            yes                   -                     -
    1     there           no                    read, compared        read, compared
    2     there           yes, but it failed    -                     read, given to the function
    3     none            -                     -                     read, given to the function
    4     deleted, or left out by `where`       -                     -

What is not read is not known, and counts as changed, unless it is proven. Rows that `where` leaves out have no blobs in
their digest: what they hold does not matter as long as they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools
from lance_core.computed.blob_inputs import TOLD, BlobRows
from lance_core.computed.evidence import HEAD_BYTES, RowStates, evidence_heads, input_digests, judge
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.format.schema import Field, Schema
from lance_core.pages.rows import RowSelection
from lance_core.runs import runs_within

Need = Literal["known", "computed"]
"""Whose blobs are read: of rows that have evidence, or of those that are to be computed too."""
_GROUP_ROWS, _GROUP_BYTES = 16_384, 8 << 20
"""Batches that are judged and written together have no more rows and bytes than this, unless one alone has."""


@dataclass(frozen=True)
class JudgedRows:
    """Neighbouring rows of a fragment, `first` among its physical rows. `batch`: inputs as a function gets them, value and
    evidence; `told`: inputs as their digest sees them; `digests`: of all rows that are to be computed or were read."""

    first: int
    batch: pa.RecordBatch
    told: pa.RecordBatch
    living: Bools
    states: RowStates
    digests: Any


@dataclass(frozen=True)
class JudgedColumns:
    """What is read: the names of the inputs, of the value, and of the evidence; blobs among the inputs; the definition."""

    inputs: tuple[str, ...]
    blobs: tuple[Field, ...]
    value: str
    evidence: str
    identity: bytes


class RowJudge:
    """Reads and judges the rows of one fragment. `source`: the fields that are read, without blobs. `is_wanted`: what
    `where` says of a batch of them. `prove`: for each physical row whether its inputs are proven to be as its evidence has
    them; requested once, when the first blob would be read."""

    def __init__(
        self,
        reader: FragmentReader,
        source: Schema,
        columns: JudgedColumns,
        *,
        living: Bools,
        is_wanted: Callable[[pa.RecordBatch], Bools],
        prove: Callable[[], Bools],
        trusts_values: bool,
    ) -> None:
        self._reader, self._source, self._columns, self._living = reader, source, columns, living
        self._is_wanted, self._prove, self._trusts_values = is_wanted, prove, trusts_values
        self._known: Bools | None = None

    def rows(self, need: Need, *, batch_rows: int, blob_bytes: int, retry_failed: bool = True) -> Iterator[JudgedRows]:
        """All physical rows in order, `blob_bytes` of blobs at a time, or one that alone has more."""
        first = 0
        span = RowSelection.span(0, self._reader.fragment.physical_rows)
        for batch in _grouped(self._reader.read(self._source, span, batch_size=batch_rows)):
            if self._columns.blobs:
                yield from self._with_blobs(batch, first, need, blob_bytes, retry_failed)
            else:
                living = self._living[first : first + batch.num_rows]
                digests = input_digests(batch, self._columns.inputs, self._columns.identity)
                yield JudgedRows(first, batch, batch, living, self._judge(batch, digests), digests)
            first += batch.num_rows

    def blob_bytes(self, first: int, needed: Bools) -> int:
        """Bytes of the blobs of some rows, of which descriptors are read."""
        return sum(int(BlobRows.of(self._reader, field, first, needed).sizes.sum()) for field in self._columns.blobs)

    def _with_blobs(
        self, batch: pa.RecordBatch, first: int, need: Need, most: int, retry_failed: bool
    ) -> Iterator[JudgedRows]:
        living, wanted = self._living[first : first + batch.num_rows], self._is_wanted(batch)
        nothing = np.zeros(batch.num_rows, np.bool_)
        nulls = [(pa.nulls(batch.num_rows, pa.large_binary()), pa.nulls(batch.num_rows, TOLD))] * len(self._columns.blobs)
        before = self._judged(batch, first, nulls, nothing, wanted).states
        if need == "known":
            needed = living & wanted & before.changed
        else:
            needed = living & wanted & ~(before.fresh if retry_failed else before.fresh | before.failed)
        blobs = [BlobRows.of(self._reader, field, first, needed) for field in self._columns.blobs]
        sizes: Any = np.sum([found.sizes for found in blobs], axis=0, dtype=np.int64)
        for begin, end in runs_within((sizes.tolist(), most)):
            part = batch if end - begin == batch.num_rows else batch.slice(begin, end - begin)
            loaded = [found.part(begin, end).load() for found in blobs]
            rows = self._judged(part, first + begin, loaded, needed[begin:end], wanted[begin:end])
            states = rows.states
            known = self._proven()[rows.first : rows.first + part.num_rows]
            known |= (states.fresh | states.failed | states.overwritten) & wanted[begin:end]
            yield rows

    def _judged(
        self, batch: pa.RecordBatch, first: int, loaded: list[tuple[Any, Any]], is_read: Bools, wanted: Bools
    ) -> JudgedRows:
        names = [field.name for field in self._columns.blobs]
        given = _with_columns(batch, names, [values for values, _ in loaded])
        told = _with_columns(batch, names, [told for _, told in loaded])
        digests = input_digests(told, self._columns.inputs, self._columns.identity)
        there, heads = evidence_heads(batch.column(self._columns.evidence))
        unread = wanted & ~is_read
        if (unread & there).any():
            proven = unread & there & self._proven()[first : first + batch.num_rows]
            digests[proven, :HEAD_BYTES] = heads[proven]
            unread &= ~proven
        digests[unread, :HEAD_BYTES] = ~heads[unread]
        living = self._living[first : first + batch.num_rows]
        return JudgedRows(first, given, told, living, self._judge(batch, digests), digests)

    def _judge(self, batch: pa.RecordBatch, digests: Any) -> RowStates:
        values = None if self._trusts_values else batch.column(self._columns.value)
        return judge(batch.column(self._columns.evidence), digests, values)

    def _proven(self) -> Bools:
        """What the log proves, and what was read since."""
        if self._known is None:
            self._known = self._prove()
        return self._known


def _with_columns(batch: pa.RecordBatch, names: list[str], arrays: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, *arrays], names=[*batch.schema.names, *names])


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Neighbours as one batch, as long as they are small together: what is done for a batch takes as long for a few rows."""
    held, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        if held and (rows + batch.num_rows > _GROUP_ROWS or size + batch.nbytes > _GROUP_BYTES):
            yield _joined(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(place) for batch in batches]) for place in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
