"""What goes over the worker's socket.

::

    request     4 bytes of length, JSON; behind a write's: Arrow's stream, 'K', 8 bytes (number of rows)
    answer      'J' 4 bytes of length, JSON
                'A' Arrow's stream, then a trailer: 'K' 8 bytes (number of rows), or an error
                'E' 4 bytes of length, JSON {"type", "message"}

A stream counts only with its trailer: Arrow takes a connection that breaks for the end of a stream. Numbers are big-endian.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

_LARGEST_REQUEST = 1 << 28
_BUFFER_BYTES = 1 << 15


class Connection:
    """One connection of the JVM, from this side."""

    def __init__(self, connection: socket.socket) -> None:
        self._in = connection.makefile("rb", buffering=_BUFFER_BYTES)
        self._out = connection.makefile("wb", buffering=_BUFFER_BYTES)

    def request(self) -> dict[str, Any] | None:
        """The next one; None where the other side has closed. EOFError in the middle, OSError where it is no request."""
        first = self._in.read(4)
        if not first:
            return None
        if len(first) < 4:
            raise EOFError("half a length")
        size = struct.unpack(">i", first)[0]
        if not 0 < size <= _LARGEST_REQUEST:
            raise OSError(f"a request of {size} bytes")
        found = json.loads(self._exactly(size))
        if not isinstance(found, dict):
            raise OSError("a request that is no object")
        return found

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What follows a write's request. EOFError where it ends without its trailer: those rows are not all."""
        rows = 0
        with pa.ipc.open_stream(self._in) as stream:
            for batch in stream:
                rows += batch.num_rows
                yield batch
        kind, sent = struct.unpack(">cq", self._exactly(9))
        if kind != b"K" or sent != rows:
            raise EOFError(f"{rows} rows came of {sent}")

    def send_json(self, value: Mapping[str, Any]) -> None:
        """An answer."""
        self._framed(b"J", value)

    def send_error(self, error: BaseException) -> None:
        """An answer, or the trailer of a stream that ends here."""
        self._framed(b"E", {"type": type(error).__name__, "message": str(error)})

    def send_batches(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """A stream with its trailer. What fails in `batches` before the first one is the answer, later it is the trailer."""
        steps = iter(batches)
        try:
            first = next(steps, None)
        except Exception as error:
            self.send_error(error)
            return
        rows = 0
        failed: Exception | None = None
        self._out.write(b"A")
        with pa.ipc.new_stream(self._out, schema) as stream:
            while first is not None and failed is None:
                stream.write_batch(first)
                rows += first.num_rows
                try:
                    first = next(steps, None)
                except Exception as error:
                    failed = error
        if failed is not None:
            self.send_error(failed)
            return
        self._out.write(struct.pack(">cq", b"K", rows))
        self._out.flush()

    def close(self) -> None:
        """Both directions; what could not be sent is dropped."""
        for side in (self._out, self._in):
            with contextlib.suppress(OSError):
                side.close()

    def _framed(self, kind: bytes, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        self._out.write(kind + struct.pack(">i", len(body)) + body)
        self._out.flush()

    def _exactly(self, size: int) -> bytes:
        found: bytes = self._in.read(size)
        if len(found) < size:
            raise EOFError(f"{len(found)} bytes of {size}")
        return found
