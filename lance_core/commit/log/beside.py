"""Requests of a commit that may run in parallel with others, on a store with a high latency.

::

    early.put(path, transaction)           sent now, in a thread
    open_newest(store)                     in the meantime
    early.has_failed()                     waits for it: True if it has to be written again

    with beside(store, write_hint):        the hint, while the block looks at the log
        ...

    wait = begin(store, write_claim)       the claim, while the ledger is asked
    ...
    wait()                                 before the first file

Elsewhere (a folder of this machine, a store of the simulator) nothing is done early, and what is beside comes behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import encode_transaction

T = TypeVar("T")


class Early:
    """The file of a transaction, written before it is certain that it is wanted as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.there: frozenset[str] = frozenset()
        """A file that was there before: it is neither written nor removed."""
        self._encoded: tuple[Transaction, bytes] | None = None
        self._sent: tuple[str, Transaction, Future[None]] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether something can be put early: once, and where that helps."""
        return self._sent is None and not self.there and _helps(self._store)

    def encoded(self, transaction: Transaction) -> bytes:
        """The bytes of a transaction, made once."""
        if self._encoded is None or self._encoded[0] is not transaction:
            self._encoded = (transaction, encode_transaction(transaction))
        return self._encoded[1]

    def put(self, path: str, transaction: Transaction) -> None:
        """Begin to write."""
        done = io_pool().submit(self._store.put, path, self.encoded(transaction))
        self._sent = (path, transaction, done)

    def has_sent(self, path: str, transaction: Transaction) -> bool:
        """Whether just this is on its way, or written."""
        return path in self.there or (self._sent is not None and self._sent[0] == path and self._sent[1] is transaction)

    def has_failed(self) -> bool:
        """Whether something was sent and could not be written. Nothing is under way afterwards."""
        self.settle()
        return self._sent is not None and self._sent[2].exception() is not None

    def settle(self) -> None:
        """Wait until nothing is under way."""
        if self._sent is not None:
            wait([self._sent[2]])


def begin(store: Store, action: Callable[[], T]) -> Callable[[], T]:
    """Begin `action` now; what is returned waits for it, and has its result or its error. Where that does not help, it is
    done when this returns."""
    if not _helps(store):
        found = action()
        return lambda: found
    return io_pool().submit(action).result


@contextmanager
def beside(store: Store, action: Callable[[], None]) -> Iterator[None]:
    """Run `action` while the block runs; where that does not help, behind it if the block succeeds."""
    if not _helps(store):
        yield
        action()
        return
    done = io_pool().submit(action)
    try:
        yield
    finally:
        wait([done])
    done.result()


def _helps(store: Store) -> bool:
    return store.is_wide and not in_io_pool()
