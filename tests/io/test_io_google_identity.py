"""A Google identity requests tokens in each process, and again before they expire."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lance_core.errors import InputError, LanceError, StoreError, StoreRefusedError
from lance_core.io import google_identity
from lance_core.io.google_identity import GoogleIdentity, identity_of
from lance_core.io.objects.connect import client_pool
from lance_core.io.objects.options import gcs_client
from lance_core.io.remote.errors import Retries
from lance_core.io.resolve import resolve_store

auth = pytest.importorskip("google.auth")
import google.auth.credentials  # noqa: E402
import google.auth.exceptions  # noqa: E402
import google.auth.impersonated_credentials  # noqa: E402

FEDERATED = json.dumps(
    {
        "type": "external_account", "audience": "//iam.googleapis.com/pools/p", "token_url": "http://127.0.0.1:9/token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": {"file": "/nowhere"},
    }
)  # fmt: skip


class Machine(google.auth.credentials.Credentials):
    """The machine's credentials: each renewal gives another token, which lasts `seconds`."""

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds, self.error, self.renewals = seconds, error, 0

    def refresh(self, request: Any) -> None:
        if self.error is not None:
            raise self.error
        self.renewals += 1
        self.token = f"token{self.renewals}"
        self.expiry = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None) + dt.timedelta(seconds=self.seconds)


class Bucket:
    """A server on loopback that has nothing, and keeps who asked."""

    def __init__(self) -> None:
        self.tokens: list[str | None] = []
        tokens = self.tokens

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                tokens.append(self.headers["Authorization"])
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    running = Bucket()
    thread = threading.Thread(target=running.server.serve_forever, daemon=True)
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


def _machine(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Machine:
    monkeypatch.setattr(auth, "default", lambda scopes: (machine, "project"))
    return machine


def test_a_token_is_requested_once_and_renewed_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _machine(monkeypatch, Machine(3600))
    identity = identity_of({"google_identity": "default"})
    assert identity is not None
    assert [identity()["token"] for _ in range(3)] == ["token1"] * 3
    assert identity()["expires_at"] > dt.datetime.now(dt.timezone.utc)
    machine.seconds = 60
    machine.refresh(None)
    assert identity()["token"] == "token3", "a minute is too little"
    elsewhere = pickle.loads(pickle.dumps(identity))
    assert elsewhere == identity
    assert elsewhere._held.credentials is None, "another process asks for itself"


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_store_that_stays_open_sends_new_tokens(bucket: Bucket, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, Machine(1))
    monkeypatch.setattr(google_identity, "_LONGEST_USE", dt.timedelta(0))
    options = {"google_identity": "default", "google_endpoint": bucket.url, "store_engine": engine, "allow_http": "true"}
    store = resolve_store(f"gs://of-{engine}/t", options)
    for _ in range(3):
        with pytest.raises(LanceError):
            store.get("x")
    sent = list(dict.fromkeys(bucket.tokens))
    assert sent[0] == "Bearer token1"
    assert len(sent) > 1, "the first token serves for ever"


def test_an_account_is_impersonated_through_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, made = _machine(monkeypatch, Machine(3600)), []

    def impersonate(source: Any, **arguments: Any) -> Machine:
        made.append((source, arguments))
        return Machine(3600)

    monkeypatch.setattr(google.auth.impersonated_credentials, "Credentials", impersonate)
    identity = identity_of({"google_impersonate": "a@p.example, b@p.example"})
    assert identity is not None
    assert identity()["token"] == "token1"
    ((source, arguments),) = made
    assert source is machine
    assert (arguments["target_principal"], arguments["delegates"]) == ("b@p.example", ["a@p.example"])


def test_a_configuration_of_federation_is_read_by_google_auth(tmp_path: Path) -> None:
    path = tmp_path / "federated.json"
    path.write_text(FEDERATED)
    for options in ({"google_service_account": str(path)}, {"google_service_account_key": FEDERATED}):
        client = gcs_client(options)
        assert isinstance(client.credentials, GoogleIdentity)
        assert client.config == {}
        assert type(client.credentials.credentials()).__module__ == "google.auth.identity_pool"
    key = json.dumps({"type": "service_account"})
    path.write_text(key)
    assert gcs_client({"google_service_account": str(path)}).credentials is None, "the engine reads it"
    assert gcs_client({"google_service_account_key": key}).credentials is None


def test_equal_identities_share_their_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [gcs_client({"google_identity": "default"}) for _ in range(2)]
    first, second = (client_pool().get("shared-by-identity", client, Retries(1, 1.0)) for client in made)
    assert first is second


def test_errors_are_typed_and_repeat_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = google.auth.exceptions.RefreshError("invalid_grant: the secret")  # type: ignore[no-untyped-call]
    _machine(monkeypatch, Machine(1, refused))
    with pytest.raises(StoreRefusedError) as caught:
        GoogleIdentity()()
    assert "secret" not in str(caught.value)
    lost = google.auth.exceptions.TransportError("lost")  # type: ignore[no-untyped-call]
    _machine(monkeypatch, Machine(1, lost))
    with pytest.raises(StoreError) as error:
        GoogleIdentity()()
    assert error.value.retryable
    with pytest.raises(InputError, match="has no credentials") as wrong:
        GoogleIdentity(key='{"type": "external_account", "private": "the secret"}')()
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"google_identity": "me"}, "is not known"),
        ({"google_identity": "default", "google_service_account": "/sa.json"}, "not given together"),
        ({"google_impersonate": "a@p.example", "google_storage_token": "t"}, "a token already"),
    ],
    ids=["name", "two", "token"],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        identity_of(options)
