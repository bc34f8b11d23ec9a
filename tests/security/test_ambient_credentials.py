"""What a process finds in its environment is used for places that its user names, never for what only a table names."""

from __future__ import annotations

import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.refs.clones import CLONES, cloned_versions
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from tests.security.test_claims import rewrite

AMBIENT = "AKIAAMBIENT"
PLACES = ("s3://other/t", "gs://other/t", "abfss://c@other.dfs.core.windows.net/t", "az://other/t")


class _Listener:
    """A web server that plays every store and every metadata service: whoever asks it is noted and finds nothing."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        heard = self.heard

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                heard.append((self.path, self.headers.get("Authorization", "")))
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_HEAD = do_PUT = do_POST = _answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def listening() -> Iterator[_Listener]:
    listener = _Listener()
    thread = threading.Thread(target=listener.server.serve_forever, daemon=True)
    thread.start()
    yield listener
    listener.server.shutdown()
    thread.join()
    listener.server.server_close()


@pytest.fixture
def ambient(listening: _Listener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str]]:
    """Credentials of every cloud in the environment, and all of their services at the listener; what it hears."""
    web = f"http://{listening.host}"
    google = tmp_path / "google.json"
    google.write_text(json.dumps({
        "type": "authorized_user", "client_id": AMBIENT, "client_secret": AMBIENT, "refresh_token": AMBIENT,
    }))  # fmt: skip
    for name, value in {
        "AWS_ACCESS_KEY_ID": AMBIENT, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": web,
        "AWS_ENDPOINT": web, "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_SERVICE_ENDPOINT": web,
        "AWS_METADATA_ENDPOINT": web, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{web}/container",
        "GOOGLE_APPLICATION_CREDENTIALS": str(google), "GOOGLE_BASE_URL": web, "STORAGE_EMULATOR_HOST": web,
        "GCE_METADATA_HOST": listening.host, "GCE_METADATA_IP": listening.host,
        "AZURE_STORAGE_ACCOUNT_NAME": "other", "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0", "AZURE_CLIENT_ID": AMBIENT,
        "AZURE_CLIENT_SECRET": "secret", "AZURE_TENANT_ID": "t", "AZURE_AUTHORITY_HOST": web, "IDENTITY_ENDPOINT": web,
        "MSI_ENDPOINT": web, "IDENTITY_HEADER": "x",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    listening.heard.clear()
    return listening.heard


class _Sockets:
    """Addresses that this process connects to while it is on: an audit hook cannot be taken back, so it is made once."""

    def __init__(self) -> None:
        self.on = False
        self.found: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in ("socket.connect", "socket.getaddrinfo"):
            self.found.append(f"{event} {arguments[-1] if event == 'socket.connect' else arguments[0]}")


@pytest.fixture(scope="module")
def all_sockets() -> _Sockets:
    return _Sockets()


@pytest.fixture
def sockets(all_sockets: _Sockets) -> Iterator[_Sockets]:
    all_sockets.found, all_sockets.on = [], True
    yield all_sockets
    all_sockets.on = False


def _table(tmp_path: Path, base: str) -> str:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(3)}), uri)

    def lead_there(message: Any) -> None:
        message.base_paths.add(id=1, path=base, name="there")
        message.fragments[0].files[0].base_id = 1

    rewrite(uri, lead_there)
    return uri


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("base", PLACES)
def test_what_only_a_table_names_is_asked_neither_with_nor_for_credentials(
    tmp_path: Path, ambient: list[tuple[str, str]], sockets: _Sockets, base: str, engine: str
) -> None:
    uri = _table(tmp_path, base)
    with pytest.raises(LanceError, match="allowed_bases"):
        lance_core.dataset(uri, storage_options={"store_engine": engine}).to_table()
    note = Path(uri) / CLONES / "planted.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"uri": base, "version": 1}))
    os.utime(note, (1, 1))
    # What cannot be looked at counts as alive: a cleanup keeps the version.
    assert cloned_versions(resolve_store(uri), {"store_engine": engine}) == {1: base}
    assert (ambient, sockets.found) == ([], [])


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_what_the_caller_allows_is_asked_with_what_the_environment_has(
    tmp_path: Path, ambient: list[tuple[str, str]], engine: str
) -> None:
    # The other half of the fence: were the place not fenced, the key of the environment would go there.
    uri = _table(tmp_path, "s3://other/t")
    web = os.environ["AWS_ENDPOINT_URL"]
    options = {"store_engine": engine, "allowed_bases": "s3://other/t", "endpoint": web, "client_max_retries": "0"}
    with pytest.raises(LanceError):
        lance_core.dataset(uri, storage_options=options).to_table()
    assert any("/other/" in path and AMBIENT in who for path, who in ambient)
