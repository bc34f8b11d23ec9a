"""A proxy on loopback before a server of HTTP, which cuts answers off in places of choice.

::

    client ── request ──▶ proxy ── request ──▶ server         the request is carried out (but for the place "unsent")
    client ◀─ a part ─── proxy ◀─ the answer ── server        then the connection is closed, or reset
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, get_args

Place = Literal["unsent", "no answer", "in the status", "in the headers", "behind the headers", "in the body", "in a chunk"]
PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True)
class Cut:
    """Where an answer is cut off, and whether by a reset; `skipped`: how many requests are answered whole before."""

    place: Place
    is_reset: bool = False
    skipped: int = 0


class CuttingProxy(ThreadingHTTPServer):
    """Passes everything on; once `arm`ed it cuts one answer off."""

    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.host = endpoint.removeprefix("http://").split("/")[0]
        self.endpoint = endpoint.replace(self.host, f"127.0.0.1:{self.server_address[1]}")
        self._lock, self._cut, self._skipped = threading.Lock(), None, 0
        self.cut_off: list[str] = []

    _cut: Cut | None

    def arm(self, cut: Cut) -> None:
        """One answer to come is cut off."""
        with self._lock:
            self._cut, self._skipped = cut, cut.skipped
            self.cut_off.clear()

    def disarm(self) -> None:
        """All answers are whole again."""
        with self._lock:
            self._cut = None

    def cut_for(self, request: str) -> Cut | None:
        """What happens to the answer of this request."""
        with self._lock:
            cut = self._cut
            if cut is None:
                return None
            if self._skipped:
                self._skipped -= 1
                return None
            self._cut = None
            self.cut_off.append(request)
            return cut

    def handle_error(self, *_: object) -> None:
        """A client that has gone is nobody's fault."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CuttingProxy

    def _pass(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        cut = self.server.cut_for(f"{self.command} {self.path}")
        if cut is not None and cut.place == "unsent":
            self._end(cut)
            return
        upstream = http.client.HTTPConnection(self.server.host, timeout=60)
        with contextlib.closing(upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    upstream.putheader(name, value)
            upstream.putheader("Connection", "close")
            upstream.endheaders(body)
            answer = upstream.getresponse()
            found = answer.read()
        # Stores send listings and errors so, objects never.
        is_chunked = (
            cut is not None and cut.place == "in a chunk" and bool(found) and "xml" in answer.getheader("Content-Type", "")
        )
        head = _head(answer, len(found), is_chunked=is_chunked, has_length=self.command != "HEAD")
        if cut is None:
            self.connection.sendall(head + found)
            return
        self.connection.sendall(_part(cut, head, found, is_chunked=is_chunked))
        self._end(cut)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

    def _end(self, cut: Cut) -> None:
        if cut.is_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # `shutdown` would end the connection in order before the reset.
            self.rfile.close()
            self.wfile.close()
            self.connection.close()

    def log_message(self, *_: object) -> None:
        pass


def _head(answer: http.client.HTTPResponse, size: int, *, is_chunked: bool, has_length: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    dropped = {"connection", "transfer-encoding"} | ({"content-length"} if has_length else set())
    lines += [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in dropped]
    if is_chunked:
        lines.append("Transfer-Encoding: chunked")
    elif has_length and answer.status != 204:
        lines.append(f"Content-Length: {size}")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def _part(cut: Cut, head: bytes, body: bytes, *, is_chunked: bool) -> bytes:
    """What is sent of an answer. One without a body is cut off in its headers, where that is what there is to cut."""
    if cut.place == "no answer":
        return b""
    if cut.place == "in the status":
        return head[:7]
    if cut.place == "in the headers" or not body:
        return head[: len(head) // 2]
    if cut.place == "behind the headers":
        return head
    half = body[: max(len(body) // 2, 1) if len(body) > 1 else 0]
    if is_chunked:
        first, second = half[: len(half) // 2], half[len(half) // 2 :]
        begun = b"%x\r\n%s\r\n" % (len(first), first) if first else b""
        return head + begun + b"%x\r\n" % (len(body) - len(first)) + second
    return head + half


@contextlib.contextmanager
def cutting_proxy(endpoint: str) -> Iterator[CuttingProxy]:
    """One before this endpoint, while the block runs."""
    with CuttingProxy(endpoint) as proxy:
        beside = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        beside.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            beside.join()
