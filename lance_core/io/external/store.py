"""A store whose manifests are published through an external manifest store, because it has no put-if-absent.

::

    put_if_absent("_versions/…613.manifest")
      1  put   _versions/…613.manifest-5f0c…                          the manifest, staged under a name nobody reads
      2  row   (tables/t, 2) -> …613.manifest-5f0c…   if no such row  this is the commit
      3  copy  …613.manifest-5f0c… -> …613.manifest                   from here on any reader sees it
      4  row   (tables/t, 2) -> …613.manifest                         and the staged file goes

A writer that dies after 2 has committed: the next reader (a listing, or the missing manifest itself) does 3 and 4 for it.
A row may name a staged file that is gone: it was added late, after its writer had given up, or a garbage collection took the
file for abandoned. Such a row has published nothing. The next writer takes it over, and so does its own, if it is still at
it; both by one conditional change, so that one of them wins.

The official library follows the same steps on the same rows, so both may write one table. Other conditional writes of a
table (its ledger, its tags: records) use the inner store's own, and where it has none the same four steps with rows of
their own. A record may be removed and written again, so its row ends with a name that no other write has:

    4  row   (tables/t/_refs/tags/a.json, 0) -> …a.json.77ab….final     if it still names the staged object

Each row of a record is changed and removed by comparison with what was read. A row whose record is missing has no owner:
a remover died between the object and the row, or removed an object that another had just written. The next writer takes it
over. The row of a manifest is different: while it is there, its number is taken, also if the object is missing, because
it was committed. An older one of which only the row is left is one that a cleanup was removing. If it is the newest,
its object was lost outside this protocol, and listing the versions fails: to go on with the version before would drop rows.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol, TypeVar

from lance_core.errors import AlreadyExistsError, CorruptFileError, NotFoundError, StoreError
from lance_core.fetch import Buffer, ByteRange
from lance_core.io import manifest_names
from lance_core.io.paths import UNFINISHED_SUFFIX, checked_path, checked_prefix
from lance_core.io.store import Store, StoreEntry, StoreWriter

T = TypeVar("T")

_VERSIONS = "_versions/"
_STAGED = re.compile(r"\.manifest-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""How a manifest is named between steps 1 and 4: as the official library names it."""

_SINGLE = 0
"""The version under which a conditional write that is no manifest has its row."""

_FINAL_SUFFIX = ".final"
"""Ending of what the row of a record names when the record is at its path."""


class ManifestRegister(Protocol):
    """Rows (base, version) -> path in a place with conditional writes. Thread-safe; errors are StoreErrors."""

    def get(self, base: str, version: int) -> str | None:
        """The path of a row, read consistently; None when there is none."""

    def latest(self, base: str) -> tuple[int, str] | None:
        """The row of the highest version, read consistently."""

    def add(self, base: str, version: int, path: str, size: int) -> None:
        """Add a row. AlreadyExistsError when there is one."""

    def change(self, base: str, version: int, path: str, size: int) -> None:
        """Change a row. NotFoundError when there is none."""

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        """Change a row whose path is `old`. NotFoundError when there is no such row (any more)."""

    def remove(self, base: str, version: int) -> None:
        """Remove a row; removing one that is not there is not an error."""

    def remove_if(self, base: str, version: int, path: str) -> None:
        """Remove a row if it names `path`; nothing happens if there is no such row (any more)."""


class ExternalStore:
    """`inner`, with manifests published through `register`. `base` begins the keys and the paths in its rows."""

    def __init__(self, inner: Store, register: ManifestRegister, *, base: str, uri: str | None = None) -> None:
        self._inner = inner
        self._register = register
        self._base = base.rstrip("/")
        self._uri = inner.uri if uri is None else uri

    def __repr__(self) -> str:
        return f"ExternalStore({self._uri!r})"

    @property
    def uri(self) -> str:
        """The uri that names both the place and the register."""
        return self._uri

    @property
    def is_local(self) -> bool:
        """As the inner store."""
        return self._inner.is_local

    @property
    def is_wide(self) -> bool:
        """False: what a range costs is the inner store's affair."""
        return False

    @property
    def has_put_if_absent(self) -> bool:
        """True: this is what the register is for."""
        return True

    def get(self, path: str) -> Buffer:
        """A whole object; a manifest that is only staged yet is published first."""
        return self._published(path, lambda: self._inner.get(path))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """Parts of an object."""
        return self._published(path, lambda: self._inner.get_ranges(path, ranges))

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return self._published(path, lambda: self._inner.size(path))

    def stat(self, path: str) -> StoreEntry:
        """What the inner store says of an object."""
        return self._published(path, lambda: self._inner.stat(path))

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """The inner store's."""
        self._inner.put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """The four steps for a manifest; the inner store's own conditional put, where it has one, for anything else."""
        row = self._row_of(path)
        if row is None:
            self._inner.put_if_absent(path, data, durable=durable)
        else:
            self._publish(row, path, data)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Read, then `put_if_absent`."""
        self.put_if_absent(target, self.get(source))

    def open_writer(self, path: str) -> StoreWriter:
        """The inner store's."""
        return self._inner.open_writer(path)

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Objects below a folder, the newest version published among them."""
        newest = self._publish_latest(prefix)
        entries = (entry for entry in self._inner.list(prefix) if not _STAGED.search(entry.path))
        if newest is None or prefix != _VERSIONS:
            return entries
        found = [*entries]
        self._require_newest(newest, {entry.path for entry in found})
        return iter(found)

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary objects of the inner store, and staged manifests that no row names."""
        yield from self._inner.list_unfinished(prefix)
        if not _VERSIONS.startswith(checked_prefix(prefix)):
            return
        for entry in [item for item in self._inner.list(_VERSIONS) if _STAGED.search(item.path)]:
            path = _STAGED.sub(manifest_names.SUFFIX, entry.path)
            row = self._row_of(path)
            if row is not None and self._register.get(*row) == self._full(entry.path):
                self._finish(row, entry.path, path)
            else:
                yield entry

    def list_names(self, folder: str) -> Sequence[str]:
        """Names in a folder, the newest version published among them."""
        newest = self._publish_latest(folder)
        names = [name for name in self._inner.list_names(folder) if not _STAGED.search(name)]
        if newest is not None and folder == _VERSIONS:
            self._require_newest(newest, {_VERSIONS + name for name in names})
        return names

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        return self._inner.list_folders(folder)

    def delete(self, path: str) -> None:
        """Remove an object, then its row, which keeps other writers away until the object is gone.

        The row of a record is removed only if it still is the one that was there before the object went: another writer may
        have taken it over since.
        """
        row = self._row_of(path)
        former = self._register.get(*row) if row is not None and row[1] == _SINGLE else None
        self._inner.delete(path)
        if row is not None and row[1] != _SINGLE:
            self._register.remove(*row)
        elif row is not None and former is not None:
            self._register.remove_if(*row, former)

    def child(self, path: str) -> ExternalStore:
        """A sub-folder with rows of its own in the same register."""
        below = checked_path(path.rstrip("/"))
        place, mark, query = self._uri.partition("?")
        uri = f"{place.rstrip('/')}/{below}{mark}{query}"
        return ExternalStore(self._inner.child(path), self._register, base=f"{self._base}/{below}", uri=uri)

    def _row_of(self, path: str) -> tuple[str, int] | None:
        """The key of the row that stands for an object; None for an object without one."""
        folder, _, name = f"/{checked_path(path)}".rpartition("/")
        found = manifest_names.number_of(name) if f"{folder}/".endswith(f"/{_VERSIONS}") else None
        if found is not None:
            # A branch below this table has rows of its own.
            return self._base + folder[: -len(_VERSIONS)], found[0]
        return None if self._inner.has_put_if_absent else (self._full(path), _SINGLE)

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _below(self, full: str) -> str:
        if not full.startswith(f"{self._base}/"):
            raise CorruptFileError(
                f"{self._uri}: the manifest store names {full!r}, which is not below {self._base}/",
                uri=self._uri,
                cure="Another table has the same key there, or its row is damaged.",
            )
        return checked_path(full[len(self._base) + 1 :])

    def _publish(self, row: tuple[str, int], path: str, data: Buffer) -> None:
        if self._exists(path):
            raise AlreadyExistsError(f"{path!r} already exists", uri=self._uri)
        staged = self._stage(row, path, data)
        try:
            self._claim(row, staged, len(data))
        except AlreadyExistsError:
            dead = self._dead_row(row, path)
            if dead is None or not self._take_over_dead(row, dead, staged, path, len(data)):
                self._inner.delete(staged)
                self._repair(row, path)
                raise
        while not self._finish(row, staged, path):
            # Somebody has copied it, or it was removed before anybody had: then once more, or the row is another's by now.
            if self._exists(path):
                self._require_ours(row, path, data)
                return
            former, staged = staged, self._stage(row, path, data)
            if not self._take_over(row, self._full(former), staged, len(data)):
                self._inner.delete(staged)
                self._repair(row, path)
                self._require_ours(row, path, data)
                return

    def _require_ours(self, row: tuple[str, int], path: str, data: Buffer) -> None:
        with contextlib.suppress(NotFoundError):
            if bytes(self._inner.get(path)) == bytes(data):
                return
        raise AlreadyExistsError(f"{row[0]}: version {row[1]} already exists", uri=self._uri)

    def _stage(self, row: tuple[str, int], path: str, data: Buffer) -> str:
        staged = f"{path}-{uuid.uuid4()}" if row[1] else f"{path}.{uuid.uuid4().hex}{UNFINISHED_SUFFIX}"
        self._inner.put(staged, data)
        return staged

    def _dead_row(self, row: tuple[str, int], path: str) -> str | None:
        """What a row names that nobody can publish: the staged file is gone, and it was not copied, or the copy is gone.

        The row of a manifest that was copied is never dead: the version may have been committed.
        """
        found = self._register.get(*row)
        if found is None or (row[1] != _SINGLE and found == self._full(path)):
            return None
        return None if self._exists(self._below(found)) or self._exists(path) else found

    def _take_over_dead(self, row: tuple[str, int], dead: str, staged: str, path: str, size: int) -> bool:
        if not self._take_over(row, dead, staged, size):
            return False
        if dead != self._full(path) or not self._exists(path):
            return True
        # A worker of an earlier release ends every row with this one name: another record has come under it since the look.
        with contextlib.suppress(NotFoundError):
            self._register.replace(*row, self._full(staged), self._full(_final_name(staged)), size)
        return False

    def _take_over(self, row: tuple[str, int], old: str, staged: str, size: int) -> bool:
        try:
            self._register.replace(*row, old, self._full(staged), size)
        except NotFoundError:
            return False
        except StoreError:
            if self._register.get(*row) != self._full(staged):
                raise
        return True

    def _claim(self, row: tuple[str, int], staged: str, size: int) -> None:
        try:
            self._register.add(*row, self._full(staged), size)
        except StoreError as error:
            # A lost reply, or a repeat inside the client that met its own first try: the row itself says who won.
            found = self._register.get(*row)
            if found == self._full(staged):
                return
            if found is None and not isinstance(error, AlreadyExistsError):
                self._inner.delete(staged)
                raise
            raise AlreadyExistsError(f"{row[0]}: version {row[1]} already exists", uri=self._uri) from error

    def _exists(self, path: str) -> bool:
        try:
            self._inner.size(path)
        except NotFoundError:
            return False
        return True

    def _published(self, path: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except NotFoundError:
            row = self._row_of(path)
            if row is None or not self._repair(row, path):
                raise
        return read()

    def _publish_latest(self, prefix: str) -> str | None:
        """Publish the newest version if it is only staged yet; else its path."""
        folder = checked_prefix(prefix)
        if not _VERSIONS.startswith(folder):
            return None
        found = self._register.latest(self._base)
        if found is not None and found[1].endswith(manifest_names.SUFFIX):
            return self._below(found[1])
        if found is not None:
            staged, row = self._below(found[1]), (self._base, found[0])
            path = _STAGED.sub(manifest_names.SUFFIX, staged)
            if self._row_of(path) != row:
                raise CorruptFileError(
                    f"{self._uri}: the manifest store names {staged!r} as version {row[1]}", uri=self._uri
                )
            self._finish(row, staged, path)
        return None

    def _require_newest(self, path: str, listed: Collection[str]) -> None:
        """Refuse a listing of a table's versions that lacks the newest, unless it is there, or its row goes as well."""
        if path in listed or not any(manifest_names.number_of(item[len(_VERSIONS) :]) for item in listed):
            return  # a table without any version is one that is being dropped
        found = self._register.latest(self._base)
        if found is not None and found[1] == self._full(path) and not self._exists(path):
            raise CorruptFileError(
                f"{self._uri}: version {found[0]} was published, as the manifest store says, but {path} is missing",
                uri=self._uri,
                version=found[0],
                cure=f"Restore that object. If the version is given up, remove the row ({self._base}, {found[0]}).",
            )

    def _repair(self, row: tuple[str, int], path: str) -> bool:
        """Publish what a row says is committed. Whether there was something to publish."""
        found = self._register.get(*row)
        if found is None or found == self._full(path) or found.endswith(_FINAL_SUFFIX):
            return False
        return self._finish(row, self._below(found), path) or self._exists(path)

    def _finish(self, row: tuple[str, int], staged: str, path: str) -> bool:
        """Steps 3 and 4; whether the staged file was there. Any number of readers and writers may do them at once."""
        if staged.rpartition("/")[0] != path.rpartition("/")[0]:
            raise CorruptFileError(f"{self._uri}: the manifest store names {staged!r} for {path!r}", uri=self._uri)
        try:
            data = self._inner.get(staged)
        except NotFoundError:
            return False  # somebody else has finished it
        self._inner.put(path, data)
        try:
            if row[1] == _SINGLE:
                self._end_row(row, staged, len(data))
            else:
                self._register.change(*row, self._full(path), len(data))
        except NotFoundError:
            self._inner.delete(path)  # it was removed in the meantime
        with contextlib.suppress(NotFoundError):
            self._inner.delete(staged)
        return True

    def _end_row(self, row: tuple[str, int], staged: str, size: int) -> None:
        """Step 4 for a record. NotFoundError if its row is gone; a row that others have changed since is theirs."""
        try:
            self._register.replace(*row, self._full(staged), self._full(_final_name(staged)), size)
        except NotFoundError:
            if self._register.get(*row) is None:
                raise


def _final_name(staged: str) -> str:
    return staged.removesuffix(UNFINISHED_SUFFIX) + _FINAL_SUFFIX
