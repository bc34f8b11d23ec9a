"""HDFS through pyarrow's file system and fsspec's wrapper around it, with a local folder in the place of the cluster.

There is no conditional put there: such a place is read and staged to, but no commit without an external manifest store.
"""

from __future__ import annotations

import ctypes.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import lance
import pyarrow as pa
import pyarrow.fs as arrow_fs
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper, HadoopFileSystem

import lance_core
from lance_core.dataset.handle.write_fragments import write_fragments
from lance_core.errors import InputError, NotFoundError, PreconditionError, StoreError
from lance_core.io.remote.store import RemoteStore, open_remote
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from tests.commit.commit_support import paths
from tests.io.store_contract import StoreContract

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """The folder that stands for the cluster; every `hdfs://` leads there."""
    root = tmp_path / "cluster"
    root.mkdir()
    renaming = threading.Lock()

    class StandIn(ArrowFSWrapper):  # type: ignore[misc]
        protocol = "hdfs"

        def __init__(self, **arguments: Any) -> None:
            super().__init__(fs=arrow_fs.SubTreeFileSystem(str(root), arrow_fs.LocalFileSystem()))

        def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **arguments: Any) -> Any:
            if mode == "wb":  # as HDFS does
                self.makedirs(self._parent(path), exist_ok=True)
            return super()._open(path, mode, block_size, **arguments)

        def mv(self, path1: str, path2: str, **arguments: Any) -> None:
            with renaming:  # one step there
                if self.exists(path2):  # as WebHDFS does
                    raise FileExistsError(path2)
                super().mv(path1, path2, **arguments)

    fsspec.register_implementation("hdfs", StandIn, clobber=True)
    StandIn.clear_instance_cache()
    yield root
    fsspec.register_implementation("hdfs", HadoopFileSystem, clobber=True)


class TestHdfs(StoreContract):
    @pytest.fixture
    def store(self, cluster: Path, tmp_path: Path) -> Store:
        options = {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}
        return resolve_store("hdfs://namenode/lake/t.lance", options)


def test_a_commit_is_refused(cluster: Path) -> None:
    uri = "hdfs://namenode:8020/lake/t.lance"
    with pytest.raises(PreconditionError, match="external manifest store") as caught:
        lance_core.write_dataset(ROWS, uri)
    assert uri in str(caught.value)
    assert not [path for path in (cluster / "lake").rglob("*") if path.is_file()], "what was staged for it is gone"
    store = resolve_store(uri)
    assert not store.has_put_if_absent
    with pytest.raises(PreconditionError):
        store.put_if_absent("a", b"x")


def test_with_an_external_manifest_store(cluster: Path, tmp_path: Path) -> None:
    uri = "hdfs://namenode/lake/t.lance"
    options = {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}
    lance_core.write_dataset(ROWS, uri, storage_options=options)
    lance_core.write_dataset(ROWS, uri, mode="append", storage_options=options)
    dataset = lance_core.dataset(uri, storage_options=options)
    dataset.delete("id = 2")
    assert lance_core.dataset(uri, storage_options=options).to_table()["id"].to_pylist() == [1, 3, 1, 3]
    assert lance_core.dataset(uri).count_rows() == 4, "reading needs no manifest store"
    official = lance.dataset(str(cluster / "lake" / "t.lance"))
    official.validate()  # type: ignore[no-untyped-call]
    assert (official.version, official.count_rows()) == (3, 4)
    with pytest.raises(PreconditionError, match="external manifest store"):
        lance_core.write_dataset(ROWS, uri, mode="append")
    assert lance_core.dataset(uri).version == 3


def test_staging_needs_no_conditional_put(cluster: Path, tmp_path: Path) -> None:
    uri = "hdfs://namenode/lake/t.lance"
    options = {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}
    lance_core.write_dataset(ROWS, uri, storage_options=options)
    transaction: Any = write_fragments(ROWS, uri, return_transaction=True)
    lance_core.LanceDataset.commit_batch(uri, [transaction], storage_options=options)
    assert lance_core.dataset(uri).count_rows() == 6


def test_a_file_being_written_is_not_seen(cluster: Path) -> None:
    store = resolve_store("hdfs://namenode/lake")
    writer = store.open_writer("big")
    writer.write(bytes(20 << 20))
    writer.write(bytes(20 << 20))
    assert list(store.list("")) == []
    assert len(list(store.list_unfinished(""))) == 1
    writer.close()
    assert [(entry.path, entry.size) for entry in store.list("")] == [("big", 40 << 20)]
    forgotten = store.open_writer("other")
    forgotten.write(bytes(20 << 20))
    forgotten.abort()
    assert paths(store) == {"big"}
    with pytest.raises(NotFoundError):
        store.get("other")


def test_small_objects_are_seen_whole(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = resolve_store("hdfs://namenode/lake")
    store.put("a", b"one")
    seen: list[bytes] = []
    inner = ArrowFSWrapper.pipe_file

    def pipe_file(self: Any, path: str, value: bytes, **arguments: Any) -> None:
        inner(self, path, value[: len(value) // 2], **arguments)
        seen.append(bytes(store.get("a")))
        inner(self, path, value, **arguments)

    monkeypatch.setattr(ArrowFSWrapper, "pipe_file", pipe_file)
    store.put("a", b"another")
    assert (seen, bytes(store.get("a"))) == ([b"one"], b"another")
    assert paths(store) == {"a"}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("hdfs://namenode:8020/t", {"host": "namenode", "port": 8020}),
        ("hdfs://etl@namenode/t", {"host": "namenode", "user": "etl"}),
        ("hdfs:///t", {}),
        ("viewfs://cluster/t", {"host": "viewfs://cluster"}),
    ],
)
def test_who_is_asked(uri: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def filesystem(protocol: str, **arguments: Any) -> Any:
        asked.append(arguments)
        raise NotFoundError("enough")

    monkeypatch.setattr(fsspec, "filesystem", filesystem)
    store = open_remote(uri, {"kerb_ticket": "/tmp/ticket"})
    assert isinstance(store, RemoteStore)
    with pytest.raises(NotFoundError):
        store.get("a")
    assert asked == [{"use_listings_cache": False, "kerb_ticket": "/tmp/ticket", **expected}]


@pytest.mark.parametrize("uri", ["hdfs://user:secret@namenode/t", "hdfs://namenode:port/t"])
def test_uris_that_are_refused(uri: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_store(uri)
    assert "secret" not in str(caught.value)


LOADING = "Unable to load libjvm dlopen(/usr/lib/jvm/default-java/libjvm.so) failed: no such file" + " dlopen(x) failed" * 99


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without anything of Hadoop."""
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR", "CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)


def _refuse_to_connect(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    def filesystem(protocol: str, **arguments: Any) -> Any:
        raise OSError(message)

    monkeypatch.setattr(fsspec, "filesystem", filesystem)


@pytest.mark.parametrize(
    ("message", "java"), [(LOADING, "libjvm.so (JAVA_HOME is not set), "), ("Prior attempt to load libhdfs failed", "")]
)
def test_a_machine_without_hadoop_is_told_what_it_lacks(
    bare_machine: None, monkeypatch: pytest.MonkeyPatch, message: str, java: str
) -> None:
    """Arrow's own words are a hundred paths, and from the second time on none."""
    _refuse_to_connect(monkeypatch, message)
    uri = "hdfs://namenode:8020/lake/t.lance"
    with pytest.raises(InputError) as caught:
        lance_core.dataset(uri)
    lacks = f"{java}libhdfs.so (HADOOP_HOME is not set), Hadoop's jars (CLASSPATH is not set)"
    assert f"{uri} cannot be opened, because this machine lacks {lacks}" in str(caught.value)
    assert "JAVA_HOME, HADOOP_HOME and CLASSPATH" in str(caught.value)
    assert "webhdfs://" in str(caught.value)
    assert len(str(caught.value)) < 900


def test_each_part_that_is_missing_is_named(bare_machine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _refuse_to_connect(monkeypatch, "HDFS connection failed, errno: 255")
    jvm, client = tmp_path / "java/lib/server/libjvm.so", tmp_path / "hadoop/lib/native/libhdfs.so"
    store = resolve_store("hdfs://namenode/lake")

    def said() -> str:
        with pytest.raises(InputError) as caught:
            store.get("a")
        return str(caught.value).partition("lacks ")[2].partition(" (Arrow")[0]

    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "hadoop"))
    monkeypatch.setenv("CLASSPATH", "/opt/other.jar")
    client_lacks = f"libhdfs.so (HADOOP_HOME is {tmp_path}/hadoop)"
    assert said() == f"libjvm.so (JAVA_HOME is {tmp_path}/java), {client_lacks}, Hadoop's jars (CLASSPATH names none)"
    for file in (jvm, client):
        file.parent.mkdir(parents=True)
        file.touch()
    assert said() == "Hadoop's jars (CLASSPATH names none)"


def test_a_cluster_that_is_down_is_no_fault_of_the_machine(
    bare_machine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _refuse_to_connect(monkeypatch, "HDFS connection failed, errno: 111 (Connection refused)")
    client = tmp_path / "libhdfs.so"
    client.touch()
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", str(tmp_path))
    monkeypatch.setenv("CLASSPATH", "/opt/hadoop/hadoop-common-3.5.0.jar")
    with pytest.raises(StoreError, match="Connection refused"):
        resolve_store("hdfs://namenode/lake", {"client_max_retries": "0"}).get("a")


def test_arrow_itself_on_a_machine_without_hadoop() -> None:
    program = "import lance_core; lance_core.dataset('hdfs://127.0.0.1:9/t')"
    if ctypes.util.find_library("hdfs"):
        pytest.skip("this machine has libhdfs")
    done = subprocess.run([sys.executable, "-c", program], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert "InputError: hdfs://127.0.0.1:9/t cannot be opened, because this machine lacks" in done.stderr
