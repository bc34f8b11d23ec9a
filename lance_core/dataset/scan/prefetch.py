"""Open the files of the next fragments while the current one is read: on a remote store opening is mostly waiting.

::

    tasks      0  1  2  3  4  5 …
    reading    ^
    opened        1  2  3  4           a handful ahead; nothing of their rows is read
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress

from lance_core.dataset.scan.plan import FragmentTask, ScanPlan
from lance_core.dataset.scan.small_fragments import swept
from lance_core.dataset.snapshot.fragment_reader import reader_of, stored_part
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.io.threads import Threads

FRAGMENTS_AHEAD = 8


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
