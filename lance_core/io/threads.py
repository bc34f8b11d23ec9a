"""Worker threads, with a fallback if Python can start no more of them.

Python ends its thread pools when the main thread has ended, while other threads may go on for hours (a daemon whose main
thread was only there to start it). A pool of this module is `concurrent.futures.ThreadPoolExecutor` until then; after that
the thread that asks does the work itself, one task after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
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


class _Task(Future[T]):
    """A call that is made once: by a thread of the pool, or by the first one that waits for it while none has begun."""

    def __init__(self, call: Callable[[], T]) -> None:
        super().__init__()
        self._calls = [call]

    def make(self) -> None:
        """Make the call here, if nobody has begun it."""
        try:
            call = self._calls.pop()  # of a list only one thread gets it
        except IndexError:
            return
        try:
            self.set_result(call())
        except BaseException as error:
            self.set_exception(error)

    def cancel(self) -> bool:
        """Not to be made any more, if nobody has begun it."""
        try:
            self._calls.pop()
        except IndexError:
            return False
        return super().cancel()

    def result(self, timeout: float | None = None) -> T:
        """Its result or its error."""
        self.make()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Its error."""
        self.make()
        return super().exception(timeout)


class SharedThreads(Threads):
    """A pool that many who know nothing of each other share: who waits for a task that no thread has begun makes it itself.

    So nobody ever waits for the tasks of others, such as those of a store that hangs and keeps every thread of the pool.
    Tasks that must come one after the other are not for such a pool.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do it in a thread of the pool, or where it is waited for."""
        task = _Task(lambda: fn(*args, **kwargs))
        super().submit(task.make)
        return task


def settled(futures: Iterable[Future[T]]) -> None:
    """Return when none of them is under way; those that nobody has begun are done here."""
    for future in futures:
        future.exception()


class SideBySide:
    """Calls that do not depend on one another, in threads of their own where each of them waits for a far store.

    ::

        with SideBySide(helps=store.is_wide) as calls:
            tags, branches = calls.begin(list_tags, store), calls.begin(list_branches, store)
            use(tags(), branches())

    Elsewhere each is made when it is begun, so that their order is that of the code.
    """

    def __init__(self, *, helps: bool, most: int = 8) -> None:
        self._threads = Threads(most, thread_name_prefix="lance-beside") if helps else None

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    def begin(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """Begin a call; what is returned waits for it, and has its result or its error."""
        if self._threads is not None:
            return self._threads.submit(call, *args, **kwargs).result
        found = call(*args, **kwargs)
        return lambda: found
