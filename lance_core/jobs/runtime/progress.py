"""How far the tasks of an attempt are, seen by the driver without collecting anything.

A task leaves an empty object whose *name* holds its numbers; the driver lists one small folder. That works on any cluster,
through Spark Connect, and after the driver is gone::

    _lance_core/progress/{attempt}/00003.17.2.25000.1.812345       partition 3, task attempt 17, 2nd report:
                                                                    25,000 rows, 1 fragment, 812,345 bytes

The note of the start comes before the task's first file. It tells which tasks were ever started, those among them whose
result never came included (a lost executor, a speculative copy): their files are removed. Further notes only say how far a
task is, so a task that ends within seconds leaves none: its numbers are in its result.

Progress is advice: a store that fails here never fails a task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from lance_core.commit import naming
from lance_core.errors import LanceError
from lance_core.io.many import delete_all
from lance_core.io.store import Store

PROGRESS = naming.PROGRESS
HERE = "here"
"""The task attempt of a task that runs in the driver's process, once: it needs no note of its start, and does not outlive
it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Sums over the tasks seen so far; `fragments` and `size` (bytes) count finished files only.

    `silent` of the `tasks` have begun and said no more: they have just begun, or they ended soon.
    """

    tasks: int = 0
    rows: int = 0
    fragments: int = 0
    size: int = 0
    silent: int = 0

    def line(self) -> str:
        """For a log."""
        if not self.tasks:
            return "no task has reported yet"
        told = self.tasks - self.silent
        if not told:
            return f"{self.tasks:,} tasks have begun"
        sums = f"{self.rows:,} rows, {self.fragments:,} fragments, {self.size / 2**20:,.1f} MiB from {told:,} tasks"
        return f"{sums}; {self.silent:,} more have begun" if self.silent else sums


class ProgressReport:
    """A task's side. Made before the task's first file.

    `begins=False` for work whose files are all looked through at its end, whoever wrote them: the start needs no note then.
    """

    def __init__(
        self, store: Store, attempt: str, *, partition: int, task_attempt: str, seconds: float, begins: bool = True
    ) -> None:
        self._store = store
        self._is_here = task_attempt == HERE
        self._stem = f"{PROGRESS}/{attempt}/{partition:05d}.{0 if self._is_here else task_attempt}"
        self._seconds = seconds
        self._begun = time.monotonic()
        self._due = self._begun + seconds
        self._count = 0
        self._last: str | None = None
        if begins and not self._is_here:
            self.update(0, 0, 0, now=True)

    @property
    def has_notes(self) -> bool:
        """Whether it has left something."""
        return self._count > 0

    def finish(self, rows: int, fragments: int, size: int) -> None:
        """Leave the last numbers behind, if the task was long enough for somebody to look on. The previous report is removed
        with all others, when the attempt ends."""
        # Without a note nobody would look for this task's files if its result does not count: then this is the second try.
        is_known = self._last is not None or self._is_here
        if is_known and time.monotonic() - self._begun < self._seconds:
            return
        self._last = None
        self.update(rows, fragments, size, now=True)

    def update(self, rows: int, fragments: int, size: int, *, now: bool = False) -> None:
        """Leave the numbers behind when a report is due, or `now`."""
        clock = time.monotonic()
        if clock < self._due and not now:
            return
        self._due = clock + self._seconds
        self._count += 1
        name = f"{self._stem}.{self._count}.{rows}.{fragments}.{size}"
        try:
            # Not forced to the disk: when this machine dies, the task dies as well.
            self._store.put(name, b"", durable=False)
            if self._last is not None:
                self._store.delete(self._last)
        except (LanceError, OSError):
            return
        self._last = name


def read_progress(store: Store, attempt: str) -> Progress:
    """What the tasks have left so far; a retried partition counts once, by the task that got furthest."""
    best: dict[int, tuple[int, int, int]] = {}
    told: set[int] = set()
    for text, _, count, *numbers in _reports(list_notes(store, attempt)):
        partition = int(text)
        rows, fragments, size = (int(number) for number in numbers)
        best[partition] = max(best.get(partition, (0, 0, 0)), (rows, fragments, size))
        if int(count) > 1 or rows:
            told.add(partition)
    rows, fragments, size = (sum(numbers[index] for numbers in best.values()) for index in range(3))
    return Progress(len(best), rows, fragments, size, silent=len(best) - len(told))


def list_notes(store: Store, attempt: str) -> Sequence[str]:
    """Names of what an attempt's tasks left: of 100,000 tasks a hundred requests and more, so once is enough."""
    return store.list_names(f"{PROGRESS}/{attempt}/")


def started_tasks(notes: Iterable[str]) -> set[tuple[int, str]]:
    """(partition, task attempt) of every task that began, by the names of what it left."""
    return {(int(report[0]), report[1]) for report in _reports(notes)}


def clear_progress(store: Store, attempt: str, notes: Sequence[str] | None = None) -> None:
    """Remove what an attempt's tasks left, many a request where the store can; `notes` when they have been listed."""
    with suppress(LanceError, OSError):
        names = list_notes(store, attempt) if notes is None else notes
        delete_all(store, [f"{PROGRESS}/{attempt}/{name}" for name in names])


def _reports(notes: Iterable[str]) -> Iterator[list[str]]:
    for name in notes:
        parts = name.split(".")
        if len(parts) == 6 and all(part.isdigit() for part in parts):
            yield parts


class Ticker:
    """Calls a function every few seconds from a separate thread, between `with` and the end of its block."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._seconds, self._call = seconds, call
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="lance-progress", daemon=True)

    def __enter__(self) -> Ticker:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _loop(self) -> None:
        while not self._stop.wait(self._seconds):
            self._call()
