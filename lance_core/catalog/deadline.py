"""HTTP connections that end at a deadline, however slowly the other side goes on.

The timeout of a socket is for one wait: a server that sends a byte a second is never silent, and would keep its client as
long as it likes. Here every wait on a connection gets what is left of the whole.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
import urllib.request
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any


class Deadline:
    """A moment until which something must be done."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then. Raises TimeoutError when there are none."""
        found = self._ends - time.monotonic()
        if found <= 0:
            raise TimeoutError("the whole request took too long")
        return found


class _Reader(io.RawIOBase):
    """The bytes that a socket receives; each wait is as long as what is left."""

    def __init__(self, held: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._socket, self._deadline = held, deadline
        self._raw = held.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        self._socket.settimeout(self._deadline.left())
        return self._raw.readinto(target)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Socket:
    """What an HTTP connection needs of a socket."""

    def __init__(self, held: socket.socket, deadline: Deadline) -> None:
        self._socket, self._deadline = held, deadline

    def sendall(self, data: Any) -> None:
        """All of it, in what is left."""
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, *_: object) -> io.BufferedReader:
        """To read the answer from."""
        return io.BufferedReader(_Reader(self._socket, self._deadline))

    def close(self) -> None:
        """End the connection, once what was made of it is closed."""
        self._socket.close()


class _Plain(HTTPConnection):
    def __init__(self, host: str, *, deadline: Deadline, **named: Any) -> None:
        super().__init__(host, **named)
        self._deadline = deadline

    def connect(self) -> None:
        self.timeout = self._deadline.left()
        super().connect()
        self.sock: Any = _Socket(self.sock, self._deadline)


class _Encrypted(HTTPSConnection):
    def __init__(self, host: str, *, deadline: Deadline, **named: Any) -> None:
        super().__init__(host, **named)
        self._deadline = deadline

    def connect(self) -> None:
        self.timeout = self._deadline.left()
        super().connect()
        self.sock: Any = _Socket(self.sock, self._deadline)


class UntilThen(urllib.request.AbstractHTTPHandler):
    """Opens http and https; `context` is for the latter."""

    def __init__(self, deadline: Deadline, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._deadline, self._context = deadline, context

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        """By a connection with the deadline."""
        plain: Any = _Plain
        return self.do_open(plain, request, deadline=self._deadline)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        """The same, encrypted."""
        encrypted: Any = _Encrypted
        return self.do_open(encrypted, request, deadline=self._deadline, context=self._context)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_
