"""Read the rows of the next fragments while those of the current one are used: on a remote store reading is mostly waiting.

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
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from lance_core.dataset.scan.parallel import TASKS_AT_ONCE
from lance_core.dataset.scan.plan import FragmentTask, ScanPlan
from lance_core.dataset.scan.small_fragments import swept
from lance_core.dataset.snapshot.fragment_reader import reader_of, stored_part
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.io.threads import Threads

T = TypeVar("T")

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
