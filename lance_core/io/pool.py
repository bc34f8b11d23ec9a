"""Thread pools: created on first use, one of each kind per process, created again in a child after a fork.

::

    io_pool(store.uri).submit(store.get_ranges, path, ranges)   waits for bytes: many threads, for each bucket
    work_pool().submit(step)                                    decodes: about one thread per core

Tasks of an `io` pool are leaves (they never wait for another task), so nobody can starve there. A thread of the `work`
pool must not wait for its own pool: `in_work_pool()` tells it to do the work itself. A store that hangs keeps the threads of
its bucket's pool only, and where threads are shared with others (a local path, the `work` pool) it keeps nobody: who waits
for a task that no thread has begun makes it itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from lance_core.io.threads import SharedThreads

IO_THREADS_VARIABLE = "LANCE_IO_THREADS"
WORK_THREADS_VARIABLE = "LANCE_CPU_THREADS"

_NUM_IO_THREADS = 64
_MOST_PLACES = 32
"""Buckets with threads of their own; further ones share those of the local paths."""


class _LazyPool:
    """An executor for each place, made on first use."""

    def __init__(self, name: str, num_threads: Callable[[], int]) -> None:
        self._name = name
        self._num_threads = num_threads
        self._lock = threading.Lock()
        self._pools: dict[str, SharedThreads] = {}
        self._local = threading.local()
        # A forked child inherits the object but none of its threads, and maybe a held lock.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def get(self, place: str = "") -> SharedThreads:
        pool = self._pools.get(place)
        if pool is not None:
            return pool
        with self._lock:
            known = place if len(self._pools) < _MOST_PLACES else ""
            if known not in self._pools:
                self._pools[known] = SharedThreads(
                    max_workers=self._num_threads(), thread_name_prefix=f"lance-{self._name}", initializer=self.mark
                )
            return self._pools[known]

    def is_mine(self) -> bool:
        return getattr(self._local, "mine", False)

    def mark(self) -> None:
        self._local.mine = True

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._pools = {}
        self._local = threading.local()


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return max(1, int(text)) if text.isdigit() else default


def num_io_threads() -> int:
    """Threads that wait for storage: `LANCE_IO_THREADS`, else 64; they are born one by one as they are needed."""
    return _positive(IO_THREADS_VARIABLE, _NUM_IO_THREADS)


def num_work_threads() -> int:
    """Threads that decode: `LANCE_CPU_THREADS`, else the cores this process may use."""
    return _positive(WORK_THREADS_VARIABLE, _num_cores())


_IO = _LazyPool("io", num_io_threads)
_WORK = _LazyPool("cpu", num_work_threads)


def io_pool(uri: str) -> SharedThreads:
    """The pool for waiting on the store of a uri; submit leaves only."""
    scheme, mark, rest = uri.partition("://")
    return _IO.get(f"{scheme}://{rest.partition('/')[0]}" if mark else "")


def work_pool() -> SharedThreads:
    """The pool for computing."""
    return _WORK.get()


def mark_worker() -> None:
    """The calling thread decodes by itself from now on: for threads of a reader's own that together use all cores."""
    _WORK.mark()


def mark_io_worker() -> None:
    """The calling thread waits for storage by itself from now on: for threads whose order of calls must be their own."""
    _IO.mark()


def in_work_pool() -> bool:
    """Whether the calling thread belongs to `work_pool()` and so must not wait for it."""
    return _WORK.is_mine()


def in_io_pool() -> bool:
    """Whether the calling thread belongs to an `io_pool` and so must not wait for it."""
    return _IO.is_mine()
