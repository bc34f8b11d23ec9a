"""Streaming a new object: one request when it is small, otherwise parts that are sent in parallel.

::

    write 3 MiB, close            one PUT
    write 80 MiB, close           create upload, 8 parts at once, complete
    write 80 MiB, abort           the upload is withdrawn; nobody ever sees the object

A writer holds at most the part it fills and those under way, so its memory is bounded whatever is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import obstore

from lance_core.errors import StoreError
from lance_core.fetch import Buffer
from lance_core.io.waiting import attended

PART_SIZE = 10 << 20
"""Bytes of a part, and of the largest object that goes in one request. S3 takes 10,000 parts: 100 GB an object."""
_PARTS_AT_ONCE = 8


class ObjectWriter:
    """An object being written."""

    def __init__(self, client: Any, full: str, *, typed: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._full = full
        self._typed = typed
        with typed():
            self._upload: Any = obstore.open_writer(client, full, buffer_size=PART_SIZE, max_concurrency=_PARTS_AT_ONCE)

    def write(self, data: Buffer) -> None:
        """Append bytes; waits only while all parts that may be under way are."""
        if self._upload is None:
            raise StoreError(f"{self._full!r} is already closed", operation="write")
        with self._typed():
            upload = self._upload
            attended(lambda: upload.write(data))

    def close(self) -> None:
        """Publish the object. Closing twice is harmless."""
        if self._upload is None:
            return
        upload, self._upload = self._upload, None
        try:
            with self._typed():
                attended(upload.close)
        except BaseException:
            _give_up(upload)
            raise

    def abort(self) -> None:
        """Give the bytes up; a no-op after `close`."""
        if self._upload is not None:
            upload, self._upload = self._upload, None
            _give_up(upload)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.abort()


def _give_up(upload: Any) -> None:
    # Leaving the block by an error is how a writer of obstore is made to end its upload without an object.
    with contextlib.suppress(Exception):
        upload.__exit__(StoreError, StoreError("given up"), None)
