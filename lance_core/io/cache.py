"""One bounded cache for what many readers share: footers, chunk tables, dictionaries, index pages.

::

    cache = LruCache(max_bytes=1 << 20)
    cache.get_or_make(("data/a.lance", 0), lambda: (load(), 512))    makes it once, remembers it as 512 bytes

Least recently used goes first. Keys carry everything that could change the value (store uri, path, size).
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")

CACHE_BYTES_VARIABLE = "LANCE_CACHE_BYTES"
DEFAULT_CACHE_BYTES = 256 << 20


class LruCache:
    """Thread-safe; bounded by the sum of the sizes that callers state, in bytes."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._num_bytes = 0
        self.hits = 0
        self.misses = 0

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        return self._num_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any | None:
        """The value, made the youngest; None when it is not held."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.misses += 1
                return None
            self._entries.move_to_end(key)
            self.hits += 1
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value of `size` bytes; one larger than the whole cache is not held."""
        if size > self._max_bytes:
            self.discard(key)
            return
        with self._lock:
            self._remove(key)
            self._entries[key] = (value, size)
            self._num_bytes += size
            while self._num_bytes > self._max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._num_bytes -= dropped

    def get_or_make(self, key: Hashable, make: Callable[[], tuple[T, int]]) -> T:
        """The held value, else what `make()` returns as (value, size in bytes).

        Two threads may make the same value at once; the later one stays. Values are immutable, so either will do.
        """
        found = self.get(key)
        if found is not None:
            return cast("T", found)
        value, size = make()
        self.put(key, value, size)
        return value

    def discard(self, key: Hashable) -> None:
        """Forget one value."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._num_bytes = 0

    def _remove(self, key: Hashable) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._num_bytes -= found[1]


class _Shared:
    """The process's cache, born on first use and again after a fork."""

    def __init__(self) -> None:
        self._cache: LruCache | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def get(self) -> LruCache:
        if self._cache is None:
            text = os.environ.get(CACHE_BYTES_VARIABLE, "")
            self._cache = LruCache(max_bytes=int(text) if text.isdigit() else DEFAULT_CACHE_BYTES)
        return self._cache

    def _forget(self) -> None:
        self._cache = None


_SHARED = _Shared()


def shared_cache() -> LruCache:
    """The cache all tables of this process share: `LANCE_CACHE_BYTES`, else 256 MiB."""
    return _SHARED.get()
