"""Cache of facts: kept for some seconds, in bounded memory, and gathered once for concurrent requests.

::

    entry = await cache.get(("table", "3f9a…"), pool="lake", load=gather, timeout=10)
    entry.value, entry.at
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from airflow_lance.ui.errors import PageError
from airflow_lance.ui.pool import Pools

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A fact and the time at which it was gathered, in seconds since the epoch. `size` is about its bytes."""

    value: T
    at: float
    size: int


class FactsCache(Generic[T]):
    """Keeps facts of one type for `seconds`, which may depend on the fact. The least recently used go first when `max_bytes`
    are reached."""

    def __init__(
        self,
        pools: Pools,
        *,
        seconds: float | Callable[[T], float],
        max_bytes: int,
        size_of: Callable[[T], int] = lambda value: len(json.dumps(value, default=str)),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pools = pools
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._clock = clock
        self._entries: OrderedDict[Hashable, Entry[T]] = OrderedDict()
        self._under_way: dict[Hashable, tuple[Future[T], float]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """About how many bytes are kept."""
        return self._bytes

    def peek(self, key: Hashable) -> Entry[T] | None:
        """What is known, however old."""
        with self._lock:
            return self._entries.get(key)

    def entries(self) -> list[Entry[T]]:
        """Everything that is known."""
        with self._lock:
            return list(self._entries.values())

    def is_fresh(self, entry: Entry[T] | None) -> bool:
        """Whether a fact is young enough."""
        if entry is None:
            return False
        seconds = self._seconds(entry.value) if callable(self._seconds) else self._seconds
        return self._clock() - entry.at < seconds

    def begin(self, key: Hashable, *, pool: str, load: Callable[[], T]) -> tuple[Future[T], float]:
        """The gathering of a fact that is under way, begun now if there is none; and when it began."""
        with self._lock:
            known = self._under_way.get(key)
            if known is not None:
                return known
            future = self._pools.submit(pool, load)
            begun = (future, self._clock())
            self._under_way[key] = begun
        future.add_done_callback(lambda done: self._keep(key, done))
        return begun

    async def get(
        self, key: Hashable, *, pool: str, load: Callable[[], T], timeout: float, refresh: bool = False
    ) -> Entry[T]:
        """A fact, fresh or gathered now. PageError "timeout" when gathering takes longer; it goes on and is kept."""
        entry = self.peek(key)
        if entry is not None and not refresh and self.is_fresh(entry):
            with self._lock:
                if key in self._entries:
                    self._entries.move_to_end(key)
            return entry
        future, _ = self.begin(key, pool=pool, load=load)
        try:
            value = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), timeout)
        except (TimeoutError, asyncio.TimeoutError):
            if future.done():
                raise  # the call itself timed out
            raise PageError(
                "timeout", f"The store did not answer within {timeout:g} s.", cure="Try again, or check the connection."
            ) from None
        return self.peek(key) or Entry(value, self._clock(), 0)

    def _keep(self, key: Hashable, done: Future[T]) -> None:
        value = None if done.cancelled() or done.exception() is not None else done.result()
        size = 0 if value is None else self._size_of(value)
        with self._lock:
            self._under_way.pop(key, None)
            if value is None or size > self._max_bytes:
                return
            before = self._entries.pop(key, None)
            self._bytes -= 0 if before is None else before.size
            self._entries[key] = Entry(value, self._clock(), size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, oldest = self._entries.popitem(last=False)
                self._bytes -= oldest.size
