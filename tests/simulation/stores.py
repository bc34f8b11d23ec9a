"""The stores of the simulated world: each call is a step of the schedule.

::

    memory     an object store with a conditional put
    wide       the same, and a process makes calls in parallel: each of them is scheduled, in no order of its own
    external   one without; manifests are published through the rows of a register
    local      a disk: temporary files, renames and hard links, each a step of its own; several names for one content

Objects' bytes are kept without copies. Times of files are the store's, whatever clock the writer has.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lance_core.errors import AlreadyExistsError, CorruptFileError, NotFoundError, StoreError
from lance_core.fetch import Buffer, ByteRange
from lance_core.io.abilities import DeletesMany, SharesContent
from lance_core.io.external.store import ExternalStore
from lance_core.io.local.writer import unfinished_gone
from lance_core.io.paths import UNFINISHED_SUFFIX, is_unfinished
from lance_core.io.pool import io_pool
from lance_core.io.store import Store, StoreEntry, StoreWriter
from tests.simulation.schedule import LISTINGS
from tests.simulation.steps import do
from tests.simulation.world import WIDE, World, this_actor

T = TypeVar("T")
TABLE = "table"
URI = "memory://simulated/table"


def world_of(kind: str = "memory") -> World:
    """An empty world with a store of this kind."""
    world = World(kind)
    world.store = STORES[kind](world)
    return world


class SimulatedStore:
    """An object store, with or without a conditional put."""

    is_wide = False
    is_local = True
    """No pools, so that an actor is one thread; but for `SimulatedWideStore`."""

    def __init__(self, world: World, *, conditional: bool = True, folder: str = "") -> None:
        self._world = world
        self._folder = folder
        self.has_put_if_absent = conditional
        """Whether this kind of store has conditional puts of its own."""

    @property
    def uri(self) -> str:
        """The same in every run."""
        return f"{URI}/{self._folder}".rstrip("/")

    def get(self, path: str) -> Buffer:
        """A whole object."""
        return self._step("get", path, lambda: self._there(path))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """Views into the object, no copies."""
        wanted = tuple(ranges)
        return self._step("get_ranges", path, lambda: _parts(self._there(path), path, wanted))

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return self._step("size", path, lambda: len(self._there(path)))

    def stat(self, path: str) -> StoreEntry:
        """Its size; when it was written does not matter here."""
        return self._step("stat", path, lambda: StoreEntry(path, len(self._there(path)), 0.0))

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Replace an object."""
        content = bytes(data)
        self._step("put", path, lambda: self._place(path, content))

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Add an object unless one is there."""
        content = bytes(data)
        self._step("put_if_absent", path, lambda: self._place_if_absent(path, content))

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy unless the target is there."""
        self._step("copy_if_absent", target, lambda: self._place_if_absent(target, self._there(source)))

    def open_writer(self, path: str) -> StoreWriter:
        """Nobody sees the object before it is closed."""
        return _Writer(lambda data: self._step("close", path, lambda: self._place(path, data)))

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Objects below a folder; the whole listing is one call."""
        return iter(self._step("list", prefix, lambda: self._entries(prefix, unfinished=False)))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary objects below a folder."""
        return iter(self._step("list_unfinished", prefix, lambda: self._entries(prefix, unfinished=True)))

    def list_names(self, folder: str) -> Sequence[str]:
        """Names directly in a folder."""
        return self._step("list_names", folder, lambda: [name for name in self._below(folder) if "/" not in name])

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted."""
        return self._step(
            "list_folders", folder, lambda: sorted({n.partition("/")[0] for n in self._below(folder) if "/" in n})
        )

    def delete(self, path: str) -> None:
        """Remove an object."""
        self._step("delete", path, lambda: self._remove(path))

    def child(self, path: str) -> Store:
        """The store of a sub-folder, in the same world."""
        return type(self)(self._world, conditional=self.has_put_if_absent, folder=f"{self._folder}{path.strip('/')}/")

    def _there(self, path: str) -> bytes:
        found = self._world.objects.get(self._folder + path)
        if found is None:
            raise NotFoundError(f"no object {path!r} in {self.uri}", uri=self.uri)
        return found[0]

    def _place(self, path: str, data: Buffer) -> None:
        self._world.objects[self._folder + path] = bytes(data), self._world.now

    def _place_if_absent(self, path: str, data: Buffer) -> None:
        if self._folder + path in self._world.objects:
            raise AlreadyExistsError(f"{path!r} already exists", uri=self.uri)
        self._place(path, data)

    def _remove(self, path: str) -> None:
        self._world.objects.pop(self._folder + path, None)

    def _below(self, folder: str) -> Sequence[str]:
        full = self._folder + folder
        return [path[len(full) :] for path in self._world.objects if path.startswith(full) and not is_unfinished(path)]

    def _entries(self, prefix: str, *, unfinished: bool) -> tuple[StoreEntry, ...]:
        full, cut = self._folder + prefix, len(self._folder)
        there = [item for item in self._world.objects.items() if item[0].startswith(full)]
        return tuple(
            StoreEntry(path[cut:], len(data), at) for path, (data, at) in there if is_unfinished(path) is unfinished
        )

    def _step(self, name: str, path: str, action: Callable[[], T]) -> T:
        return do(self._world, name, self._folder + path, action, listed=self._undone if name in LISTINGS else None)

    def _undone(self, name: str, path: str, found: Any) -> Any:
        """A listing as it was before the last change that somebody else made below it."""
        mine = this_actor()
        for actor, changed, before in reversed(self._world.undo):
            if mine is None or actor == mine.process.label or not changed.startswith(path):
                continue
            if is_unfinished(changed) is (name == "list_unfinished"):
                return _replaced(name, found, changed[len(self._folder) :], path[len(self._folder) :], before)
        return found


class SimulatedDisk(SimulatedStore, DeletesMany, SharesContent):
    """A folder of a disk, by the steps of `io.local`: what is written has a temporary name until a rename or a link."""

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """A temporary file, then a rename."""
        self._rename(self._temporary(path, data), path)

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """A temporary file, then a link, which fails where the target exists."""
        if self.put_same_if_absent([path], data, durable=durable):
            raise AlreadyExistsError(f"{path!r} already exists", uri=self.uri)

    def put_same_if_absent(self, paths: Sequence[str], data: Buffer, *, durable: bool = True) -> list[str]:
        """One temporary file, and a link for each path."""
        if not paths:
            return []
        temporary = self._temporary(paths[0], data)
        try:
            return [path for path in paths if not self._link(temporary, path)]
        finally:
            self._drop(temporary)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Read, then `put_if_absent`."""
        self.put_if_absent(target, self.get(source))

    def open_writer(self, path: str) -> StoreWriter:
        """The temporary file is there from the beginning."""
        temporary = self._temporary(path, b"")

        def close(data: bytes) -> None:
            self._rename(temporary, path, data)

        return _Writer(close, on_abort=lambda: self._drop(temporary))

    def delete_many(self, paths: Iterable[str]) -> None:
        """One after the other."""
        for path in paths:
            self.delete(path)

    def _temporary(self, path: str, data: Buffer) -> str:
        folder, slash, name = path.rpartition("/")
        temporary = f"{folder}{slash}.{name}.{secrets.token_hex(4)}{UNFINISHED_SUFFIX}"
        content = bytes(data)
        self._step("create", temporary, lambda: self._place(temporary, content))
        return temporary

    def _rename(self, temporary: str, path: str, written: bytes | None = None) -> None:
        def rename() -> None:
            data = self._unfinished(temporary, path)
            self._remove(temporary)
            self._place(path, data if written is None else written)

        self._step("rename", path, rename)

    def _unfinished(self, temporary: str, path: str) -> bytes:
        try:
            return self._there(temporary)
        except NotFoundError as error:
            raise unfinished_gone(path, self.uri) from error

    def _link(self, temporary: str, path: str) -> bool:
        try:
            self._step("link", path, lambda: self._place_if_absent(path, self._unfinished(temporary, path)))
        except AlreadyExistsError:
            return False
        return True

    def _drop(self, temporary: str) -> None:
        try:
            self.delete(temporary)
        except StoreError:
            return  # a name that stays is garbage which `list_unfinished` finds


class SimulatedWideStore(SimulatedStore, DeletesMany):
    """An object store that is far: calls are made in parallel, a removal of many is one for each, in no certain order."""

    is_wide = True
    is_local = False

    def delete_many(self, paths: Iterable[str]) -> None:
        """Begun with the last, as nobody may rely on an order; refused for some, the others are removed all the same."""
        removed = [io_pool(self.uri).submit(self.delete, path) for path in reversed([*paths])]
        errors = [error for error in [future.exception() for future in removed] if error is not None]
        for error in errors:
            raise error


class _Writer:
    """Bytes on their way into a store."""

    def __init__(self, close: Callable[[bytes], None], *, on_abort: Callable[[], None] = lambda: None) -> None:
        self._parts: list[bytes] | None = []
        self._close = close
        self._on_abort = on_abort

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        if self._parts is None:
            raise StoreError("the file is already closed", operation="write")
        self._parts.append(bytes(data))

    def close(self) -> None:
        """Put the object; twice is harmless."""
        if self._parts is not None:
            self._close(b"".join(self._parts))
            self._parts = None

    def abort(self) -> None:
        """Throw the bytes away."""
        if self._parts is not None:
            self._parts = None
            self._on_abort()


def _parts(data: bytes, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
    view = memoryview(data)
    for item in ranges:
        if item.end > len(view) or item.start < 0:
            raise CorruptFileError(f"{path!r} ends at byte {len(view)}, but bytes {item.start} to {item.end} were requested")
    return [view[item.start : item.end] for item in ranges]


def _replaced(name: str, found: Any, path: str, prefix: str, before: tuple[bytes, float] | None) -> Any:
    short = path[len(prefix) :]
    if name == "list_folders":
        return found
    if name == "list_names":
        if "/" in short:
            return found
        rest = [item for item in found if item != short]
        return rest if before is None else [*rest, short]
    entries = tuple(item for item in found if item.path != path)
    return entries if before is None else (*entries, StoreEntry(path, len(before[0]), before[1]))


class SimulatedRegister:
    """Rows of an external manifest store; each access is a step, too."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, base: str, version: int) -> str | None:
        """The path of a row."""
        found = self._do("get", f"register/{base}/{version}", lambda: self._rows.get((base, version)))
        return None if found is None else found[0]

    def latest(self, base: str) -> tuple[int, str] | None:
        """The row of the highest version."""

        def look() -> tuple[int, str] | None:
            numbers = [version for place, version in self._rows if place == base]
            return (max(numbers), self._rows[base, max(numbers)][0]) if numbers else None

        return self._do("latest", f"register/{base}/", look)

    def add(self, base: str, version: int, path: str, size: int) -> None:
        """Add a row, if there is none."""

        def put() -> None:
            if (base, version) in self._rows:
                raise AlreadyExistsError(f"row {base} {version} exists")
            self._rows[base, version] = path, size

        self._do("add", f"register/{base}/{version}", put)

    def change(self, base: str, version: int, path: str, size: int) -> None:
        """Change a row that is there."""

        def put() -> None:
            if (base, version) not in self._rows:
                raise NotFoundError(f"no row {base} {version}")
            self._rows[base, version] = path, size

        self._do("change", f"register/{base}/{version}", put)

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        """Change a row that names the old path."""

        def put() -> None:
            if self._rows.get((base, version), ("", 0))[0] != old:
                raise NotFoundError(f"no row {base} {version} of {old}")
            self._rows[base, version] = path, size

        self._do("replace", f"register/{base}/{version}", put)

    def remove(self, base: str, version: int) -> None:
        """Remove a row."""
        self._do("remove", f"register/{base}/{version}", lambda: self._rows.pop((base, version), None))

    def remove_if(self, base: str, version: int, path: str) -> None:
        """Remove a row that names this path."""

        def drop() -> None:
            if self._rows.get((base, version), ("", 0))[0] == path:
                del self._rows[base, version]

        self._do("remove", f"register/{base}/{version}", drop)

    @property
    def _rows(self) -> dict[tuple[str, int], tuple[str, int]]:
        return self._world.register

    def _do(self, name: str, path: str, action: Callable[[], T]) -> T:
        return do(self._world, name, path, action)


def _external(world: World) -> Store:
    return ExternalStore(SimulatedStore(world, conditional=False), SimulatedRegister(world), base=TABLE, uri=URI)


STORES: Mapping[str, Callable[[World], Store]] = {
    "memory": SimulatedStore,
    "external": _external,
    "local": SimulatedDisk,
    WIDE: SimulatedWideStore,
}
