"""Where the rows of a plan go: into batches, a table, a count, offsets. Fragments in order, one after the other or several
at once.

::

    no filter    read the columns, drop deleted rows, compute the outputs
    a filter     per window of rows: read what it tests, evaluate, read the rest only of selected rows

    4 fragments, 2 cores  ->  2 fragments read at a time, the table's chunks in the order of the fragments

Read the rows of the next fragments while those of the current one are used: on a remote store reading is mostly waiting.

::

    tasks       0   1   2   3   4   5 …           batches come out in the order of the tasks
    used        ^
    read          ahead, at once, until the rows held and those expected of fragments under way reach BYTES_AHEAD

Where fragments are read one after the other, the files of a handful that follow are opened in the meantime.
Whatever the budget, the fragment whose rows are wanted next may always go on, one batch at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow_numpy import no_rows
from lance_core.dataset.scan.chain import limited, task_batches, task_rows
from lance_core.dataset.scan.parallel import TASKS_AT_ONCE, is_far
from lance_core.dataset.scan.plan import (
    DEFAULT_BATCH_ROWS,
    LARGE_BATCH_ROWS,
    FragmentTask,
    ScanPlan,
    expected_bytes,
    plain_outputs,
    plan_scan,
)
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.small_fragments import swept
from lance_core.dataset.snapshot.assemble import joined_rows
from lance_core.dataset.snapshot.fragment_reader import reader_of, stored_part
from lance_core.dataset.snapshot.row_offsets import is_living, living_span
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.expr import parse_filter
from lance_core.io.fetcher import SMALL_READ
from lance_core.io.pool import mark_worker, num_work_threads
from lance_core.io.threads import Threads
from lance_core.pages.rows import RowSelection

T = TypeVar("T")
_FEW_ROWS = 4096
"""Rows of a fragment that an index picked and that are read before a thread has started."""


def scan(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The batches of a plan: never empty, at most `batch_size` rows each, in the order of the table."""
    batches = _batches(snapshot, plan, batch_size)
    return batches if plan.filter is None else limited(batches, plan.offset, plan.limit)


def _batches(snapshot: Snapshot, plan: ScanPlan, batch_size: int) -> Iterator[pa.RecordBatch]:
    """The batches of all tasks in order. With a limit on what a filter selects, no rows are read that may not be wanted."""
    is_bounded = plan.filter is not None and plan.limit is not None
    if is_bounded or len(plan.tasks) < 2 or snapshot.store.is_local:
        for task in tasks_ahead(snapshot, plan):
            yield from _of_task(snapshot, plan, task, batch_size)
        return
    ahead = ReadAhead(
        swept(snapshot, plan),
        lambda task: _of_task(snapshot, plan, task, batch_size),
        size_of=partial(expected_bytes, plan),
        at_once=min(TASKS_AT_ONCE, len(plan.tasks)),
    )
    yield from ahead.run()


def _of_task(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask, batch_size: int) -> Iterator[pa.RecordBatch]:
    if task.ready is not None:
        ready = task.ready
        return (ready.slice(first, batch_size) for first in range(0, task.num_rows, batch_size))
    return task_batches(reader_of(snapshot, task.fragment), plan, task, batch_size=batch_size)


def scan_table(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int | None = None) -> pa.Table:
    """The result of a plan. With a limit on a filter, fragments are read one after the other and no further than needed."""
    schema = plan.projection.arrow_schema
    if plan.limit is not None or plan.offset:
        return _from_batches(scan(snapshot, plan, batch_size=batch_size or LARGE_BATCH_ROWS), schema)
    tables = [*scan_tables(snapshot, plan, batch_size=batch_size)]
    return joined_rows(tables) if tables else no_rows(schema)


def scan_tables(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int | None = None) -> Iterator[pa.Table]:
    """The result of a plan without a limit, a fragment at a time and in order; few of them are held at once."""
    for _, table in in_order(snapshot, plan, partial(_task_table, snapshot, plan, batch_size)):
        if table.num_rows:
            yield table


def in_order(snapshot: Snapshot, plan: ScanPlan, work: Callable[[FragmentTask], T]) -> Iterator[tuple[FragmentTask, T]]:
    """The result of each task of a plan, several in parallel if that helps; tasks that select nothing may be skipped."""
    at_once = min(_num_threads(snapshot, plan), len(plan.tasks))
    if at_once <= 1:
        for task in swept(snapshot, plan):
            yield task, work(task)
        return
    # Threads of this scan's own: they wait for the shared pools, which must therefore not run them.
    mark = mark_worker if at_once >= num_work_threads() else None
    pool = Threads(max_workers=at_once, thread_name_prefix="lance-scan", initializer=mark)
    pending: deque[tuple[FragmentTask, Future[T]]] = deque()
    try:
        for task in swept(snapshot, plan):
            pending.append((task, pool.submit(work, task)))
            if len(pending) > at_once:
                yield _done(pending)
        while pending:
            yield _done(pending)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _done(pending: deque[tuple[FragmentTask, Future[T]]]) -> tuple[FragmentTask, T]:
    task, future = pending.popleft()
    return task, future.result()


def _num_threads(snapshot: Snapshot, plan: ScanPlan) -> int:
    """Small local fragments are mostly work of the interpreter, which threads would only pass back and forth."""
    if is_far(snapshot):
        expected = max((expected_bytes(plan, task) for task in plan.tasks), default=1)
        return max(num_work_threads(), min(TASKS_AT_ONCE, BYTES_AHEAD // expected))
    if all(task.picked is not None and len(task.picked.offsets) < _FEW_ROWS for task in plan.tasks):
        return 1
    sizes = (file.file_size_bytes or SMALL_READ for task in plan.tasks for file in task.fragment.files)
    return num_work_threads() if sum(sizes) >= SMALL_READ * len(plan.tasks) else 1


def _task_table(snapshot: Snapshot, plan: ScanPlan, batch_size: int | None, task: FragmentTask) -> pa.Table:
    if batch_size is None and plan.filter is None and plain_outputs(plan):
        whole = _whole_table(snapshot, plan, task)
        if whole is not None:
            return whole
    return _from_batches(_of_task(snapshot, plan, task, batch_size or LARGE_BATCH_ROWS), plan.projection.arrow_schema)


def _whole_table(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> pa.Table | None:
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


def _from_batches(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    found = [*batches]
    if not schema.names:
        # A table without columns takes its number of rows from a batch without columns.
        return pa.Table.from_batches(found) if found else no_rows(schema)
    return pa.Table.from_batches(found, schema=schema)


def count_matching(snapshot: Snapshot, predicate: str) -> int:
    """Rows that a filter selects."""
    expr = parse_filter(predicate, snapshot.arrow_schema)
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, []), filter=expr)
    return count_selected(snapshot, plan)


def count_selected(snapshot: Snapshot, plan: ScanPlan) -> int:
    """How many rows a plan with a filter selects. With a limit no more is read than it takes to reach it."""
    if plan.limit is not None or plan.offset:
        return sum(batch.num_rows for batch in scan(snapshot, plan, batch_size=LARGE_BATCH_ROWS))
    known = [_known(task) for task in plan.tasks]
    rest = replace(plan, tasks=tuple(task for task, rows in zip(plan.tasks, known, strict=True) if rows is None))
    read = in_order(snapshot, rest, partial(_count_of_task, snapshot, rest)) if rest.tasks else ()
    return sum(rows for rows in known if rows is not None) + sum(rows for _, rows in read)


def _count_of_task(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> int:
    if task.ready is not None:
        return task.num_rows
    _, rows = task_rows(reader_of(snapshot, task.fragment), plan, task, batch_size=LARGE_BATCH_ROWS)
    return sum(item.num_kept for item in rows)


def _known(task: FragmentTask) -> int | None:
    """Rows of a task that an index has answered, where no row was deleted since: nothing is read for them."""
    picked = task.picked
    if picked is None or picked.plan.filter is not None or task.fragment.deletion_file is not None:
        return None
    count = len(picked.offsets)
    # An index that names rows which the fragment does not have is an error of the read.
    return count if count and int(picked.offsets[-1]) < task.fragment.physical_rows else None


def selected_offsets(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> Ints:
    """Physical offsets of the live rows of a whole fragment that the plan's filter selects; nothing else is read."""
    reader, picked = reader_of(snapshot, task.fragment), task.picked
    if picked is not None and picked.plan.filter is None:
        return picked.offsets[is_living(reader.deleted, picked.offsets)]
    _, rows = task_rows(reader, plan, task, batch_size=LARGE_BATCH_ROWS)
    return np.concatenate([np.empty(0, np.int64), *(item.kept_offsets for item in rows)])


BYTES_AHEAD = 256 << 20
"""Rows read ahead, and expected of fragments that are being read."""
FRAGMENTS_AHEAD = 8
"""Fragments whose files are opened before they are read, where only one is read at a time."""


@dataclass
class _Slot:
    """One task: the batches that nobody has taken yet, and what is still expected."""

    expected: int
    batches: deque[tuple[pa.RecordBatch, int]] = field(default_factory=deque)
    is_done: bool = False
    error: BaseException | None = None


class ReadAhead(Generic[T]):
    """`read(task)` for every task, several at once, batches in order. `size_of(task)` guesses the bytes of its rows."""

    def __init__(
        self,
        tasks: Iterable[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        *,
        size_of: Callable[[T], int],
        at_once: int = TASKS_AT_ONCE,
        max_bytes: int = BYTES_AHEAD,
    ) -> None:
        self._tasks = iter(tasks)
        self._read = read
        self._size_of = size_of
        self._at_once = at_once
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._slots: deque[_Slot] = deque()
        self._is_exhausted = False
        self._is_closed = False
        self._num_bytes = 0
        self._running = 0

    def run(self) -> Iterator[pa.RecordBatch]:
        """The batches; threads end with the iterator."""
        pool = Threads(max_workers=self._at_once, thread_name_prefix="lance-rows")
        try:
            while True:
                while self._can_start():
                    self._start(pool)
                batch = self._next()
                if batch is not None:
                    yield batch
                elif not self._slots and self._is_exhausted:
                    return
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
            pool.shutdown(wait=True, cancel_futures=True)

    def _can_start(self) -> bool:
        has_room = not self._slots or self._num_bytes < self._max_bytes
        return not self._is_exhausted and self._running < self._at_once and has_room

    def _start(self, pool: Threads) -> None:
        task = next(self._tasks, None)
        if task is None:
            self._is_exhausted = True
            return
        slot = _Slot(self._size_of(task))
        with self._changed:
            self._num_bytes += slot.expected
            self._running += 1
            self._slots.append(slot)
        pool.submit(self._run_task, slot, task)

    def _next(self) -> pa.RecordBatch | None:
        """The next batch in order. None when a task has ended, or another one can be started, before there is one."""
        with self._changed:
            while self._slots:
                slot = self._slots[0]
                if slot.batches:
                    batch, size = slot.batches.popleft()
                    self._num_bytes -= size
                    self._changed.notify_all()
                    return batch
                if slot.is_done:
                    self._slots.popleft()
                    self._changed.notify_all()
                    if slot.error is not None:
                        raise slot.error
                    return None
                if self._can_start():
                    return None
                self._changed.wait()
        return None

    def _run_task(self, slot: _Slot, task: T) -> None:
        try:
            with closing(_closable(self._read(task))) as batches:
                for batch in batches:
                    if not self._hand_over(slot, batch):
                        return
        except BaseException as error:
            slot.error = error
        finally:
            with self._changed:
                slot.is_done = True
                self._num_bytes -= slot.expected
                slot.expected = 0
                self._running -= 1
                self._changed.notify_all()

    def _hand_over(self, slot: _Slot, batch: pa.RecordBatch) -> bool:
        """Wait for room and leave a batch; False when nobody wants any more."""
        size = batch.nbytes
        with self._changed:
            while not self._is_closed and not self._has_room(slot, size):
                self._changed.wait()
            if self._is_closed:
                return False
            # What has come is expected no longer.
            came = min(size, slot.expected)
            slot.expected -= came
            self._num_bytes += size - came
            slot.batches.append((batch, size))
            self._changed.notify_all()
            return True

    def _has_room(self, slot: _Slot, size: int) -> bool:
        if slot is self._slots[0] and not slot.batches:
            return True
        return self._num_bytes - min(size, slot.expected) + size <= self._max_bytes


def _closable(batches: Iterator[pa.RecordBatch]) -> Any:
    return batches if hasattr(batches, "close") else (batch for batch in batches)


def tasks_ahead(snapshot: Snapshot, plan: ScanPlan) -> Iterator[FragmentTask]:
    """The tasks of a plan in order; the files of those that follow are being opened in the meantime."""
    tasks = swept(snapshot, plan)
    if len(plan.tasks) < 2 or snapshot.store.is_local:
        yield from tasks
        return
    # Threads of this scan's own: they wait for the shared pools, which must therefore not run them.
    pool = Threads(max_workers=FRAGMENTS_AHEAD, thread_name_prefix="lance-open")
    pending: deque[tuple[FragmentTask, Future[None]]] = deque()
    try:
        for task in tasks:
            pending.append((task, pool.submit(open_fragment, snapshot, plan, task)))
            if len(pending) > FRAGMENTS_AHEAD:
                yield _opened(pending)
        while pending:
            yield _opened(pending)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _opened(pending: deque[tuple[FragmentTask, Future[None]]]) -> FragmentTask:
    task, future = pending.popleft()
    future.result()
    return task


def open_fragment(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask) -> None:
    """Open what the first step of a task needs. Errors are left to the reading, which says more about them."""
    if task.ready is not None:
        return
    reader = reader_of(snapshot, task.fragment)
    with suppress(LanceError):
        _ = reader.deleted
        for file in task.fragment.files:
            if stored_part(plan.first, file).fields:
                reader.open(file)
