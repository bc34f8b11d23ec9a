"""Checks of tables in the triggerer: a bounded thread pool for each store, a time limit, one check for many triggers.

::

    200 triggers on a store that takes 5 s to answer     4 threads of that store's own wait; nobody else does
    50 triggers on one table                             one look, whose answer all of them get

asyncio's own pool has a handful of threads for everything that runs in a triggerer: one slow store would take them all.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from lance_core.errors import StoreError

T = TypeVar("T")

THREADS_PER_STORE = 4
MAX_STORES = 64
"""More stores share pools."""
LOOK_SECONDS = 120.0
"""A look that takes longer is withdrawn; its thread ends when the store answers or its own time limit is over."""
FRESH_SECONDS = 1.0
"""How long a result is shared with equal requests."""
_PLACE = re.compile(r"^[A-Za-z][\w+.\-]*://[^/?#]*")


@dataclass(frozen=True)
class _Look:
    """A look under way, or just done: since when, its answer to be, and the event loop that may share it."""

    at: float
    future: Future[Any]
    loop: asyncio.AbstractEventLoop


class Looks:
    """The pools and the looks under way of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._stores: dict[str, int] = {}
        self._running: dict[str, _Look] = {}
        self._waiting: dict[Future[Any], int] = {}

    async def look(self, store: str, question: str, action: Callable[[], T], *, seconds: float = LOOK_SECONDS) -> T:
        """The result of `action`, shared with concurrent equal requests. StoreError after `seconds`."""
        future: Future[T] = self._submit(store, question, action)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except asyncio.TimeoutError:
            raise StoreError(f"the store of {store} has not answered for {seconds:g} s") from None
        finally:
            self._leave(question, future)

    def _leave(self, question: str, future: Future[Any]) -> None:
        """One waits less; a look that nobody waits for and that has not begun is not made."""
        with self._lock:
            self._waiting[future] -= 1
            if self._waiting[future]:
                return
            del self._waiting[future]
            known = self._running.get(question)
            if not future.done() and known is not None and known.future is future:
                del self._running[question]
        future.cancel()

    def _submit(self, store: str, question: str, action: Callable[[], Any]) -> Future[Any]:
        now, loop = time.monotonic(), asyncio.get_running_loop()
        with self._lock:
            self._running = {
                key: item
                for key, item in self._running.items()
                if not item.future.done() or (now - item.at < FRESH_SECONDS and _has_answer(item.future))
            }
            known = self._running.get(question)
            if known is not None and known.loop is loop:
                self._waiting[known.future] = self._waiting.get(known.future, 0) + 1
                return known.future
            number = self._number_of(store)
            pool = self._pools.get(number)
            if pool is None:
                pool = ThreadPoolExecutor(THREADS_PER_STORE, thread_name_prefix=f"lance-look-{number}")
                self._pools[number] = pool
            future = pool.submit(action)
            self._running[question] = _Look(now, future, loop)
            self._waiting[future] = 1
        future.add_done_callback(lambda _: self._note_done(question, future))
        return future

    def _number_of(self, store: str) -> int:
        """The pool of a store: the first ones have their own; all others share those, and are not remembered."""
        if len(self._stores) < MAX_STORES:
            return self._stores.setdefault(store, len(self._stores))
        return self._stores.get(store, zlib.crc32(store.encode()) % MAX_STORES)

    def _note_done(self, question: str, future: Future[Any]) -> None:
        with self._lock:
            known = self._running.get(question)
            if known is not None and known.future is future:
                self._running[question] = replace(known, at=time.monotonic())


def _has_answer(future: Future[Any]) -> bool:
    return not future.cancelled() and future.exception() is None


@cache
def shared_looks() -> Looks:
    """Those of this process."""
    return Looks()


def store_of(uri: str, lance_conn_id: str) -> str:
    """What shares a pool: the bucket, account or host of a uri, else the connection that says where the table is."""
    found = _PLACE.match(uri)
    return lance_conn_id if found is None else found.group()


def question_of(kind: str, uri: str, lance_conn_id: str, options: Mapping[str, Any], detail: Any) -> str:
    """The same text for the same question."""
    return json.dumps([kind, uri, lance_conn_id, dict(options), detail], sort_keys=True, default=str)


def jittered(seconds: float) -> float:
    """An interval a little shorter or longer, so that triggers which began together do not check together for ever."""
    return seconds * random.uniform(0.9, 1.1)
