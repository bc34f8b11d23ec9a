"""Streaming a new object: small ones in one request, larger ones as a multipart upload that is visible only at its end.

::

    write 3 MiB, close            one PUT
    write 40 MiB, close           create upload, parts, complete
    write 40 MiB, abort (or die)  the upload is withdrawn; nobody ever sees the object

File systems that show a file while it is written (HDFS) get a temporary name first, and a rename at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from lance_core.errors import StoreError
from lance_core.fetch import Buffer
from lance_core.io.remote.errors import Redactor, Retries, retrying, typed
from lance_core.io.remote.folders import give_name, put_by_name, temporary_name

PART_SIZE = 16 << 20
"""Bytes of a part, and of the largest object that goes in one request. Bounds the memory of a writer, too."""

_INVISIBLE_UPLOADS = ("s3fs", "gcsfs", "adlfs")


class RemoteWriter:
    """An object being written. `uploads` is the file system for parts, whose requests nobody but itself can repeat."""

    def __init__(
        self,
        connect: Callable[[], Any],
        full: str,
        *,
        uploads: Callable[[], Any],
        path: str,
        redact: Redactor,
        shows_writes: bool,
        retries: Retries,
    ) -> None:
        self._connect = connect
        self._uploads = uploads
        self._full = full
        self._path = path
        self._redact = redact
        self._shows_writes = shows_writes
        self._retries = retries
        self._small: bytearray | None = bytearray()
        self._upload: Any = None
        self._temporary: str | None = None

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        if self._small is None and self._upload is None:
            raise StoreError(f"{self._path!r} is already closed", operation="write")
        with self._typed():
            if self._upload is not None:
                self._upload.write(bytes(data))
                return
            assert self._small is not None
            self._small += data
            if len(self._small) >= PART_SIZE:
                self._upload = self._begin()
                self._upload.write(bytes(self._small))
                self._small = None

    def close(self) -> None:
        """Publish the object. Closing twice is harmless."""
        if self._upload is not None:
            upload, self._upload = self._upload, None
            with self._typed(), self._discarding(upload):
                upload.close()
                if self._temporary is not None:
                    give_name(self._connect(), self._temporary, self._full)
                elif not _commits_itself(upload):
                    upload.commit()
        elif self._small is not None:
            data, self._small = bytes(self._small), None
            retrying(lambda: self._put(data), self._retries)

    def abort(self) -> None:
        """Give the bytes up; a no-op after `close`."""
        self._small = None
        if self._upload is not None:
            upload, self._upload = self._upload, None
            self._discard(upload)

    def __del__(self) -> None:
        # fsspec's files publish what they have when they are collected; half a file must never be published.
        with contextlib.suppress(Exception):
            self.abort()

    def _put(self, data: bytes) -> None:
        with self._typed():
            if self._shows_writes:
                put_by_name(self._connect(), self._full, data)
            else:
                self._connect().pipe_file(self._full, data)

    def _begin(self) -> Any:
        fs = self._uploads()
        if type(fs).__module__.startswith(_INVISIBLE_UPLOADS):
            return fs.open(self._full, "wb", block_size=PART_SIZE, autocommit=False)
        self._temporary = temporary_name(self._full)
        return fs.open(self._temporary, "wb", block_size=PART_SIZE)

    @contextlib.contextmanager
    def _discarding(self, upload: Any) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._discard(upload)
            raise

    def _discard(self, upload: Any) -> None:
        with contextlib.suppress(Exception):
            upload.discard()
        with contextlib.suppress(Exception):
            upload.closed = True  # else fsspec publishes the rest when it collects the file
        if self._temporary is not None:
            with contextlib.suppress(Exception):
                self._connect().rm_file(self._temporary)

    def _typed(self) -> contextlib.AbstractContextManager[None]:
        return typed(self._path, uri=self._full, redact=self._redact)


def _commits_itself(upload: Any) -> bool:
    # adlfs knows no autocommit: its close commits the block list.
    return type(upload).__module__.startswith("adlfs")
