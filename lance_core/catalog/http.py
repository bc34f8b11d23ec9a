"""One HTTP request with a JSON answer, for the REST catalog: bounded, without redirects, with typed errors.

The headers hold a token: they are sent to the catalog's own address only, and do not show in an error, even where the
server repeats them.

HTTP connections that end at a deadline, however slowly the other side goes on.

The timeout of a socket is for one wait: a server that sends a byte a second is never silent, and would keep its client as
long as it likes. Here every wait on a connection gets what is left of the whole.
"""

from __future__ import annotations

import io
import json
import socket
import ssl
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from lance_core.catalog.errors import error_of, error_of_status
from lance_core.errors import InputError, LanceError, StoreError

MAX_ANSWER = 64 << 20
_MAX_SHOWN = 500


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow none; the answer is an error."""


@dataclass(frozen=True)
class Tls:
    """Files of certificates, in PEM; `assert_hostname` only ever is disabled by the caller."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    assert_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """The context of these files. InputError for one that cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"the certificates of the catalog's connection cannot be read: {error}") from error
        context.check_hostname = self.assert_hostname
        return context


@dataclass(frozen=True)
class HttpClient:
    """Where the catalog is, and how to speak to it."""

    base: str
    seconds: float = 30.0
    """How long one request may take altogether, its answer included."""
    tls: Tls = field(default_factory=Tls)

    def __post_init__(self) -> None:
        """InputError for another scheme, and for credentials in the address."""
        parts = urlsplit(self.base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{self.base!r} is not the address of a REST catalog", cure="Write https://host:port.")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError(
                "the address of a REST catalog must not hold credentials or a query",
                cure="Pass them as header.* properties.",
            )

    def ask(self, method: str, path: str, *, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Any:
        """The answer's JSON; None for an empty one. A LanceError by the server's code or status, else StoreError."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Accept": "application/json", **({} if data is None else {"Content-Type": "application/json"}), **headers}
        request = urllib.request.Request(f"{self.base.rstrip('/')}{path}", data=data, headers=sent, method=method)
        where = f"{method} {self.base.rstrip('/')}{path.partition('?')[0]}"
        try:
            with self._opener(Deadline(self.seconds)).open(request, timeout=self.seconds) as answer:
                return _parsed(_bounded(answer, where), where)
        except HTTPError as error:
            raise _refusal(error, where, headers) from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else type(error).__name__
            raise StoreError(f"{where}: the catalog did not answer: {_hidden(str(reason), headers)}") from None

    def _opener(self, deadline: Deadline) -> urllib.request.OpenerDirector:
        context = self.tls.context() if self.base.startswith("https:") else None
        opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPDefaultErrorHandler(),
                        urllib.request.HTTPErrorProcessor(), _NoRedirects(), UntilThen(deadline, context)):  # fmt: skip
            opener.add_handler(handler)
        return opener


def _bounded(answer: IO[bytes], where: str) -> bytes:
    found = answer.read(MAX_ANSWER + 1)
    if len(found) > MAX_ANSWER:
        raise StoreError(f"{where}: the catalog's answer is longer than {MAX_ANSWER} bytes")
    return found


def _parsed(found: bytes, where: str) -> Any:
    if not found.strip():
        return None
    try:
        return json.loads(found)
    except (ValueError, RecursionError):
        raise StoreError(f"{where}: the catalog's answer is not JSON") from None


def _refusal(error: HTTPError, where: str, headers: Mapping[str, str]) -> LanceError:
    if 300 <= error.code < 400:
        return InputError(f"{where}: the catalog redirects to another address", cure="Configure that address.")
    try:
        found = json.loads(error.read(MAX_ANSWER))
    except (ValueError, OSError, HTTPException, RecursionError):
        found = None
    said = found if isinstance(found, dict) else {}
    text = str(said.get("error") or said.get("detail") or error.reason or "")[:_MAX_SHOWN]
    message = f"{where}: the catalog answered {error.code}: {_hidden(text, headers)}"
    code = said.get("code")
    if isinstance(code, int) and not isinstance(code, bool) and code != error.code:
        return error_of(code, message)
    return error_of_status(error.code, message)


def _hidden(text: str, headers: Mapping[str, str]) -> str:
    """A text without the values of headers, and without the token in one."""
    for value in headers.values():
        for secret in (value, value.rpartition(" ")[2]):
            if len(secret) > 3:
                text = text.replace(secret, "***")
    return text


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
