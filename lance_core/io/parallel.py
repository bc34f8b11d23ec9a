"""Requests that run in parallel, on a store where waiting is what they cost.

::

    each(store, paths, read)               many at once, results in order

    with beside(store, write_hint):        the hint, while the block reads the log
        ...

    wait = begin(store, write_claim)       the claim, while the ledger is read
    ...
    wait()                                 before the first file

Elsewhere (a folder of this machine, a store of the simulator) nothing is done early, and what is beside comes behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store
from lance_core.io.threads import settled

S = TypeVar("S")
T = TypeVar("T")


def each(store: Store, items: Sequence[S], action: Callable[[Store, S], T]) -> list[T]:
    """`action(store, item)` for every item, at once where waiting is what it costs; results in order."""
    if len(items) < 2 or in_io_pool():
        return [action(store, item) for item in items]
    # A folder of this machine answers sooner than a thread takes over; one of the network, or a disk to be synced, does not.
    done = _while_quick(store, items, action) if store.is_local else []
    return done + list(io_pool(store.uri).map(lambda item: action(store, item), items[len(done) :]))


def _while_quick(store: Store, items: Sequence[S], action: Callable[[Store, S], T]) -> list[T]:
    done: list[T] = []
    began = time.monotonic()
    for item in items:
        done.append(action(store, item))
        if len(done) >= _TRIED and time.monotonic() - began > _QUICK_SECONDS * len(done):
            break
    return done


_TRIED = 4
_QUICK_SECONDS = 0.001


def begin(store: Store, action: Callable[[], T]) -> Callable[[], T]:
    """Begin `action` now; what is returned waits for it, and has its result or its error. Where that does not help, it is
    done when this returns."""
    if not helps(store):
        found = action()
        return lambda: found
    return io_pool(store.uri).submit(action).result


@contextmanager
def beside(store: Store, action: Callable[[], None]) -> Iterator[None]:
    """Run `action` while the block runs; where that does not help, behind it if the block succeeds."""
    if not helps(store):
        yield
        action()
        return
    done = io_pool(store.uri).submit(action)
    try:
        yield
    finally:
        settled([done])
    done.result()


def helps(store: Store) -> bool:
    """Whether requests to this store are worth a thread of their own."""
    return store.is_wide and not in_io_pool()
