"""Pages are encoded on the work pool while earlier ones are written; the file has one writer, so its bytes have one order.

::

    calling thread   add a   add b   add c   write a      write b   ...
    work pool          encode a ...  encode b ...  encode c ...

Pages are written in the order they were added; small ones (of wide tables) are encoded several to a task. What waits is
bounded in bytes, before encoding: `add` writes the oldest until the new ones fit. A thread of the work pool itself
encodes at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lance_core.io.pool import in_work_pool, num_work_threads, work_pool
from lance_core.pages.encoded import EncodedPage

_SMALL = 64 << 10
"""So few bytes are encoded directly instead of passed to a thread."""

Rows = Sequence[tuple[int, Sequence[Any]]]
Encode = Callable[[Rows], list[list[EncodedPage]]]
Write = Callable[[int, Sequence[EncodedPage], int], None]

_TASK_BYTES = 1 << 20
"""Rows of less than this together are not worth a thread's attention."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Rows that are being encoded: (column, rows) of each of `pages`; `num_bytes` before encoding."""

    columns: list[tuple[int, int]]
    num_bytes: int
    pages: Future[list[list[EncodedPage]]]


class EncodeAhead:
    """The pages between an encoder and a file. `write(column, pages, num_rows)` runs in the caller's thread only."""

    def __init__(self, encode: Encode, write: Write, *, page_bytes: int) -> None:
        self._encode = encode
        self._write = write
        self._next: list[tuple[int, Sequence[Any]]] = []
        self._next_bytes = 0
        self._waiting: deque[_Waiting] = deque()
        self._max_bytes = 2 * num_work_threads() * page_bytes
        self._num_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of rows that are being encoded or wait to be written."""
        return self._num_bytes + self._next_bytes

    def add(self, column: int, slices: Sequence[Any]) -> None:
        """Encode some rows of a column; write what is ready. Raises what the encoding of earlier rows raised."""
        self._next.append((column, slices))
        self._next_bytes += sum(item.num_bytes for item in slices)
        if self._next_bytes >= _TASK_BYTES:
            self._submit()

    def drain(self) -> None:
        """Write everything that waits."""
        if self._next:
            self._submit()
        while self._waiting:
            self._write_oldest()

    def abandon(self) -> None:
        """Forget what waits; returns when nobody encodes for this file any more."""
        waiting, self._waiting, self._num_bytes = self._waiting, deque(), 0
        self._next, self._next_bytes = [], 0
        for item in waiting:
            if not item.pages.cancel():
                with suppress(Exception):  # nobody wants the pages, nor what went wrong with them
                    item.pages.result()

    def _submit(self) -> None:
        rows, num_bytes = self._next, self._next_bytes
        self._next, self._next_bytes = [], 0
        if in_work_pool() or (num_bytes < _SMALL and not self._waiting):
            for (column, slices), pages in zip(rows, self._encode(rows), strict=True):
                self._write(column, pages, _num_rows(slices))
            return
        while self._waiting and (self._waiting[0].pages.done() or self._num_bytes + num_bytes > self._max_bytes):
            self._write_oldest()
        self._num_bytes += num_bytes
        columns = [(column, _num_rows(slices)) for column, slices in rows]
        self._waiting.append(_Waiting(columns, num_bytes, work_pool().submit(self._encode, rows)))

    def _write_oldest(self) -> None:
        oldest = self._waiting.popleft()
        self._num_bytes -= oldest.num_bytes
        for (column, num_rows), pages in zip(oldest.columns, oldest.pages.result(), strict=True):
            self._write(column, pages, num_rows)


def _num_rows(slices: Sequence[Any]) -> int:
    return sum(item.num_rows for item in slices)
