"""Worker threads, with a fallback if Python can start no more of them.

Python ends its thread pools when the main thread has ended, while other threads may go on for hours (a daemon whose main
thread was only there to start it). A pool of this module is `concurrent.futures.ThreadPoolExecutor` until then; after that
the thread that asks does the work itself, one task after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Threads(Executor):
    """A pool of threads, of none once the main thread has ended."""

    def __init__(self, max_workers: int, *, thread_name_prefix: str = "", initializer: Callable[[], object] | None = None):
        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix=thread_name_prefix, initializer=initializer)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do it in a thread of the pool; in this one, now, when there are no others any more."""
        try:
            return self._pool.submit(fn, *args, **kwargs)
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool's threads."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)
