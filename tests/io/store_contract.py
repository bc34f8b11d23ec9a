"""What every store must do. A new store inherits this suite: subclass it and provide the `store` fixture."""

from __future__ import annotations

import threading

import pytest

from lance_core.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InputError,
    NotFoundError,
    StoreError,
    UnsupportedFeatureError,
)
from lance_core.fetch import ByteRange
from lance_core.io.limits import LIMIT_VARIABLE
from lance_core.io.store import Store

HOSTILE_PATHS = ["../up", "a/../../up", "/etc/passwd", "a/./b", "C:/windows", "a\\b", "", "a/", "a//b", "a\x00b"]


class StoreContract:
    """Tests against the fixture `store`, an empty store with put_if_absent."""

    def test_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)
        assert store.has_put_if_absent
        assert store.uri

    def test_put_then_get(self, store: Store) -> None:
        store.put("a/b/c.bin", b"hello")
        assert bytes(store.get("a/b/c.bin")) == b"hello"
        assert store.size("a/b/c.bin") == 5

    def test_put_replaces(self, store: Store) -> None:
        store.put("a", b"one")
        store.put("a", b"twice")
        assert bytes(store.get("a")) == b"twice"

    def test_empty_object(self, store: Store) -> None:
        store.put("empty", b"")
        assert bytes(store.get("empty")) == b""
        assert store.size("empty") == 0
        assert [bytes(x) for x in store.get_ranges("empty", [ByteRange(0, 0)])] == [b""]

    def test_a_whole_object_has_a_limit(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        store.put("_versions/1.manifest", b"x" * 11)
        monkeypatch.setenv(LIMIT_VARIABLE, "11")
        assert bytes(store.get("_versions/1.manifest")) == b"x" * 11
        monkeypatch.setenv(LIMIT_VARIABLE, "10")
        with pytest.raises(UnsupportedFeatureError, match=f"11 bytes.*10.*{LIMIT_VARIABLE}"):
            store.get("_versions/1.manifest")
        assert bytes(store.get_ranges("_versions/1.manifest", [ByteRange(0, 11)])[0]) == b"x" * 11

    def test_put_takes_memoryview(self, store: Store) -> None:
        store.put("a", memoryview(b"xhellox")[1:-1])
        assert bytes(store.get("a")) == b"hello"

    def test_missing(self, store: Store) -> None:
        store.put("folder/x", b"1")
        for call in (store.get, store.size, store.stat, lambda path: store.get_ranges(path, [ByteRange(0, 1)])):
            with pytest.raises(NotFoundError):
                call("nothing/here")
            with pytest.raises(NotFoundError):
                call("folder")

    def test_an_object_is_told_as_a_listing_tells_it(self, store: Store) -> None:
        store.put("folder/x", b"12345")
        (listed,) = store.list("folder/")
        found = store.stat("folder/x")
        assert (found.path, found.size) == ("folder/x", 5)
        assert listed.tag in (None, found.tag)
        assert int(found.modified) == int(listed.modified)

    def test_put_if_absent(self, store: Store) -> None:
        store.put_if_absent("v/1", b"first")
        with pytest.raises(AlreadyExistsError):
            store.put_if_absent("v/1", b"second")
        assert bytes(store.get("v/1")) == b"first"
        assert [entry.path for entry in store.list("")] == ["v/1"]
        assert list(store.list_unfinished("")) == []

    def test_put_if_absent_has_one_winner(self, store: Store) -> None:
        won: list[int] = []
        start = threading.Barrier(8)

        def race(number: int) -> None:
            start.wait()
            for turn in range(10):
                try:
                    store.put_if_absent(f"race/{turn}", f"{number}".encode() * 100)
                    won.append(turn)
                except AlreadyExistsError:
                    pass

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == list(range(10))
        assert all(len(set(bytes(store.get(f"race/{turn}")))) == 1 for turn in range(10))

    def test_copy_if_absent(self, store: Store) -> None:
        store.put("a", b"data")
        store.copy_if_absent("a", "sub/b")
        assert bytes(store.get("sub/b")) == b"data"
        with pytest.raises(AlreadyExistsError):
            store.copy_if_absent("a", "sub/b")
        with pytest.raises(NotFoundError):
            store.copy_if_absent("nothing", "c")

    def test_get_ranges_in_order(self, store: Store) -> None:
        data = bytes(range(256)) * 20
        store.put("r", data)
        ranges = [ByteRange(4000, 5120), ByteRange(0, 10), ByteRange(5, 7), ByteRange(100, 100), ByteRange(0, 5120)]
        assert [bytes(x) for x in store.get_ranges("r", ranges)] == [data[a:b] for a, b in ranges]
        assert list(store.get_ranges("r", [])) == []

    def test_range_beyond_the_end(self, store: Store) -> None:
        store.put("r", b"0123456789")
        for bad in (ByteRange(5, 11), ByteRange(11, 12), ByteRange(5, 1 << 60), ByteRange(1 << 60, (1 << 60) + 4)):
            with pytest.raises(CorruptFileError):
                store.get_ranges("r", [bad])

    def test_list(self, store: Store) -> None:
        for path in ("a/1", "a/2", "a/b/3", "ab/4", "5"):
            store.put(path, path.encode())
        assert sorted(entry.path for entry in store.list("")) == ["5", "a/1", "a/2", "a/b/3", "ab/4"]
        found = {entry.path: entry for entry in store.list("a/")}
        assert sorted(found) == ["a/1", "a/2", "a/b/3"]
        assert found["a/b/3"].size == 5
        assert found["a/b/3"].modified > 1.6e9
        assert list(store.list("nothing/")) == []

    def test_list_folders(self, store: Store) -> None:
        for path in ("a/b/1", "a/b/c/2", "a/d/3", "a/4", "e"):
            store.put(path, b"x")
        assert list(store.list_folders("a/")) == ["b", "d"]
        assert list(store.list_folders("a")) == ["b", "d"]
        assert list(store.list_folders("")) == ["a"]
        assert list(store.list_folders("nothing/")) == []

    def test_list_names(self, store: Store) -> None:
        for path in ("a/1", "a/2", "a/b/3", "ab/4"):
            store.put(path, b"x")
        assert sorted(store.list_names("a/")) == ["1", "2"]
        assert sorted(store.list_names("a")) == ["1", "2"]
        assert list(store.list_names("nothing/")) == []

    def test_delete(self, store: Store) -> None:
        store.put("a/1", b"x")
        store.delete("a/1")
        store.delete("a/1")
        store.delete("never/there")
        assert list(store.list("")) == []
        store.put("a/1", b"again")
        assert bytes(store.get("a/1")) == b"again"

    def test_writer(self, store: Store) -> None:
        writer = store.open_writer("w/file")
        writer.write(b"one ")
        writer.write(memoryview(b"two"))
        assert list(store.list("")) == []
        assert list(store.list_names("w")) == []
        with pytest.raises(NotFoundError):
            store.get("w/file")
        writer.close()
        writer.close()
        writer.abort()
        assert bytes(store.get("w/file")) == b"one two"
        assert list(store.list_unfinished("")) == []

    def test_writer_of_many_megabytes(self, store: Store) -> None:
        piece = bytes(range(256)) * 4096
        writer = store.open_writer("big")
        for _ in range(12):
            writer.write(piece)
        writer.close()
        assert store.size("big") == 12 << 20
        (middle,) = store.get_ranges("big", [ByteRange((5 << 20) - 3, (5 << 20) + 3)])
        assert bytes(middle) == piece[-3:] + piece[:3]

    def test_writer_aborted(self, store: Store) -> None:
        writer = store.open_writer("w/file")
        writer.write(b"x" * (6 << 20))
        writer.abort()
        writer.abort()
        assert list(store.list("")) == []
        assert list(store.list_unfinished("")) == []
        with pytest.raises(StoreError):
            writer.write(b"more")

    def test_child(self, store: Store) -> None:
        child = store.child("sub/folder")
        child.put("x", b"1")
        assert bytes(store.get("sub/folder/x")) == b"1"
        assert [entry.path for entry in child.list("")] == ["x"]
        assert child.uri.partition("?")[0].endswith("sub/folder")
        with pytest.raises(InputError):
            store.child("../up")

    @pytest.mark.parametrize("path", HOSTILE_PATHS)
    def test_hostile_paths(self, store: Store, path: str) -> None:
        store.put("a", b"x")
        calls = [
            lambda: store.get(path),
            lambda: store.size(path),
            lambda: store.put(path, b"x"),
            lambda: store.put_if_absent(path, b"x"),
            lambda: store.delete(path),
            lambda: store.open_writer(path),
            lambda: store.get_ranges(path, [ByteRange(0, 1)]),
        ]
        for call in calls:
            with pytest.raises(InputError):
                call()
        if ".." in path or path.startswith("/"):
            with pytest.raises(InputError):
                list(store.list(path))
            with pytest.raises(InputError):
                store.list_names(path)
