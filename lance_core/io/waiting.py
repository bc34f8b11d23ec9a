"""Wait for a request so that signals are seen: SIGTERM and Ctrl-C end a wait for a silent store at once.

::

    answer = attended(lambda: obstore.get(client, path))
    row = answered(lambda: ask(database), by="the manifest store")      StoreError after LANCE_ANSWER_SECONDS altogether

A call into a native library that waits does not come back to Python, whose signal handlers run in the main thread only, and
only in Python. So the main thread gives its requests to a thread and waits for the result, which a signal interrupts. Other
threads make their requests themselves. A request that was given up goes on in its thread, like one whose process was killed.
Clients of databases and of identities have limits for a connection or for a read at most, or none: what they are asked
has a limit of its own here, for all that it takes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDoneError
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from lance_core.errors import StoreError

T = TypeVar("T")

ANSWER_VARIABLE = "LANCE_ANSWER_SECONDS"
_ANSWER_SECONDS = 120.0


class _Attendant:
    """A thread that makes one request after the other; it does not keep the process from ending."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._questions: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        threading.Thread(target=self._serve, name="lance-request", daemon=True).start()

    def ask(self, action: Callable[[], T]) -> Future[T]:
        """Begin a request."""
        future: Future[T] = Future()
        self._questions.put((action, future))
        return future

    def _serve(self) -> None:
        while True:
            _answer(*self._questions.get())


def _answer(action: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(action())
    except BaseException as error:  # of native code, too
        future.set_exception(error)


class _Idle:
    """Attendants without a request; taking and giving one back needs no lock, and a forked child makes its own."""

    def __init__(self) -> None:
        self.attendants: list[_Attendant] = []


_IDLE = _Idle()


def attended(action: Callable[[], T]) -> T:
    """Do it; in the main thread, such that a signal's handler runs while it waits, and what the handler raises is raised."""
    if threading.current_thread() is not threading.main_thread():
        return action()
    return _handed_over(action).result()


def answered(action: Callable[[], T], *, by: str) -> T:
    """Do it, within `LANCE_ANSWER_SECONDS` (120): a retryable StoreError that names who did not answer in that time.

    In the main thread signals are seen in the meantime. Whether what was requested will still be done is not known.
    """
    seconds = positive_seconds(ANSWER_VARIABLE, _ANSWER_SECONDS)
    future = _handed_over(action, seconds)
    if future.done():
        return future.result()
    raise StoreError(
        f"{by} has not answered for {seconds:g} s",
        cure=f"Look whether it can be reached; {ANSWER_VARIABLE} sets the time.",
    )


def _handed_over(action: Callable[[], T], seconds: float | None = None) -> Future[T]:
    """The request as a thread has done it, or has not within so many seconds."""
    attendant = _taken()
    if attendant is None:
        future: Future[T] = Future()
        _answer(action, future)
        return future
    future = attendant.ask(action)
    try:
        with suppress(NotDoneError):
            future.exception(seconds)
    finally:
        if future.done():
            _IDLE.attendants.append(attendant)
    return future


def positive_seconds(variable: str, default: float) -> float:
    """A number of seconds of the environment; the default without one that makes sense."""
    try:
        given = float(os.environ.get(variable, ""))
    except ValueError:
        return default
    return given if 0 < given < float("inf") else default


def _taken() -> _Attendant | None:
    """An idle attendant of this process, or a new one; None when there can be no more threads."""
    while _IDLE.attendants:
        attendant = _IDLE.attendants.pop()
        if attendant.process == os.getpid():
            return attendant
    try:
        return _Attendant()
    except RuntimeError:
        return None
