"""Stores around stores: every call is forwarded through one method, where a wrapper sums, checks or counts.

::

    store = CountingStore(LocalStore(root)); ...; store.counts      Counts(calls=2, requests=3, bytes_read=4096, ...)

Each wrapper is a Store itself and shares its state with the stores that its `child` makes. The counts of a scan's statistics
and the checksums of index files are made with them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from lance_core.fetch import Buffer, ByteRange
from lance_core.io.store import Store, StoreEntry, StoreWriter

T = TypeVar("T")


class WrappedStore:
    """Forwards every call of the protocol through `_call(name, path, action)`, which subclasses override."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def uri(self) -> str:
        """The inner store's uri."""
        return self.inner.uri

    @property
    def has_put_if_absent(self) -> bool:
        """As the inner store."""
        return self.inner.has_put_if_absent

    @property
    def is_local(self) -> bool:
        """As the inner store."""
        return self.inner.is_local

    @property
    def is_wide(self) -> bool:
        """As the inner store."""
        return self.inner.is_wide

    def get(self, path: str) -> Buffer:
        """Forwarded."""
        return self._call("get", path, lambda: self.inner.get(path))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """Forwarded."""
        return self._call("get_ranges", path, lambda: self.inner.get_ranges(path, ranges))

    def size(self, path: str) -> int:
        """Forwarded."""
        return self._call("size", path, lambda: self.inner.size(path))

    def stat(self, path: str) -> StoreEntry:
        """Forwarded."""
        return self._call("stat", path, lambda: self.inner.stat(path))

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Forwarded."""
        self._call("put", path, lambda: self.inner.put(path, data, durable=durable))

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Forwarded."""
        self._call("put_if_absent", path, lambda: self.inner.put_if_absent(path, data, durable=durable))

    def copy_if_absent(self, source: str, target: str) -> None:
        """Forwarded."""
        self._call("copy_if_absent", target, lambda: self.inner.copy_if_absent(source, target))

    def open_writer(self, path: str) -> StoreWriter:
        """Forwarded; the writer's `write` and `close` go through `_call` too."""
        return _WrappedWriter(self, path, self._call("open_writer", path, lambda: self.inner.open_writer(path)))

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Forwarded; the whole listing is one call."""
        return iter(self._call("list", prefix, lambda: tuple(self.inner.list(prefix))))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Forwarded."""
        return iter(self._call("list_unfinished", prefix, lambda: tuple(self.inner.list_unfinished(prefix))))

    def list_names(self, folder: str) -> Sequence[str]:
        """Forwarded."""
        return self._call("list_names", folder, lambda: self.inner.list_names(folder))

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        return self._call("list_folders", folder, lambda: self.inner.list_folders(folder))

    def delete(self, path: str) -> None:
        """Forwarded."""
        self._call("delete", path, lambda: self.inner.delete(path))

    def child(self, path: str) -> Store:
        """The same wrapper around the child."""
        return self._around(self.inner.child(path))

    def _around(self, inner: Store) -> WrappedStore:
        raise NotImplementedError

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        raise NotImplementedError


class _WrappedWriter:
    def __init__(self, store: WrappedStore, path: str, inner: StoreWriter) -> None:
        self._store = store
        self._path = path
        self._inner = inner

    def write(self, data: Buffer) -> None:
        self._store._call("write", self._path, lambda: self._inner.write(data))

    def close(self) -> None:
        self._store._call("close", self._path, self._inner.close)

    def abort(self) -> None:
        self._inner.abort()


@dataclass
class Counts:
    """What went through a CountingStore. `requests` is what a remote store would send: one per range, one per other call."""

    calls: int = 0
    requests: int = 0
    ranges: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    by_name: Counter[str] = field(default_factory=Counter)
    paths: set[str] = field(default_factory=set)


class CountingStore(WrappedStore):
    """Counts calls, requests, ranges and bytes; `reset()` starts again."""

    def __init__(self, inner: Store, *, shared: CountingStore | None = None) -> None:
        super().__init__(inner)
        self._shared: CountingStore = self if shared is None else shared
        self._counts = Counts()
        self._lock = threading.Lock()

    @property
    def counts(self) -> Counts:
        """What was counted since the last reset, children included."""
        return self._shared._counts

    def reset(self) -> None:
        """Count from zero."""
        self._shared._counts = Counts()

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """Counts one request per range."""
        with self._shared._lock:
            self.counts.requests += len(ranges) - 1
            self.counts.ranges += len(ranges)
        return super().get_ranges(path, ranges)

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Counts the bytes written."""
        self._add_written(len(data))
        super().put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Counts the bytes written."""
        self._add_written(len(data))
        super().put_if_absent(path, data, durable=durable)

    def _around(self, inner: Store) -> CountingStore:
        return CountingStore(inner, shared=self._shared)

    def _add_written(self, size: int) -> None:
        with self._shared._lock:
            self.counts.bytes_written += size

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        result: Any = action()
        read = 0
        if name == "get":
            read = len(result)
        elif name == "get_ranges":
            read = sum(len(buffer) for buffer in result)
        with self._shared._lock:
            counts = self.counts
            counts.calls += 1
            counts.requests += 1
            counts.bytes_read += read
            counts.by_name[name] += 1
            counts.paths.add(path)
        return cast("T", result)
