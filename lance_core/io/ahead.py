"""The next piece is read while the last one is used.

::

    read 1 | read 2 | read 3 | ...
           | use 1           | use 2           ...

One piece is read ahead and no more: each is bounded in bytes by who reads it. Pieces come in their order. Who stops in the
middle, for an error or by hand, does not wait for the piece that is being read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from lance_core.io.threads import Threads

T = TypeVar("T")
_END: Any = object()


def ahead(pieces: Iterator[T]) -> Generator[T, None, None]:
    """The pieces, each read while the one before is used. Raises what reading raises, where that piece would come."""
    threads = Threads(max_workers=1, thread_name_prefix="lance-ahead")
    try:
        coming = threads.submit(next, pieces, _END)
        while (piece := coming.result()) is not _END:
            coming = threads.submit(next, pieces, _END)
            yield piece
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
