"""Execute a scan: fragments in order, batches in order, memory bounded by a window of rows.

::

    no filter    read the columns, drop deleted rows, compute the outputs
    a filter     per window of rows: read what it tests, evaluate, read the rest only of selected rows

Null in a filter means "not selected".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow_numpy import arrow_of, true_of
from lance_core.dataset.scan.plan import FragmentTask, Picked, ScanPlan, is_itself
from lance_core.dataset.scan.prefetch import tasks_ahead
from lance_core.dataset.scan.projection import OutputColumn, Projection
from lance_core.dataset.scan.read_ahead import TASKS_AT_ONCE, ReadAhead
from lance_core.dataset.scan.small_fragments import swept
from lance_core.dataset.snapshot.assemble import empty_columns
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.row_offsets import is_living, living_span
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import FilterError
from lance_core.expr import ast, evaluate, evaluate_value
from lance_core.file.projection import MAX_WINDOWS, WINDOW_BYTES
from lance_core.format.schema import Schema
from lance_core.pages.rows import RowSelection

_MIN_EXPECTED = 64 << 10
DEFAULT_BATCH_ROWS = 8192
LARGE_BATCH_ROWS = 1 << 16
"""For results that are wanted whole."""
WINDOW_BATCHES = 16
"""Batches of tested columns that are checked before the rest of the selected rows is read: one request for many rows."""


def scan(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The batches of a plan: never empty, at most `batch_size` rows each, in the order of the table."""
    batches = _batches(snapshot, plan, batch_size)
    if plan.filter is None:
        yield from batches
    else:
        yield from _clip(batches, plan.offset, plan.limit)


def _batches(snapshot: Snapshot, plan: ScanPlan, batch_size: int) -> Iterator[pa.RecordBatch]:
    """The batches of all tasks in order. With a limit on what a filter selects, no rows are read that may not be wanted."""
    is_bounded = plan.filter is not None and plan.limit is not None
    if is_bounded or len(plan.tasks) < 2 or snapshot.store.is_local:
        tasks = tasks_ahead(snapshot, plan)
        return (batch for task in tasks for batch in _scan_task(snapshot, plan, task, batch_size))
    ahead = ReadAhead(
        swept(snapshot, plan),
        lambda task: _scan_task(snapshot, plan, task, batch_size),
        size_of=lambda task: expected_bytes(plan, task),
        at_once=min(TASKS_AT_ONCE, len(plan.tasks)),
    )
    return ahead.run()


def expected_bytes(plan: ScanPlan, task: FragmentTask) -> int:
    """About how many bytes a task holds while it is read: its share of its files, and no more than its reader's windows."""
    share = task.num_rows / max(1, task.fragment.num_rows)
    wanted = plan.first.ids if plan.rest is None else (*plan.first.ids, *plan.rest.ids)
    size = 0.0
    for file in task.fragment.files:
        held = set(file.fields)
        columns = sum(field_id in held for field_id in wanted)
        size += (file.file_size_bytes or WINDOW_BYTES) * columns / max(1, len(held))
    return int(min(size * share, MAX_WINDOWS * WINDOW_BYTES)) + _MIN_EXPECTED


def scan_whole(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> pa.Table | None:
    """A task without filter as one table with the chunks it was decoded in; None when rows or files must be put together."""
    if task.ready is not None:
        return pa.Table.from_batches([task.ready])
    reader = reader_of(snapshot, task.fragment)
    start, end = living_span(reader.deleted, task.start, task.end)
    if end - start != task.num_rows:
        return None
    table = reader.table(plan.first, RowSelection.span(start, end))
    if table is None or table.schema.equals(plan.projection.arrow_schema):
        return table
    target = plan.projection.arrow_schema
    return pa.Table.from_arrays([table.column(name) for name in target.names], schema=target)


def count_task(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> int:
    """How many rows of a task a plan with a filter selects, a window of rows at a time."""
    return sum(batch.num_rows for batch in _scan_task(snapshot, plan, task, LARGE_BATCH_ROWS))


def selected_offsets(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> Ints:
    """Physical offsets of the live rows of a whole fragment that the plan's filter selects; nothing else is read."""
    reader = reader_of(snapshot, task.fragment)
    if task.picked is not None:
        return _selected_of_picked(reader, task.picked)
    rows = RowSelection.span(0, task.fragment.physical_rows)
    parts = [np.empty(0, np.int64)]
    position = 0
    with closing(reader.read(plan.first, rows, batch_size=LARGE_BATCH_ROWS, system=plan.first_system)) as batches:
        for batch in batches:
            parts.append(np.flatnonzero(_selected(reader, plan, batch, position)) + position)
            position += batch.num_rows
    return np.concatenate(parts)


def _selected_of_picked(reader: FragmentReader, picked: Picked) -> Ints:
    plan, offsets = picked.plan, picked.offsets[is_living(reader.deleted, picked.offsets)]
    if plan.filter is None or len(offsets) == 0:
        return offsets
    batches = read_offsets(reader, plan.first, offsets, batch_size=LARGE_BATCH_ROWS, system=plan.first_system)
    return np.concatenate([here for _, here in _test_picked(plan.filter, batches, offsets)])


def _scan_task(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask, batch_size: int) -> Iterator[pa.RecordBatch]:
    if task.ready is not None:
        yield from (task.ready.slice(first, batch_size) for first in range(0, task.num_rows, batch_size))
        return
    reader = reader_of(snapshot, task.fragment)
    if task.picked is not None:
        yield from _scan_picked(reader, task.picked, batch_size)
        return
    start, end = living_span(reader.deleted, task.start, task.end)
    rows = RowSelection.span(start, end)
    batches = reader.read(plan.first, rows, batch_size=batch_size, system=plan.first_system)
    with closing(batches):
        if plan.filter is None:
            yield from _plain(reader, plan, batches, start)
        elif plan.rest is not None:
            yield from _late(reader, plan, _select(reader, plan, batches, start), batch_size)
        elif plan.projection.outputs:
            selected = _select(reader, plan, batches, start)
            yield from (project(batch, plan.projection) for batch, offsets in selected if len(offsets))
        else:
            yield from (empty_columns(count) for count in _count(reader, plan, batches, start) if count)


def _scan_picked(reader: FragmentReader, picked: Picked, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Rows that indices picked: deleted ones are masked, the rest of the filter is tested."""
    plan, offsets = picked.plan, picked.offsets[is_living(reader.deleted, picked.offsets)]
    if len(offsets) == 0:
        return
    batches = read_offsets(reader, plan.first, offsets, batch_size=batch_size, system=plan.first_system)
    if plan.filter is None:
        yield from (project(batch, plan.projection) for batch in batches)
        return
    selected = _test_picked(plan.filter, batches, offsets)
    if plan.rest is None:
        yield from (project(batch, plan.projection) for batch, here in selected if len(here))
    else:
        yield from _late(reader, plan, selected, batch_size)


def _test_picked(expr: ast.Expr, batches: Iterator[pa.RecordBatch], offsets: Ints) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    first = 0
    for batch in batches:
        known: Any = evaluate(expr, batch)
        passed: npt.NDArray[np.bool_] = true_of(known)
        here = offsets[first : first + batch.num_rows]
        first += batch.num_rows
        yield filter_rows(batch, passed), here[passed]


def _plain(
    reader: FragmentReader, plan: ScanPlan, batches: Iterator[pa.RecordBatch], start: int
) -> Iterator[pa.RecordBatch]:
    position = start
    for batch in batches:
        living = _living_mask(reader, position, batch.num_rows)
        position += batch.num_rows
        kept = batch if living is None else filter_rows(batch, living)
        if kept.num_rows:
            yield project(kept, plan.projection)


def _select(
    reader: FragmentReader, plan: ScanPlan, batches: Iterator[pa.RecordBatch], start: int
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Per batch: its selected rows, and their physical offsets."""
    position = start
    for batch in batches:
        selected = _selected(reader, plan, batch, position)
        offsets = np.flatnonzero(selected) + position
        position += batch.num_rows
        yield (batch if len(offsets) == batch.num_rows else filter_rows(batch, selected)), offsets


def _count(reader: FragmentReader, plan: ScanPlan, batches: Iterator[pa.RecordBatch], start: int) -> Iterator[int]:
    """Per batch: how many of its rows are selected; no row is copied for it."""
    position = start
    for batch in batches:
        yield int(np.count_nonzero(_selected(reader, plan, batch, position)))
        position += batch.num_rows


def _late(
    reader: FragmentReader, plan: ScanPlan, selected: Iterator[tuple[pa.RecordBatch, Ints]], batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Read the rest of the columns for the rows that were selected, a window of tested batches at a time."""
    assert plan.rest is not None
    while window := [*islice(selected, WINDOW_BATCHES)]:
        offsets = np.concatenate([part for _, part in window])
        if len(offsets) == 0:
            continue
        others = read_offsets(reader, plan.rest, offsets, batch_size=batch_size)
        tested = (batch for batch, _ in window)
        yield from (project(batch, plan.projection) for batch in zip_columns(tested, others))


def read_offsets(
    reader: FragmentReader, schema: Schema, offsets: Ints, *, batch_size: int, system: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Rows at sorted physical offsets. Where they are close together all between them is read too and dropped again."""
    first, last = int(offsets[0]), int(offsets[-1]) + 1
    share = len(offsets) / (last - first)
    if share == 1 or share < (SPARSE_SHARE_NARROW if is_narrow(schema) else SPARSE_SHARE):
        yield from reader.read(schema, RowSelection.indices(offsets), batch_size=batch_size, system=system)
        return
    mask = np.zeros(last - first, np.bool_)
    mask[offsets - first] = True
    position = 0
    for batch in reader.read(schema, RowSelection.span(first, last), batch_size=batch_size, system=system):
        picked = mask[position : position + batch.num_rows]
        position += batch.num_rows
        if picked.any():
            yield filter_rows(batch, picked)


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


def _selected(reader: FragmentReader, plan: ScanPlan, batch: pa.RecordBatch, position: int) -> npt.NDArray[np.bool_]:
    assert plan.filter is not None
    known: Any = evaluate(plan.filter, batch)
    selected: npt.NDArray[np.bool_] = true_of(known)
    living = _living_mask(reader, position, batch.num_rows)
    return selected if living is None else selected & living


def _living_mask(reader: FragmentReader, position: int, num_rows: int) -> npt.NDArray[np.bool_] | None:
    """Which of the physical rows from `position` on are not deleted; None when all are."""
    deleted = reader.deleted
    low, high = np.searchsorted(deleted, [position, position + num_rows])
    if low == high:
        return None
    return is_living(deleted[low:high], np.arange(position, position + num_rows))


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several batches as one."""
    if batches[0].num_columns == 0:
        return empty_columns(sum(batch.num_rows for batch in batches))
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def filter_rows(batch: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows where the mask is true; a batch without columns keeps its count."""
    if batch.num_columns == 0:
        return empty_columns(int(mask.sum()))
    return batch.filter(arrow_of(mask))


def zip_columns(left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Two streams over the same rows, cut differently, side by side; the cuts of `right` are kept."""
    pending: list[pa.RecordBatch] = []
    available = 0
    for batch in right:
        while available < batch.num_rows:
            more = next(left)
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


def _clip(batches: Iterator[pa.RecordBatch], offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
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
