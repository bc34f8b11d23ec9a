"""A scan's whole result as one table: fragments at once, decoded chunks kept as they are.

::

    4 fragments, 2 cores  ->  2 fragments read at a time, the table's chunks in the order of the fragments
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

import pyarrow as pa

from lance_core.arrow_numpy import no_rows
from lance_core.dataset.scan.execute import LARGE_BATCH_ROWS, expected_bytes, scan, scan_whole
from lance_core.dataset.scan.parallel import is_far
from lance_core.dataset.scan.plan import FragmentTask, ScanPlan, plain_outputs
from lance_core.dataset.scan.read_ahead import BYTES_AHEAD, TASKS_AT_ONCE
from lance_core.dataset.scan.small_fragments import swept
from lance_core.dataset.snapshot.assemble import joined_rows
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.io.fetcher import SMALL_READ
from lance_core.io.pool import mark_worker, num_work_threads
from lance_core.io.threads import Threads

T = TypeVar("T")
_FEW_ROWS = 4096
"""Rows of a fragment that an index picked and that are read before a thread has started."""


def scan_table(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int | None = None) -> pa.Table:
    """The result of a plan. With a limit on a filter, fragments are read one after the other and no further than needed."""
    schema = plan.projection.arrow_schema
    if plan.limit is not None or plan.offset:
        return _from_batches(scan(snapshot, plan, batch_size=batch_size or LARGE_BATCH_ROWS), schema)
    tables = [*scan_tables(snapshot, plan, batch_size=batch_size)]
    return joined_rows(tables) if tables else no_rows(schema)


def scan_tables(snapshot: Snapshot, plan: ScanPlan, *, batch_size: int | None = None) -> Iterator[pa.Table]:
    """The result of a plan without a limit, a fragment at a time and in order; few of them are held at once."""
    made = in_order(snapshot, plan, lambda task: _task_table(snapshot, plan, task, batch_size))
    return (table for _, table in made if table.num_rows)


def in_order(snapshot: Snapshot, plan: ScanPlan, work: Callable[[FragmentTask], T]) -> Iterator[tuple[FragmentTask, T]]:
    """The result of each task of a plan, several in parallel if that helps; tasks that select nothing may be skipped."""
    at_once = min(_num_threads(snapshot, plan), len(plan.tasks))
    if at_once <= 1:
        yield from ((task, work(task)) for task in swept(snapshot, plan))
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


def _task_table(snapshot: Snapshot, plan: ScanPlan, task: FragmentTask, batch_size: int | None) -> pa.Table:
    if batch_size is None and plan.filter is None and plain_outputs(plan):
        whole = scan_whole(snapshot, plan, task)
        if whole is not None:
            return whole
    one = ScanPlan(
        tasks=(task,),
        projection=plan.projection,
        filter=plan.filter,
        first=plan.first,
        first_system=plan.first_system,
        rest=plan.rest,
        limit=None,
        offset=0,
    )
    return _from_batches(scan(snapshot, one, batch_size=batch_size or LARGE_BATCH_ROWS), plan.projection.arrow_schema)


def _from_batches(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    found = [*batches]
    if not schema.names:
        # A table without columns takes its number of rows from a batch without columns.
        return pa.Table.from_batches(found) if found else no_rows(schema)
    return pa.Table.from_batches(found, schema=schema)
