"""Waits for a silent store: signals are seen, listings end, claims of sizes take no memory."""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sqlalchemy.dialects
from sqlalchemy.engine.default import DefaultDialect

from lance_core.errors import StoreError, StoreRefusedError
from lance_core.io.aws_role import AssumedRole
from lance_core.io.external.dynamodb import DynamoRegister
from lance_core.io.external.sql import SqlRegister
from lance_core.io.limits import ENTRIES_VARIABLE, ListingBound
from lance_core.io.resolve import resolve_store
from lance_core.io.waiting import ANSWER_VARIABLE, answered, attended

CHILD = """
import os, signal, sys
import obstore, pyarrow
import lance_core
def stop(*_):
    print("seen", flush=True)
    raise SystemExit(7)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
verb = {"open": lambda: lance_core.dataset(uri, storage_options=options).count_rows(),
        "write": lambda: lance_core.write_dataset(pyarrow.table({"a": [1]}), uri, storage_options=options)}[sys.argv[2]]
uri = "s3://bucket/t"
options = {"aws_endpoint": sys.argv[1], "aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "x",
           "allow_http": "true", "timeout": "600s"}
verb()
"""


CLAIMED = """
import json, sys
from lance_core.errors import LanceError
from lance_core.fetch import ByteRange
from lance_core.io.resolve import resolve_store
store = resolve_store("s3://b/t", json.loads(sys.argv[1]))
for name, verb in (("get", lambda: store.get("_versions/1.manifest")), ("size", lambda: store.size("data/x.lance")),
                   ("ranges", lambda: store.get_ranges("data/x.lance", [ByteRange(0, 8)]))):
    try:
        print(name, verb())
    except LanceError as error:
        print(name, type(error).__name__)
"""


@contextmanager
def _silent() -> Iterator[tuple[str, threading.Event]]:
    """A server that takes connections and never answers; the event is set when a request has come."""
    asked = threading.Event()
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(100)
            asked.set()
            over.wait(120)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            over.set()
            server.shutdown()


@pytest.mark.parametrize("verb", ["open", "write"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "ctrl-c"])
def test_signals_are_seen_while_a_store_is_silent(number: signal.Signals, verb: str) -> None:
    """The wait inside the native client went on for more than 40 s; the server stays silent until the process has ended."""
    with _silent() as (endpoint, asked):
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, endpoint, verb], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert asked.wait(120), "the store was asked"
            os.kill(process.pid, number)
            out, err = process.communicate(timeout=200)  # the client's own patience is 600 s
        finally:
            process.kill()
    if number is signal.SIGTERM:
        assert (process.returncode, out) == (7, "ready\nseen\n"), err
    else:
        assert "KeyboardInterrupt" in err


def test_what_a_request_raises_and_returns() -> None:
    """In the main thread and in others, one after the other."""
    assert [attended(lambda: number * 2) for number in range(3)] == [0, 2, 4]
    with pytest.raises(KeyError):
        attended(lambda: {}["x"])
    found: list[str] = []
    other = threading.Thread(target=lambda: found.append(attended(lambda: threading.current_thread().name)))
    other.start()
    other.join()
    assert found == [other.name]
    assert attended(lambda: threading.current_thread().name) == "lance-request"


def test_a_child_has_attendants_of_its_own() -> None:
    """A forked process inherits the list, not the threads."""
    assert attended(lambda: 1) == 1
    pid = os.fork()
    if pid == 0:
        os._exit(0 if attended(lambda: 5) == 5 else 1)
    assert os.waitpid(pid, 0)[1] == 0


class _Endless(BaseHTTPRequestHandler):
    """An S3 whose listings never end, and whose objects claim 2^60 bytes."""

    repeats = False
    pages = 0

    def do_GET(self) -> None:
        kind = type(self)
        if "list-type" not in self.path:
            return self._claim()
        kind.pages += 1
        start = 0 if kind.repeats else kind.pages * 1000
        entries = "".join(
            f"<Contents><Key>t/data/{number:09}.lance</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>x</ETag><Size>1</Size></Contents>"
            for number in range(start, start + 1000)
        )
        body = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>'
            f"<Prefix>t/</Prefix><KeyCount>1000</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>true</IsTruncated>"
            f"<NextContinuationToken>n{kind.pages}</NextContinuationToken>{entries}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def do_HEAD(self) -> None:
        self._claim()

    def _claim(self) -> None:
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(1 << 60))
        self.send_header("Content-Range", f"bytes 0-{(1 << 60) - 1}/{1 << 60}")
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[dict[str, str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {
                "aws_endpoint": f"http://127.0.0.1:{server.server_address[1]}", "aws_access_key_id": "a",
                "aws_secret_access_key": "b", "aws_region": "x", "allow_http": "true", "client_max_retries": "0",
            }  # fmt: skip
        finally:
            server.shutdown()


@pytest.mark.parametrize("repeats", [False, True])
def test_a_listing_that_never_ends(monkeypatch: pytest.MonkeyPatch, repeats: bool) -> None:
    """It is given up by a limit with a name, and at once where pages come again."""
    monkeypatch.setenv(ENTRIES_VARIABLE, "20000")
    handler = type("Handler", (_Endless,), {"repeats": repeats, "pages": 0})
    with _served(handler) as options, pytest.raises(StoreRefusedError) as told:
        list(resolve_store("s3://b/t", options).list("data/"))
    assert ("does not go on" if repeats else ENTRIES_VARIABLE) in str(told.value)
    assert handler.pages < 40


def test_the_bound_of_a_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In entries, and in seconds."""
    monkeypatch.setenv("LANCE_LISTING_SECONDS", "0")
    bound = ListingBound("data/", uri="s3://b/t")
    with pytest.raises(StoreRefusedError, match="LANCE_LISTING_SECONDS"):
        bound.count(1)


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_claim_of_2_to_the_60_bytes(engine: str) -> None:
    """In a child: the native client aborted its process."""
    with _served(_Endless) as options:
        given = {**options, "store_engine": engine}
        done = subprocess.run(
            [sys.executable, "-c", CLAIMED, json.dumps(given)],
            capture_output=True, text=True, timeout=100, check=False, env={**os.environ, "LANCE_STORE_ENGINE": engine},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["get", "size", "ranges"]
    assert "Error" in done.stdout.splitlines()[0], done.stdout


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("verb", ["get", "put", "put if absent", "list", "delete"])
def test_a_silent_store_is_given_up(engine: str, verb: str) -> None:
    """With fsspec's engine an upload waited for the server's "100 Continue", whatever the timeout."""
    ended: list[BaseException] = []

    def ask(endpoint: str) -> None:
        store = resolve_store("s3://b/t", {
            "aws_endpoint": endpoint, "aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "x",
            "allow_http": "true", "timeout": "1s", "client_max_retries": "0", "store_engine": engine,
        })  # fmt: skip
        try:
            {
                "get": lambda: store.get("a"),
                "put": lambda: store.put("a", b"1"),
                "put if absent": lambda: store.put_if_absent("a", b"1"),
                "list": lambda: [*store.list("")],
                "delete": lambda: store.delete("a"),
            }[verb]()
        except BaseException as error:
            ended.append(error)

    with _silent() as (endpoint, _):
        thread = threading.Thread(target=ask, args=(endpoint,), daemon=True)
        thread.start()
        thread.join(60)
    assert [isinstance(error, StoreError) and error.retryable for error in ended] == [True], ended


class SilentDialect(DefaultDialect):
    """A database whose driver waits for the server's greeting without a limit, as most do."""

    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """A driver of this."""
        return types.SimpleNamespace(paramstyle="qmark", Error=OSError)

    def connect(self, *_: Any, host: str, port: int, **__: Any) -> Any:
        """Never returns while the server is silent."""
        with socket.create_connection((host, port)) as connection:
            connection.sendall(b"hello")
            return connection.recv(1)


def _ask_silent(kind: str, endpoint: str) -> object:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1"}
    if kind == "sql":
        return SqlRegister(endpoint.replace("http", "silent")).latest("b")
    if kind == "dynamodb":
        return DynamoRegister("t", {**keys, "dynamodb_endpoint": endpoint}).latest("b")
    return AssumedRole("arn:aws:iam::123456789012:role/r", keys=("a", "b", None), endpoint=endpoint)()


@pytest.mark.parametrize("kind", ["sql", "dynamodb", "sts"])
def test_who_is_silent_is_given_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a limit for all that it takes, and by name. The drivers of databases wait for ever."""
    monkeypatch.setenv(ANSWER_VARIABLE, "0.5")
    monkeypatch.setitem(sqlalchemy.dialects.registry.impls, "silent", lambda: SilentDialect)
    failed: list[BaseException] = []

    def ask(endpoint: str) -> None:
        try:
            _ask_silent(kind, endpoint)
        except BaseException as error:
            failed.append(error)

    with _silent() as (endpoint, asked):
        thread = threading.Thread(target=ask, args=(endpoint,), daemon=True)
        thread.start()
        thread.join(60)
        assert asked.is_set()
    assert [(type(error), getattr(error, "retryable", None)) for error in failed] == [(StoreError, True)], failed
    assert ANSWER_VARIABLE in str(failed[0])


def test_an_answer_that_fails_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is a timeout of its own."""
    assert answered(lambda: 5, by="x") == 5
    for error in (TimeoutError("mine"), KeyError("k")):
        with pytest.raises(type(error), match=str(error.args[0])):
            answered(lambda: _raises(error), by="x")
    monkeypatch.setenv(ANSWER_VARIABLE, "nonsense")
    assert answered(lambda: 5, by="x") == 5


def _raises(error: Exception) -> None:
    raise error
