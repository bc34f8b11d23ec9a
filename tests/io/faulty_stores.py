"""Stores that delay or fail calls of the store that they wrap.

::

    store = FaultyStore(inner, fail_at=5, when="after")             the 5th call happens, its answer is lost
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from lance_core.errors import StoreError
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore

T = TypeVar("T")


class SlowStore(WrappedStore):
    """Waits before every call, as a far object store does. `is_local` is False, so that pools are used."""

    def __init__(self, inner: Store, *, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    @property
    def is_local(self) -> bool:
        """False: a slow store is what threads are for."""
        return False

    def _around(self, inner: Store) -> SlowStore:
        return SlowStore(inner, seconds=self._seconds)

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        time.sleep(self._seconds)
        return action()


class FaultyStore(WrappedStore):
    """Breaks the `fail_at`-th call (from 1) that `matches(name, path)` accepts; later calls work unless `forever`.

    `when="before"`: nothing happened, StoreError. `when="after"`: it happened, but the caller gets StoreError: a lost reply.
    `error` makes what is raised, so that a test may raise something that nobody catches (a dying process).
    """

    def __init__(
        self,
        inner: Store,
        *,
        fail_at: int,
        when: Literal["before", "after"] = "before",
        forever: bool = False,
        matches: Callable[[str, str], bool] | None = None,
        error: Callable[[str], BaseException] = StoreError,
        shared: FaultyStore | None = None,
    ) -> None:
        super().__init__(inner)
        self._fail_at = fail_at
        self._when = when
        self._forever = forever
        self._matches = matches
        self._error = error
        self._shared: FaultyStore = self if shared is None else shared
        self._lock = threading.Lock()
        self._num_calls = 0
        self._log: list[tuple[str, str]] = []

    @property
    def num_calls(self) -> int:
        """Calls so far, children included."""
        return self._shared._num_calls

    @property
    def log(self) -> Sequence[tuple[str, str]]:
        """(name, path) of every call so far."""
        return tuple(self._shared._log)

    def _around(self, inner: Store) -> FaultyStore:
        return FaultyStore(
            inner, fail_at=self._fail_at, when=self._when, forever=self._forever, matches=self._matches,
            error=self._error, shared=self._shared,
        )  # fmt: skip

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        fails = self._count(name, path)
        if fails and self._when == "before":
            raise self._error(f"made to fail before {name} {path!r}")
        result = action()
        if fails:
            raise self._error(f"made to fail after {name} {path!r}")
        return result

    def _count(self, name: str, path: str) -> bool:
        shared = self._shared
        with shared._lock:
            if self._matches is not None and not self._matches(name, path):
                return False
            shared._num_calls += 1
            shared._log.append((name, path))
            number = shared._num_calls
        return number == self._fail_at or (self._forever and number > self._fail_at > 0)
