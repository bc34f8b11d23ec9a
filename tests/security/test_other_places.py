"""Where a table may lead its reader: base paths, clones and external blobs, and whose credentials go along."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array

import lance_core
from lance_core.commit.base_paths import open_base
from lance_core.dataset.refs.clones import CLONES, cloned_versions
from lance_core.errors import CorruptFileError, InputError, LanceError
from lance_core.format.manifest import BasePath
from lance_core.io import resolve
from lance_core.io.resolve import resolve_store
from lance_core.io.scope import is_allowed, is_same_scope, scope_of

SECRETS = {
    "sas_token": "sig=hunter2",
    "bearer_token": "hunter2",
    "account_key": "hunter2",
    "aws_secret_access_key": "hunter2",
}
AZURE = {"account_name": "ours", "sas_token": "sig=hunter2"}
PAIRS = [
    ("abfss://c@ours.dfs.core.windows.net/t", "abfss://c@evil.dfs.core.windows.net/t"),
    ("az://c/t", "abfss://c@evil.dfs.core.windows.net/t"),
    ("az://c/t", "abfss://c@evil.example.org/t"),
    ("s3://lake/t", "s3://other/t"),
    ("s3://lake/t", "gs://lake/t"),
    ("gs://lake/t", "gs://other/t"),
    ("s3://lake/t", "http://lake/t"),
    ("/data/t", "s3://lake/t"),
    ("/data/t", "abfss://c@evil.dfs.core.windows.net/t"),
    ("/data/t", "http://127.0.0.1:9/t"),
    ("hdfs://one:8020/t", "hdfs://two:8020/t"),
]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """What would be opened, and with which options; nothing is."""
    found: list[tuple[str, dict[str, str]]] = []

    def note(uri: Any, options: Any = None) -> Any:
        found.append((str(uri), dict(options or {})))
        return resolve_store("memory://nothing/t")

    monkeypatch.setattr("lance_core.commit.base_paths.resolve_store", note)
    return found


@pytest.mark.parametrize(("table", "base"), PAIRS)
def test_neither_credentials_nor_a_request_go_to_another_account(table: str, base: str, opened: list[Any]) -> None:
    with pytest.raises(InputError, match="allowed_bases") as caught:
        open_base(BasePath(id=1, path=base), table_uri=table, storage_options={**SECRETS, **AZURE})
    assert opened == []
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("table", "base"), PAIRS)
def test_a_caller_may_allow_another_account(table: str, base: str, opened: list[Any]) -> None:
    options = {"sas_token": "sig=hunter2", "allowed_bases": f"s3://unrelated, {base}"}
    open_base(BasePath(id=1, path=base), table_uri=table, storage_options=options)
    assert opened.pop()[1]["sas_token"] == "sig=hunter2"
    own = {"sas_token": "sig=hunter2", "base_1.region": "eu"}
    open_base(BasePath(id=1, path=base), table_uri=table, storage_options=own)
    assert opened.pop()[1] == {"region": "eu"}


@pytest.mark.parametrize(
    ("table", "base"),
    [("s3://lake/a", "s3a://lake/b"), ("az://c/a", "abfss://d@ours.dfs.core.windows.net/b"), ("/a", "/b")],
)
def test_credentials_are_shared_within_an_account(table: str, base: str, opened: list[Any]) -> None:
    open_base(BasePath(id=1, path=base), table_uri=table, storage_options=AZURE)
    assert opened.pop()[1] == AZURE


def test_scopes() -> None:
    assert scope_of("az://c/t", {"connection_string": "A=1;AccountName=Ours;AccountKey=x"}) == ("az", "ours")
    assert not is_same_scope("s3://[", "s3://x")
    assert is_allowed("s3://a/b/c", {"allowed_bases": "s3://a/b"})
    assert not is_allowed("s3://a/bc", {"allowed_bases": "s3://a/b"})
    assert not is_allowed("s3://a/b/../c", {"allowed_bases": "s3://a/b"})


def test_a_remote_table_names_no_folder_of_this_machine_whatever_is_allowed() -> None:
    with pytest.raises(CorruptFileError):
        open_base(BasePath(1, "/etc"), table_uri="s3://lake/t", storage_options={"allowed_bases": "/etc"})


def test_a_clone_note_leads_no_cleanup_to_another_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1]}), uri)
    folder = Path(uri) / CLONES
    folder.mkdir(parents=True)
    notes = ["az://x@evil/t", "s3://evil/t", "http://127.0.0.1:9/t", "relative"]
    for number, place in enumerate(notes):
        path = folder / f"{number}.json"
        path.write_text(json.dumps({"uri": place, "version": number}))
        os.utime(path, (1, 1))
    asked: list[str] = []
    real = resolve._resolve
    monkeypatch.setattr(resolve, "_resolve", lambda uri, options: asked.append(str(uri)) or real(uri, options))
    store = real(uri, {})
    # What cannot be looked at counts as alive: a cleanup keeps the version.
    assert cloned_versions(store, {"account_key": "hunter2"}) == dict(enumerate(notes))
    assert asked == []


@pytest.mark.parametrize(
    "note", [{}, {"uri": 3, "version": 1}, {"uri": "/x", "version": "1"}, {"uri": "/x", "version": True}]
)
def test_a_damaged_clone_note_is_a_typed_error(tmp_path: Path, note: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1]}), uri)
    (Path(uri) / CLONES).mkdir(parents=True)
    (Path(uri) / CLONES / "x.json").write_text(json.dumps(note))
    with pytest.raises(CorruptFileError):
        cloned_versions(resolve_store(uri))


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A loopback HTTP server and the paths it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"top")

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_address[1]}", asked
    served.shutdown()
    served.server_close()


def _table(*uris: str) -> pa.Table:
    return pa.table({"id": range(len(uris)), "b": blob_array([Blob.from_uri(uri) for uri in uris])})


@pytest.fixture
def media(tmp_path: Path) -> Path:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a.bin").write_bytes(b"a film")
    (tmp_path / "secret.txt").write_bytes(b"hunter2")
    return tmp_path / "media"


def test_an_external_blob_outside_of_the_bases_is_not_read(tmp_path: Path, media: Path) -> None:
    uri = str(tmp_path / "t.lance")
    secret = f"file://{tmp_path}/secret.txt"
    lance.write_dataset(_table(secret), uri, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    with pytest.raises(InputError, match="allow_external_blob_outside_bases"):
        lance_core.dataset(uri).take_blobs("b", indices=[0])
    allowed = lance_core.dataset(uri, storage_options={"allow_external_blob_outside_bases": "true"})
    assert [file.read() for file in allowed.take_blobs("b", indices=[0])] == [b"hunter2"]
    below = lance_core.dataset(uri, storage_options={"allowed_bases": f"file://{tmp_path}"})
    assert [file.read() for file in below.take_blobs("b", indices=[0])] == [b"hunter2"]
    # The reference itself is kept by whatever rewrites the table's rows.
    lance.write_dataset(_table(secret), uri, mode="append", allow_external_blob_outside_bases=True)
    lance_core.dataset(uri).optimize.compact_files()
    assert {row["b"]["uri"] for row in lance_core.dataset(uri).to_table().to_pylist()} == {secret}


def test_no_blob_makes_a_reader_ask_a_web_server(tmp_path: Path, media: Path, server: tuple[str, list[str]]) -> None:
    where, asked = server
    uri = str(tmp_path / "t.lance")
    allow = {"allow_external_blob_outside_bases": "true"}
    lance_core.write_dataset(
        _table(f"{where}/latest/meta-data"), uri, data_storage_version="2.2", allow_external_blob_outside_bases=True
    )
    for options in (None, allow):
        with pytest.raises(InputError):
            lance_core.dataset(uri, storage_options=options).take_blobs("b", indices=[0])
    assert asked == []


def test_what_is_written_has_the_official_default(tmp_path: Path, media: Path) -> None:
    uri, inside = str(tmp_path / "t.lance"), f"file://{media}/a.bin"
    base = lance_core.DatasetBasePath(str(media), name="media")
    for bad in (f"file://{tmp_path}/secret.txt", f"file://{media}/../secret.txt", "http://127.0.0.1:9/x"):
        with pytest.raises(InputError, match="outside the registered base paths"):
            lance_core.write_dataset(_table(bad), uri, data_storage_version="2.2", initial_bases=[base])
    with pytest.raises(InputError):  # without bases none is inside
        lance_core.write_dataset(_table(inside), uri, data_storage_version="2.2")
    assert not list(Path(uri).rglob("*.lance"))
    lance_core.write_dataset(_table(inside), uri, data_storage_version="2.2", initial_bases=[base])
    for library in (lance, lance_core):
        assert [bytes(file.read()) for file in library.dataset(uri).take_blobs("b", indices=[0])] == [b"a film"]
    with pytest.raises(LanceError):
        lance_core.write_dataset(_table("s3://evil/x"), uri, mode="append")
    theirs = lance.dataset(uri).scanner(columns=["b"], blob_handling="blobs_descriptions").to_table().to_pylist()
    assert theirs == [{"b": {"kind": 3, "position": 0, "size": 0, "blob_id": 1, "blob_uri": "a.bin"}}]
