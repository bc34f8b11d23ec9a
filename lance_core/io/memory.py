"""A store in memory: for tests, and for tables that live as long as the process.

::

    MemoryStore("m")            the root `memory://m`; every MemoryStore("m") of this process sees the same objects
    MemoryStore("m").child("a") the root `memory://m/a`

One lock stands for the atomicity that a file system or an object store gives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

from lance_core.errors import AlreadyExistsError, CorruptFileError, NotFoundError, StoreError
from lance_core.fetch import Buffer, ByteRange
from lance_core.io.limits import check_size, limit_of
from lance_core.io.paths import checked_path, checked_prefix
from lance_core.io.store import StoreEntry


class _Objects:
    """The objects of one root name: path -> (bytes, modified)."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_path: dict[str, tuple[bytes, float]] = {}


class _Roots:
    """Every root of this process, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, _Objects] = {}

    def get(self, name: str) -> _Objects:
        with self._lock:
            return self._by_name.setdefault(name, _Objects())


_ROOTS = _Roots()


class MemoryStore:
    """Objects in this process's memory, shared by root name."""

    is_local = True
    is_wide = False
    has_put_if_absent = True

    def __init__(self, name: str, *, folder: str = "") -> None:
        self._name = name
        self._folder = checked_prefix(folder)
        self._objects = _ROOTS.get(name)

    def __repr__(self) -> str:
        return f"MemoryStore({self.uri!r})"

    @property
    def uri(self) -> str:
        """`memory://name/folder`."""
        return f"memory://{self._name}/{self._folder}".rstrip("/")

    def get(self, path: str) -> Buffer:
        """A whole object, if it is not larger than its kind may be."""
        data = self._whole(path)
        check_size(path, len(data), most=limit_of(path), uri=self.uri)
        return data

    def _whole(self, path: str) -> bytes:
        return self._found(path)[0]

    def _found(self, path: str) -> tuple[bytes, float]:
        full = self._full(path)
        with self._objects.lock:
            found = self._objects.by_path.get(full)
        if found is None:
            raise NotFoundError(f"no object {path!r} in {self.uri}", uri=self.uri)
        return found

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """Views into the object, no copies."""
        data = memoryview(self._whole(path))
        for item in ranges:
            if item.end > len(data) or item.start < 0:
                raise CorruptFileError(
                    f"{path!r} ends at byte {len(data)}, but bytes {item.start} to {item.end} were requested"
                )
        return [data[item.start : item.end] for item in ranges]

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return len(self._whole(path))

    def stat(self, path: str) -> StoreEntry:
        """Its size and when it was written."""
        data, modified = self._found(path)
        return StoreEntry(path=path, size=len(data), modified=modified)

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Replace an object."""
        full = self._full(path)
        with self._objects.lock:
            self._objects.by_path[full] = (bytes(data), time.time())

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Add an object unless one is there."""
        full = self._full(path)
        with self._objects.lock:
            if full in self._objects.by_path:
                raise AlreadyExistsError(f"{path!r} already exists", uri=self.uri)
            self._objects.by_path[full] = (bytes(data), time.time())

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy within the root."""
        self.put_if_absent(target, self._whole(source))

    def open_writer(self, path: str) -> MemoryWriter:
        """Collects bytes; `close` puts them."""
        checked_path(path)
        return MemoryWriter(self, path)

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Objects below a folder."""
        full = self._folder + checked_prefix(prefix)
        with self._objects.lock:
            found = [(path, len(data), at) for path, (data, at) in self._objects.by_path.items() if path.startswith(full)]
        return iter([StoreEntry(path=path[len(self._folder) :], size=size, modified=at) for path, size, at in found])

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Nothing: an unfinished object dies with its writer."""
        checked_prefix(prefix)
        return iter(())

    def list_names(self, folder: str) -> Sequence[str]:
        """Names directly in a folder."""
        full = self._folder + checked_prefix(folder)
        with self._objects.lock:
            rest = [path[len(full) :] for path in self._objects.by_path if path.startswith(full)]
        return [name for name in rest if "/" not in name]

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        full = self._folder + checked_prefix(folder)
        with self._objects.lock:
            rest = [path[len(full) :] for path in self._objects.by_path if path.startswith(full)]
        return sorted({name.partition("/")[0] for name in rest if "/" in name})

    def delete(self, path: str) -> None:
        """Remove an object."""
        full = self._full(path)
        with self._objects.lock:
            self._objects.by_path.pop(full, None)

    def child(self, path: str) -> MemoryStore:
        """A store rooted at a sub-folder."""
        return MemoryStore(self._name, folder=self._folder + checked_path(path.rstrip("/")))

    def _full(self, path: str) -> str:
        return self._folder + checked_path(path)


class MemoryWriter:
    """Bytes on their way into a MemoryStore."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._parts: list[bytes] | None = []

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        if self._parts is None:
            raise StoreError(f"{self._path!r} is already closed", operation="write")
        self._parts.append(bytes(data))

    def close(self) -> None:
        """Make the object visible."""
        if self._parts is not None:
            self._store.put(self._path, b"".join(self._parts))
            self._parts = None

    def abort(self) -> None:
        """Forget the bytes; a no-op after `close`."""
        self._parts = None
