"""HDFS over HTTP, with a small server in the place of the name node and its data nodes; tests/cluster has real ones."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, PreconditionError, StoreError, StoreRefusedError
from lance_core.fetch import ByteRange
from lance_core.io.answers import TransientError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs import api
from lance_core.jobs.kinds import carry_out
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from tests.commit.commit_support import paths
from tests.io.store_contract import StoreContract
from tests.jobs.edit_support import identity
from tests.stores.webhdfs_server import WebHdfsServer, error

ROWS = pa.table({"id": [1, 2, 3]})
ONCE = {"client_max_retries": "0"}


@pytest.fixture
def server() -> Iterator[WebHdfsServer]:
    with WebHdfsServer() as found:
        yield found


@pytest.fixture
def uri(server: WebHdfsServer) -> str:
    return f"webhdfs://{server.address}/lake/t.lance"


class TestWebHdfs(StoreContract):
    @pytest.fixture
    def store(self, uri: str, tmp_path: Path) -> Store:
        return resolve_store(uri, {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"})


class TestHttpFs(StoreContract):
    """A gateway, which does not rename over what is there."""

    @pytest.fixture
    def store(self, server: WebHdfsServer, uri: str, tmp_path: Path) -> Store:
        server.is_gateway = True
        return resolve_store(uri, {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"})


def test_a_commit_is_refused(server: WebHdfsServer, uri: str) -> None:
    with pytest.raises(PreconditionError, match="external manifest store") as caught:
        lance_core.write_dataset(ROWS, uri)
    assert uri in str(caught.value)
    assert not server.files, "what was staged for it is gone"


def test_a_job_is_refused_before_it_writes(server: WebHdfsServer, uri: str) -> None:
    """Its rows could not be staged for good, however long it took to write them."""
    spec = AppendSpec(uri=uri, identity=identity(uri, "1"), source=SourceSpec(callable=f"{__name__}:rows"))
    with pytest.raises(PreconditionError, match=r"external manifest store"):
        carry_out(spec, LocalRunner())
    assert not server.files
    with pytest.raises(PreconditionError, match=r"external manifest store"), api.raising_driver_errors(spec, options={}):
        pytest.fail("submitted")


def rows() -> pa.Table:
    return ROWS


def test_an_object_is_replaced_in_one_step(server: WebHdfsServer, uri: str) -> None:
    store = resolve_store(uri)
    store.put("a", b"one")
    store.put("a", b"two")
    assert "DELETE" not in server.asked
    assert [*server.files] == ["/lake/t.lance/a"]
    assert server.files["/lake/t.lance/a"][0] == b"two"


@pytest.mark.parametrize("path", ["ü 雪/%41", "a=1/b#c", "a?b", "a+b&c"])
def test_names_as_they_are(server: WebHdfsServer, uri: str, path: str) -> None:
    store = resolve_store(uri)
    store.put(path, b"x")
    assert [*server.files] == [f"/lake/t.lance/{path}"]
    assert bytes(store.get(path)) == b"x"
    assert paths(store) == {path}


def test_what_a_data_node_refuses_is_no_content(server: WebHdfsServer, uri: str) -> None:
    store = resolve_store(uri, ONCE)
    store.put("a", b"x" * 20)
    server.answers["OPEN"] = (500, error("IOException", "Could not obtain block"))
    for read in (lambda: store.get("a"), lambda: store.get_ranges("a", [ByteRange(0, 20)])):
        with pytest.raises(TransientError, match="Could not obtain block"):
            read()


def test_fewer_bytes_than_the_file_has(server: WebHdfsServer, uri: str) -> None:
    store = resolve_store(uri, ONCE)
    store.put("a", b"x" * 20)
    server.answers["OPEN"] = (200, b"x" * 7)
    with pytest.raises(TransientError, match="7 of 20 bytes"):
        store.get("a")


@pytest.mark.parametrize("op", ["CREATE", "RENAME"])
def test_what_was_not_written_is_no_object(server: WebHdfsServer, uri: str, op: str) -> None:
    store = resolve_store(uri, ONCE)
    server.answers[op] = (500, b"<html>no</html>")
    with pytest.raises(StoreError):
        store.put("a", b"x")
    writer = store.open_writer("b")
    with pytest.raises(StoreError):
        writer.write(bytes(20 << 20))
        writer.write(bytes(20 << 20))
        writer.close()
    writer.abort()
    assert paths(store) == set()
    assert not [path for path in server.files if path.endswith(("/a", "/b"))]


def test_a_folder_that_cannot_be_listed_is_not_left_out(server: WebHdfsServer, uri: str) -> None:
    """A listing with less in it than there is would be taken for the truth."""
    store = resolve_store(uri, ONCE)
    store.put("folder/a", b"x")
    server.answers["LISTSTATUS"] = (403, error("AccessControlException", "Permission denied: user=etl"))
    with pytest.raises(StoreRefusedError, match="Permission denied"):
        list(store.list(""))


@pytest.mark.parametrize(
    ("status", "name", "expected"),
    [
        (403, "AccessControlException", StoreRefusedError),
        (403, "DSQuotaExceededException", StoreRefusedError),
        (403, "StandbyException", TransientError),
        (403, "RetriableException", TransientError),
        (503, "", TransientError),
        (400, "IllegalArgumentException", StoreError),
    ],
)
def test_what_nodes_answer(server: WebHdfsServer, uri: str, status: int, name: str, expected: type[StoreError]) -> None:
    server.answers["GETFILESTATUS"] = (status, error(name, "because") if name else b"<html>busy</html>")
    with pytest.raises(StoreError) as caught:
        resolve_store(uri, ONCE).size("a")
    assert type(caught.value) is expected
    assert name in str(caught.value)


def test_a_passing_failure_is_repeated(server: WebHdfsServer, uri: str) -> None:
    server.answers["GETFILESTATUS"] = (503, b"")
    with pytest.raises(TransientError):
        resolve_store(uri, {"client_max_retries": "2"}).size("a")
    assert server.asked == ["GETFILESTATUS"] * 3


def test_a_server_that_says_nothing() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        options: dict[str, Any] = {**ONCE, "request_timeout": "500ms"}
        store = resolve_store(f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/t", options)
        start = time.monotonic()
        with pytest.raises(TransientError):
            store.get("a")
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("uri", "options", "expected"),
    [
        ("webhdfs://namenode/t", {}, ("http://namenode:9870/webhdfs/v1/t/a", None)),
        ("webhdfs://etl@namenode:50070/t", {}, ("http://namenode:50070/webhdfs/v1/t/a", "etl")),
        ("webhdfs://namenode/t", {"hdfs_user": "etl"}, ("http://namenode:9870/webhdfs/v1/t/a", "etl")),
    ],
)
def test_who_is_asked(
    monkeypatch: pytest.MonkeyPatch, uri: str, options: dict[str, str], expected: tuple[str, str | None]
) -> None:
    asked: list[Any] = []

    def request(self: Any, method: str, url: str, *, params: Any, **_: Any) -> Any:
        asked.append((url, params.get("user.name")))
        raise ValueError("enough")

    monkeypatch.setattr("requests.Session.request", request)
    with pytest.raises(StoreError, match="enough"):
        resolve_store(uri, options).size("a")
    assert asked == [expected]


def test_without_requests(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("requests", "fsspec.implementations.webhdfs", "lance_core.io.remote.webhdfs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(InputError, match=r"package for webhdfs is not installed.*Install requests\."):
        lance_core.dataset(uri)


@pytest.mark.parametrize("name", ["kerb_ticket", "proxy_url"])
def test_options_that_it_has_not(uri: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"WebHDFS does not support.*{name}"):
        resolve_store(uri, {name: "/tmp/x"})
