"""The steps of a scan of one fragment, in order: read, mask, test, the columns that are read later, the outputs, the limit.

::

    read       rows 0 .. 8191 of the tested columns, and which physical rows they are
    mask       without those that are deleted
    test       those that the filter selects; null means "not selected"
    late       the other columns of the selected rows, a window of tested batches at a time
    outputs    what the projection computes
    limited    no more than are wanted

A step takes and gives `Rows`: a batch, the physical offsets of its rows, and which of them go on. Rows are dropped only when
somebody needs them gone, so counting copies none. Nothing else counts positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow_numpy import arrow_of, true_of
from lance_core.dataset.scan.plan import FragmentTask, ScanPlan, is_itself
from lance_core.dataset.scan.projection import OutputColumn, Projection
from lance_core.dataset.snapshot.assemble import empty_columns
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.row_offsets import is_living, living_span
from lance_core.errors import FilterError
from lance_core.expr import ast, evaluate, evaluate_value
from lance_core.format.schema import Schema
from lance_core.pages.rows import RowSelection
from lance_core.pick import keep

WINDOW_BATCHES = 16
"""Batches of tested columns that are checked before the rest of the selected rows is read: one request for many rows."""

Offsets = range | Ints
"""Ascending physical offsets of a fragment: all between two, or some."""


class Rows(NamedTuple):
    """A batch on its way: the physical offsets of its rows, and which of them go on (None: all)."""

    batch: pa.RecordBatch
    offsets: Offsets
    kept: Bools | None = None

    @property
    def num_kept(self) -> int:
        """How many rows go on."""
        return self.batch.num_rows if self.kept is None else int(np.count_nonzero(self.kept))

    @property
    def kept_offsets(self) -> Ints:
        """The physical offsets of those."""
        if self.kept is None:
            return np.asarray(self.offsets, np.int64)
        if isinstance(self.offsets, range):
            return np.flatnonzero(self.kept) + self.offsets.start
        return self.offsets[self.kept]

    def only(self, mask: Bools) -> Rows:
        """Those that go on and for which the mask is true."""
        return Rows(self.batch, self.offsets, mask if self.kept is None else mask & self.kept)

    def kept_batch(self) -> pa.RecordBatch:
        """The rows that go on as a batch; one without columns keeps its count."""
        if self.kept is None or self.num_kept == self.batch.num_rows:
            return self.batch
        if self.batch.num_columns == 0:
            return empty_columns(self.num_kept)
        return keep(self.batch, arrow_of(self.kept))


def task_rows(
    reader: FragmentReader, plan: ScanPlan, task: FragmentTask, *, batch_size: int
) -> tuple[ScanPlan, Iterator[Rows]]:
    """Read, mask and test the rows of a task; and what is left to do, which is less where indices picked them."""
    if task.picked is not None:
        offsets = task.picked.offsets[is_living(reader.deleted, task.picked.offsets)]
        return task.picked.plan, _tested(reader, task.picked.plan, offsets, batch_size)
    span = range(*living_span(reader.deleted, task.start, task.end))
    return plan, _tested(reader, plan, span, batch_size)


def task_batches(reader: FragmentReader, plan: ScanPlan, task: FragmentTask, *, batch_size: int) -> Iterator[pa.RecordBatch]:
    """The whole chain but for the limit: batches of the plan's outputs, none of them empty."""
    left, rows = task_rows(reader, plan, task, batch_size=batch_size)
    if left.rest is not None:
        batches = late(reader, left.rest, rows, batch_size=batch_size)
    elif left.projection.outputs:
        batches = (item.kept_batch() for item in rows)
    else:
        # Only counted: no row is copied for it.
        batches = (empty_columns(item.num_kept) for item in rows)
    for batch in batches:
        if batch.num_rows:
            yield project(batch, left.projection)


def _tested(reader: FragmentReader, plan: ScanPlan, offsets: Offsets, batch_size: int) -> Iterator[Rows]:
    if not len(offsets):
        return iter(())
    rows = read(reader, plan.first, offsets, batch_size=batch_size, system=plan.first_system)
    if isinstance(offsets, range):
        rows = mask(rows, reader.deleted)
    return rows if plan.filter is None else test(rows, plan.filter)


def read(
    reader: FragmentReader, schema: Schema, offsets: Offsets, *, batch_size: int, system: Collection[str] = ()
) -> Iterator[Rows]:
    """Physical rows, in order. Where those wanted are close together all between them is read too and dropped again."""
    wanted, selected, is_wanted = _selection(schema, offsets)
    at = 0
    with closing(reader.read(schema, selected, batch_size=batch_size, system=system)) as batches:
        for batch in batches:
            here = slice(at, at + batch.num_rows)
            at += batch.num_rows
            if is_wanted is None:
                yield Rows(batch, wanted[here])
            elif is_wanted[here].any():
                rows = Rows(batch, wanted[here], is_wanted[here])
                yield Rows(rows.kept_batch(), rows.kept_offsets)


def _selection(schema: Schema, offsets: Offsets) -> tuple[Offsets, RowSelection, Bools | None]:
    """The rows to read, as offsets and as ranges; and which of them are wanted, if not all are."""
    if isinstance(offsets, range):
        return offsets, RowSelection.span(offsets.start, offsets.stop), None
    first, last = int(offsets[0]), int(offsets[-1]) + 1
    share = len(offsets) / (last - first)
    if share == 1 or share < (SPARSE_SHARE_NARROW if is_narrow(schema) else SPARSE_SHARE):
        return offsets, RowSelection.indices(offsets), None
    is_wanted = np.zeros(last - first, np.bool_)
    is_wanted[offsets - first] = True
    return range(first, last), RowSelection.span(first, last), is_wanted


def mask(rows: Iterator[Rows], deleted: Ints) -> Iterator[Rows]:
    """Without deleted rows; of neighbouring ones only."""
    for item in rows:
        low, high = np.searchsorted(deleted, [item.offsets[0], item.offsets[-1] + 1]) if len(item.offsets) else (0, 0)
        if low == high:
            yield item
        else:
            yield item.only(is_living(deleted[low:high], np.asarray(item.offsets, np.int64)))


def test(rows: Iterator[Rows], expr: ast.Expr) -> Iterator[Rows]:
    """Those that a filter selects."""
    for item in rows:
        known: Any = evaluate(expr, item.batch)
        passed: npt.NDArray[np.bool_] = true_of(known)
        yield item.only(passed)


def late(reader: FragmentReader, schema: Schema, rows: Iterator[Rows], *, batch_size: int) -> Iterator[pa.RecordBatch]:
    """The rows that go on with further columns, a window of batches at a time."""
    while window := [*islice(rows, WINDOW_BATCHES)]:
        offsets = np.concatenate([item.kept_offsets for item in window])
        if len(offsets):
            yield from zip_columns(iter(window), read(reader, schema, offsets, batch_size=batch_size))


def is_narrow(schema: Schema) -> bool:
    """Whether all columns are small numbers: reading a few too many costs less than picking them out."""
    return all(item.logical_type in _NARROW or item.logical_type.startswith(_NARROW_PREFIXES) for item in schema.fields)


_NARROW = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double"]
)
_NARROW_PREFIXES = ("date", "time", "timestamp", "duration", "decimal")
SPARSE_SHARE = 0.25
SPARSE_SHARE_NARROW = 0.01
"""Below this share of selected rows only ranges of them are read. Chunks of small values hold up to 4,096 rows, so of narrow
columns nearly every chunk is decoded anyway when one row in a hundred is wanted."""


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several batches as one."""
    if batches[0].num_columns == 0:
        return empty_columns(sum(batch.num_rows for batch in batches))
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def zip_columns(left: Iterator[Rows], right: Iterator[Rows]) -> Iterator[pa.RecordBatch]:
    """Two streams over the same rows, cut differently, side by side; the cuts of `right`, of which all go on, are kept."""
    pending: list[pa.RecordBatch] = []
    available = 0
    for item in right:
        batch = item.batch
        while available < batch.num_rows:
            more = next(left).kept_batch()
            if more.num_rows:
                pending.append(more)
                available += more.num_rows
        joined = pending[0] if len(pending) == 1 else _concat(pending)
        head, tail = joined.slice(0, batch.num_rows), joined.slice(batch.num_rows)
        available -= batch.num_rows
        pending = [tail] if tail.num_rows else []
        schema = pa.schema([*head.schema, *batch.schema])
        yield pa.RecordBatch.from_arrays([*head.columns, *batch.columns], schema=schema)


def project(batch: pa.RecordBatch, projection: Projection) -> pa.RecordBatch:
    """Compute the outputs over what was read."""
    if not projection.outputs:
        return empty_columns(batch.num_rows)
    schema = projection.arrow_schema
    if batch.schema.equals(schema) and all(is_itself(output.expr, output.field.name) for output in projection.outputs):
        return batch
    arrays = [_output(batch, output) for output in projection.outputs]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _output(batch: pa.RecordBatch, output: OutputColumn) -> Any:
    expr, kind = output.expr, output.field.type
    if isinstance(expr, ast.Column) and len(expr.path) == 1:
        return batch.column(batch.schema.get_field_index(expr.path[0]))
    values = evaluate_value(expr, batch)
    if values.type == kind or isinstance(expr, ast.Column):
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        cure = "CAST an operand to a wider type in the expression."
        raise FilterError(f"a value of {output.field.name!r} does not fit {kind}: {error}", cure=cure) from error


def limited(batches: Iterator[pa.RecordBatch], offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    """Skip `offset` rows, then stop after `limit`; what is behind is never read."""
    skip, left = offset, limit
    for batch in batches:
        start = min(skip, batch.num_rows)
        skip -= start
        count = batch.num_rows - start
        taken = count if left is None else min(count, left)
        if taken:
            yield batch.slice(start, taken)
        if left is not None:
            left -= taken
            if left == 0:
                return
