"""Work of the pages outside the API server's own threads: one small pool for each connection, so that a store that hangs
holds up nobody but itself.

::

    pools = Pools(threads=8);  future = pools.submit("lake", observe, table)

Threads are daemons: a store that never answers does not keep the API server from stopping.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from airflow_lance.ui.errors import PageError

P = ParamSpec("P")
T = TypeVar("T")

MAX_WAITING = 5000
MAX_POOLS = 64


class Pools:
    """Named pools of daemon threads, which begin when there is work."""

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._pools: dict[str, _Pool] = {}
        self._lock = threading.Lock()

    def submit(self, name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a pool. PageError "busy" when too much waits there already."""
        with self._lock:
            pool = self._pools.get(name)
            if pool is None:
                # Names are connection ids, which people make; more than that share one.
                pool = self._pools.setdefault(name if len(self._pools) < MAX_POOLS else "", _Pool(self._threads))
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        pool.put(run)
        return future


class _Pool:
    def __init__(self, threads: int) -> None:
        self._most = threads
        self._work: queue.Queue[Callable[[], None]] = queue.Queue(MAX_WAITING)
        self._started = 0
        self._idle = 0
        self._lock = threading.Lock()

    def put(self, run: Callable[[], None]) -> None:
        try:
            self._work.put_nowait(run)
        except queue.Full:
            raise PageError("busy", "Too many requests already wait for this store.", cure="Try again later.") from None
        with self._lock:
            if self._idle == 0 and self._started < self._most:
                self._started += 1
                threading.Thread(target=self._loop, daemon=True, name="lance-pages").start()

    def _loop(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            run = self._work.get()
            with self._lock:
                self._idle -= 1
            run()
