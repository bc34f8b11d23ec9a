"""One table of what a store may answer, and what both engines make of it: the same class, after the same number of requests,
without the store's document in the message."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lance_core.errors import LanceError, NotFoundError, StoreError, StoreRefusedError
from lance_core.io.answers import NoAnswerError, TransientError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

ENGINES = ["obstore", "fsspec"]
SECRET = "hunter2hunter2hunter2"


class Server(ThreadingHTTPServer):
    """Gives one answer to whatever is asked, and counts."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.status, self.body, self.requests = 200, b"", 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests += 1
        body = b"" if self.command == "HEAD" else self.server.body
        self.send_response(self.server.status)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def store_at(port: int, engine: str, **more: str) -> Store:
    if engine == "fsspec":
        pytest.importorskip("s3fs", reason="s3fs is not installed (extra s3)")
    options = {
        "aws_access_key_id": "testing",
        "aws_secret_access_key": SECRET,
        "aws_region": "eu-west-1",
        "aws_endpoint": f"http://127.0.0.1:{port}",
        "store_engine": engine,
        "client_max_retries": "0",
        **more,
    }
    return resolve_store("s3://lake/t.lance", {name: value for name, value in options.items() if value})


def error(code: str, message: str = "said so") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message>'
        "<Resource>/lake/t.lance/a</Resource><RequestId>4442587FB7D0A2F9</RequestId></Error>"
    ).encode()


PAGE = b"<html><head><title>Bad gateway</title></head><body>nginx</body></html>"
ANSWERS: list[tuple[int, bytes, type[LanceError], str]] = [
    (403, error("AccessDenied"), StoreRefusedError, "AccessDenied"),
    (403, error("InvalidAccessKeyId"), StoreRefusedError, "InvalidAccessKeyId"),
    (403, error("SignatureDoesNotMatch"), StoreRefusedError, "SignatureDoesNotMatch"),
    (403, error("RequestTimeTooSkewed"), StoreRefusedError, "RequestTimeTooSkewed"),
    (403, PAGE, StoreRefusedError, "403"),
    (401, b"", StoreRefusedError, "401"),
    (507, error("XMinioStorageFull"), StoreRefusedError, "XMinioStorageFull"),
    (404, error("NoSuchBucket"), StoreRefusedError, "Create the bucket"),
    (400, error("InvalidRequest"), StoreError, "InvalidRequest"),
    (503, error("SlowDown", "Please reduce"), TransientError, "SlowDown"),
    (503, error("ServiceUnavailable"), TransientError, "ServiceUnavailable"),
    (500, error("InternalError"), TransientError, "InternalError"),
    (400, error("RequestTimeout"), TransientError, "RequestTimeout"),
    (409, error("OperationAborted"), TransientError, "OperationAborted"),
    (429, b"", TransientError, "429"),
    (502, PAGE, TransientError, "502"),
    (504, b"", TransientError, "504"),
]
CALLS: dict[str, Callable[[Store], Any]] = {
    "get": lambda store: store.get("a"),
    "put": lambda store: store.put("a", b"x"),
    "list": lambda store: list(store.list("")),
    "names": lambda store: store.list_names("v"),
    "delete": lambda store: store.delete("a"),
}


def caught(action: Callable[[], Any]) -> LanceError:
    with pytest.raises(LanceError) as found:
        action()
    text = str(found.value)
    assert "<" not in text, text
    assert SECRET not in text
    assert "\n" not in text
    return found.value


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("status", "body", "kind", "told"), ANSWERS, ids=[f"{row[0]}-{row[3].replace(' ', '-')}" for row in ANSWERS]
)
def test_an_answer_means_the_same_to_every_engine(
    server: Server, engine: str, call: str, status: int, body: bytes, kind: type[LanceError], told: str
) -> None:
    server.status, server.body, server.requests = status, body, 0
    found = caught(lambda: CALLS[call](store_at(server.server_port, engine)))
    assert type(found) is kind, repr(found)
    assert told in str(found)
    assert found.retryable == (kind is not StoreRefusedError)
    assert server.requests <= 2, "loops in loops"


@pytest.mark.parametrize("engine", ENGINES)
def test_an_absent_object(server: Server, engine: str) -> None:
    server.status, server.body = 404, error("NoSuchKey")
    assert type(caught(lambda: store_at(server.server_port, engine).get("a"))) is NotFoundError


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", ["ExpiredToken", "TokenRefreshRequired"])
@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"aws_session_token": "given-as-it-is"}, StoreRefusedError),
        ({"aws_session_token": "of a catalog", "expires_at_millis": "1"}, StoreError),
    ],
    ids=["of-the-caller", "vended"],
)
def test_keys_that_expired_are_worth_a_retry_where_they_are_renewed(
    server: Server, engine: str, code: str, options: dict[str, str], kind: type[LanceError]
) -> None:
    server.status, server.body = 400, error(code)
    found = caught(lambda: store_at(server.server_port, engine, **options).get("a"))
    assert type(found) is kind
    assert ("Renew the keys" in str(found)) == (kind is StoreRefusedError)


def test_of_many_deletes_each_has_an_answer_of_its_own(server: Server) -> None:
    server.status = 200
    server.body = (
        b'<?xml version="1.0"?><DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Error><Key>t.lance/a</Key>'
        b"<Code>AccessDenied</Code><Message>Access Denied</Message></Error></DeleteResult>"
    )
    store = store_at(server.server_port, "obstore")
    found = caught(lambda: store.delete_many(["a", "b"]))  # type: ignore[attr-defined]
    assert type(found) is StoreRefusedError, repr(found)
    assert "AccessDenied" in str(found)


def _closed_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS)
def test_nobody_answers(engine: str, call: str, caplog: pytest.LogCaptureFixture) -> None:
    """The number of tries is what was asked for, not a product of three loops; the first of them is told at once."""
    begun = time.monotonic()
    store = store_at(_closed_port(), engine, client_max_retries="2")
    with caplog.at_level("INFO", logger="lance_core.io"):
        found = caught(lambda: CALLS[call](store))
    assert type(found) is NoAnswerError, repr(found)
    assert time.monotonic() - begun < 30
    (line,) = [text for text in caplog.messages if "repeating the request" in text]
    assert "2 times at most" in line


class _Line(logging.Handler):
    """Does something when the first line about repeated requests is written."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__()
        self._do: list[Callable[[], None]] = [do]

    def emit(self, record: logging.LogRecord) -> None:
        while self._do:
            self._do.pop()()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", ["get", "put", "delete"])
def test_a_server_that_starts_after_the_first_try_is_found(engine: str, call: str) -> None:
    """For how long one is waited for is in `test_io_retries`."""
    port, servers = _closed_port(), []

    def start() -> None:
        servers.append(Server(port))
        servers[0].body = b"<DeleteResult><Deleted><Key>t.lance/a</Key></Deleted></DeleteResult>"
        threading.Thread(target=servers[0].serve_forever, daemon=True).start()

    store = store_at(port, engine, client_max_retries="")
    logger, handler = logging.getLogger("lance_core.io"), _Line(start)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        CALLS[call](store)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        for server in servers:
            server.shutdown()
            server.server_close()
    assert servers[0].requests == 1
