"""The file of a transaction, put in parallel with what comes before its manifest, on a store with a high latency.

::

    early.put(path, transaction)           sent now, in a thread
    open_newest(store)                     in parallel
    early.has_failed()                     waits for it: True if it has to be written again
"""

from __future__ import annotations

from concurrent.futures import Future

from lance_core.io.parallel import helps
from lance_core.io.pool import io_pool
from lance_core.io.store import Store
from lance_core.io.threads import settled
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import encode_transaction


class Early:
    """The file of a transaction, written before it is certain that it is wanted as it is."""

    def __init__(self, store: Store, there: frozenset[str]) -> None:
        """`there`: files that were there before; they are neither written nor removed."""
        self._store, self.there = store, there
        self._encoded: tuple[Transaction, bytes] | None = None
        self._sent: tuple[str, Transaction, Future[None]] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether something can be put early: once, and where that helps."""
        return self._sent is None and not self.there and helps(self._store)

    def encoded(self, transaction: Transaction) -> bytes:
        """The bytes of a transaction, made once."""
        if self._encoded is None or self._encoded[0] is not transaction:
            self._encoded = (transaction, encode_transaction(transaction))
        return self._encoded[1]

    def put(self, path: str, transaction: Transaction) -> None:
        """Begin to write."""
        done = io_pool(self._store.uri).submit(self._store.put, path, self.encoded(transaction))
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
            settled([self._sent[2]])
