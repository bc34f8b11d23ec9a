"""Streamed files whose sync is left for later: nothing is published before they are on the disk."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import StoreError
from lance_core.io.local.deferred_sync import syncing_later
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore


def _name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


def _stream(store: LocalStore, path: str) -> None:
    writer = store.open_writer(path)
    writer.write(b"rows")
    writer.close()


def test_the_link_waits_for_what_was_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, link, slow = os.fsync, os.link, threading.Event()
    done: list[str] = []

    def fsync(descriptor: int) -> None:
        name = _name_of(descriptor)
        if name == "a.lance":
            assert slow.wait(10)
        sync(descriptor)
        done.append("temporary" if name.startswith(".") else name)

    def noted_link(source: str, target: str) -> None:
        done.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", noted_link)
    with syncing_later(LocalStore(tmp_path / "t")) as store:
        assert isinstance(store, LocalStore)
        _stream(store, "data/a.lance")
        assert bytes(store.get("data/a.lance")) == b"rows"  # named, but not on the disk yet
        threading.Timer(0.2, slow.set).start()
        store.put_if_absent("_versions/1.manifest", b"names a.lance")
    before = done[: done.index("link")]
    assert {"a.lance", "data", "temporary"} <= set(before)
    assert done.index("_versions", done.index("link")) > 0


def test_what_did_not_reach_the_disk_is_never_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        if _name_of(descriptor).endswith("a.lance"):
            raise OSError(5, "no")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with syncing_later(LocalStore(tmp_path / "t")) as store:
        _stream(store, "data/a.lance")  # type: ignore[arg-type]
        for _ in range(2):  # a second try must not slip through
            with pytest.raises(StoreError):
                store.put_if_absent("_versions/1.manifest", b"names a.lance")
        assert store.list_names("_versions/") == []
        assert [*store.list_unfinished("")] == []


def test_a_write_whose_data_cannot_be_synced_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1, 2]})
    lance_core.write_dataset(rows, uri)
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        if _name_of(descriptor).endswith(".lance"):
            raise OSError(28, "disk full")
        sync(descriptor)

    before = {path for path in (tmp_path / "t.lance").rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError):
            lance_core.write_dataset(rows, uri, mode="append")
    assert lance_core.dataset(uri).version == 1
    assert {path for path in (tmp_path / "t.lance").rglob("*") if path.is_file()} == before
    assert lance_core.write_dataset(rows, uri, mode="append").count_rows() == 4


def test_other_stores_are_their_own() -> None:
    memory = MemoryStore("later")
    with syncing_later(memory) as store:
        assert store is memory
