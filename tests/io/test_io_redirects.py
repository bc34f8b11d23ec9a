"""A store that answers with the address of another host: nothing that signs a request goes there, by no engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lance_core.errors import LanceError, StoreRefusedError
from lance_core.fetch import ByteRange
from lance_core.io.answers import StoreReply, error_of
from lance_core.io.objects import connect
from lance_core.io.objects.options import ClientOptions
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

SECRETS = ("AKIDSECRET", "SESSIONTOKEN", "SASSECRET", "BEARERTOK", "GTOKEN", "referer")


@dataclass
class Servers:
    """The configured store, which sends everybody on, and what the other one was asked."""

    endpoint: str
    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    asked: list[str]
    elsewhere = ""
    code = 307
    protocol_version = "HTTP/1.1"

    def _go(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.elsewhere:
            self.send_response(self.code)
            self.send_header("Location", f"{self.elsewhere}/stolen")
        else:
            self.asked.append(f"{self.command} {self.path} {json.dumps(dict(self.headers)).lower()}")
            self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _go

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def _served(**fields: Any) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), fields)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.fixture(params=[301, 307])
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    asked: list[str] = []
    with _served(asked=asked) as other, _served(elsewhere=f"http://localhost:{other}", code=request.param) as port:
        yield Servers(f"http://127.0.0.1:{port}", asked)


def _options(kind: str, endpoint: str) -> dict[str, str]:
    return {
        "s3": {"aws_endpoint": endpoint, "aws_access_key_id": "AKIDSECRET", "aws_secret_access_key": "x" * 9,
               "aws_session_token": "SESSIONTOKEN", "aws_region": "x"},
        "az": {
            "azure_storage_connection_string": f"AccountName=a;BlobEndpoint={endpoint};SharedAccessSignature=sig=SASSECRET"
        },
        "gs": {"google_storage_token": "GTOKEN", "google_endpoint": endpoint},
    }[kind]  # fmt: skip


def _verbs(store: Store) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: store.get("a.json"),
        "ranges": lambda: store.get_ranges("data/x", [ByteRange(0, 2)]),
        "size": lambda: store.size("x"),
        "put": lambda: store.put("x", b"1"),
        "put if absent": lambda: store.put_if_absent("x", b"1"),
        "list": lambda: list(store.list("")),
        "delete": lambda: store.delete("x"),
    }


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("kind", ["s3", "az", "gs"])
def test_nothing_goes_to_another_host(servers: Servers, kind: str, engine: str) -> None:
    """obstore took the session token along, and as the referrer the address with its signature; aiohttp the token."""
    given = {"store_engine": engine, "client_max_retries": "0", "client_retry_timeout": "1", "timeout": "5s"}
    if (kind, engine) == ("gs", "fsspec"):
        given |= {"skip_signature": "true", "google_storage_token": ""}  # gcsfs asks Google first whether a token is one
    store = resolve_store(f"{kind}://b/t", {**_options(kind, servers.endpoint), **given})
    for verb, action in _verbs(store).items():
        with pytest.raises(LanceError) as told:
            action()
        assert isinstance(told.value, StoreRefusedError), (verb, told.value)
        assert "the address that answers" in str(told.value), verb
        assert not [word for word in SECRETS[:-1] if word in str(told.value)]
    assert servers.asked == []


def test_the_hosts_that_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the options; where keys are asked for, those that give them; behind a proxy of the user's, as it says."""
    monkeypatch.setattr(connect.urllib.request, "getproxies", lambda: {"no": "x"})
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    keys = {"access_key_id": "a"}
    own = connect.fenced(ClientOptions("s3", keys, {}, endpoint="http://[::1]:9000/x"))
    assert own == {"proxy_url": "http://127.0.0.1:0", "proxy_excludes": "::1"}
    asking = connect.fenced(ClientOptions("s3", {}, {}, endpoint="https://minio.example"))
    assert {"minio.example", "amazonaws.com", "169.254.169.254"} <= set(asking["proxy_excludes"].split(","))
    assert connect.fenced(ClientOptions("s3", keys, {"timeout": "1s"})) == {"timeout": "1s"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://other.example:1")
    assert connect.fenced(ClientOptions("s3", keys, {}))["proxy_excludes"] == "other.example"
    proxied = {"proxy_url": "http://proxy:3128"}
    assert connect.fenced(ClientOptions("s3", keys, proxied, endpoint="http://a")) == proxied
    monkeypatch.setattr(connect.urllib.request, "getproxies", lambda: {"https": "http://proxy"})
    assert connect.fenced(ClientOptions("s3", keys, {}, endpoint="http://a")) == {}


def test_a_bucket_of_another_region_is_named_with_its_cure() -> None:
    for answer in (StoreReply("moved", "PermanentRedirect", 301), StoreReply("moved", "", 307)):
        error = error_of(answer, "x", uri="s3://b/t", redact=str)
        assert isinstance(error, StoreRefusedError)
        assert "aws_region" in str(error)
