"""Every store against the contract, and what is particular to each."""

from __future__ import annotations

import multiprocessing
import os
import uuid
from pathlib import Path

import pytest

from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, StoreError
from lance_core.fetch import ByteRange
from lance_core.io.local.store import LocalStore
from lance_core.io.local.writer import LocalWriter
from lance_core.io.memory import MemoryStore
from lance_core.io.resolve import resolve_store
from lance_core.io.wrapped import CountingStore
from tests.io.faulty_stores import FaultyStore, SlowStore
from tests.io.store_contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "not there yet")

    def test_dead_writer_leaves_a_hidden_file(self, store: LocalStore) -> None:
        writer = store.open_writer("data/x.lance")
        writer.write(b"half")
        assert list(store.list("")) == []
        (left,) = store.list_unfinished("data/")
        assert left.path.startswith("data/.x.lance.")
        store.delete(left.path)
        assert list(store.list_unfinished("")) == []

    @pytest.mark.parametrize("ends", ["close", "put", "put_if_absent"])
    def test_a_removed_unfinished_file_is_no_missing_object(
        self, store: LocalStore, ends: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def remove_it() -> None:
            for left in [*store.list_unfinished("")]:
                Path(store.uri, left.path).unlink()

        with pytest.raises(StoreError, match=r"'data/x' in .*: its unfinished file was removed") as caught:
            if ends == "close":
                writer = store.open_writer("data/x")
                remove_it()
                writer.close()
            else:
                finish = LocalWriter._finish
                monkeypatch.setattr(LocalWriter, "_finish", lambda *given, **named: (finish(*given, **named), remove_it()))
                getattr(store, ends)("data/x", b"x")
        assert caught.value.retryable
        assert not isinstance(caught.value, NotFoundError)
        assert caught.value.uri == store.uri

    def test_errors_name_the_place(self, store: LocalStore) -> None:
        with pytest.raises(NotFoundError, match="no object 'data/x' in ") as caught:
            store.get("data/x")
        assert caught.value.uri == store.uri

    def test_delete_drops_empty_folders(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("_indices/u/page.lance", b"x")
        store.delete("_indices/u/page.lance")
        assert not (Path(store.uri) / "_indices").exists()

    def test_unreadable_file_is_a_store_error(self, store: LocalStore) -> None:
        store.put("a/b", b"x")
        with pytest.raises(StoreError):
            store.put("a/b/c", b"below a file")

    def test_put_if_absent_across_processes(self, store: LocalStore) -> None:
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            won = pool.map(_try_to_win, [(store.uri, number) for number in range(16)])
        assert sum(won) == 1


def _try_to_win(arguments: tuple[str, int]) -> bool:
    uri, number = arguments
    try:
        LocalStore(uri).put_if_absent("prize", str(number).encode())
        return True
    except AlreadyExistsError:
        return False


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(uuid.uuid4().hex)


class TestCountingStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> CountingStore:
        return CountingStore(LocalStore(tmp_path))

    def test_counts(self, store: CountingStore) -> None:
        store.put("a", b"0123456789")
        store.child("sub").put("b", b"xy")
        assert store.counts.bytes_written == 12
        store.reset()
        store.get("a")
        store.get_ranges("a", [ByteRange(0, 2), ByteRange(5, 6)])
        assert (store.counts.calls, store.counts.requests, store.counts.ranges) == (2, 3, 2)
        assert store.counts.bytes_read == 13


class TestSlowStore(StoreContract):
    @pytest.fixture
    def store(self) -> SlowStore:
        return SlowStore(MemoryStore(uuid.uuid4().hex), seconds=0)


class TestFaultyStoreThatNeverFails(StoreContract):
    @pytest.fixture
    def store(self) -> FaultyStore:
        return FaultyStore(MemoryStore(uuid.uuid4().hex), fail_at=0)


def test_faulty_store_before_and_after() -> None:
    inner = MemoryStore(uuid.uuid4().hex)
    before = FaultyStore(inner, fail_at=1, when="before")
    with pytest.raises(StoreError):
        before.put("a", b"x")
    assert inner.list_names("") == []
    before.put("a", b"x")
    after = FaultyStore(inner, fail_at=2, when="after", matches=lambda name, path: name == "put")
    after.put("b", b"x")
    with pytest.raises(StoreError):
        after.child("c").put("d", b"x")
    assert bytes(inner.get("c/d")) == b"x"
    assert after.log == (("put", "b"), ("put", "d"))


def test_memory_roots_are_shared_by_name() -> None:
    name = uuid.uuid4().hex
    MemoryStore(name).put("t/a", b"1")
    assert bytes(resolve_store(f"memory://{name}/t").get("a")) == b"1"
    with pytest.raises(NotFoundError):
        MemoryStore(uuid.uuid4().hex).get("t/a")


def test_resolve_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in (tmp_path / "t x", str(tmp_path / "t x"), "t x", f"file://{tmp_path}/t%20x"):
        store = resolve_store(uri)
        assert isinstance(store, LocalStore)
        assert store.uri == os.fspath(tmp_path / "t x")


@pytest.mark.parametrize("uri", ["", "  ", "ftp://host/x", "file://other/machine"])
def test_resolve_refuses(uri: str) -> None:
    with pytest.raises(InputError):
        resolve_store(uri)


def test_unknown_option_names_near_matches_and_hides_the_value(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="aws_access_key_id") as caught:
        resolve_store(tmp_path, {"aws_acces_key_id": "hunter2"})
    assert "hunter2" not in str(caught.value)
    resolve_store(tmp_path, {"AWS_ACCESS_KEY_ID": "x", "timeout": "5s"})


def test_a_folder_that_others_remove_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, make, lost = LocalStore(str(tmp_path / "t")), os.mkdir, []

    def mkdir(path: str) -> None:
        if path.endswith("staged/5d2c") and len(lost) < 3:
            lost.append(path)
            # Another process deletes the last file of the folder above, and so the folder.
            Path(path).parent.rmdir()
        make(path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    store.put_if_absent("staged/5d2c/started.json", b"{}")
    assert (len(lost), bytes(store.get("staged/5d2c/started.json"))) == (3, b"{}")
