"""Local files as a store: positioned reads that release the GIL, writes that are atomic and durable.

::

    put            .a.txn.3f9c.unfinished  written, fsync -> rename over a.txn        -> fsync of the folder
    put_if_absent  .5.manifest.77ab.unfinished written, fsync -> link to 5.manifest   -> fsync of the folder
                   the link fails when 5.manifest exists: the file system decides the race, once

`pread` and not a memory map: a map of a file that shrinks kills the process with SIGBUS, and a page fault holds the GIL.
Names ending in `.unfinished` are never listed; `list_unfinished` finds what dead writers left.
"""

# `os` on plain strings: a scan makes these calls by the thousand, and pathlib costs as much as the read.
# ruff: noqa: PTH100, PTH102, PTH105, PTH106, PTH108, PTH112, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from lance_core.errors import AlreadyExistsError, CorruptFileError, NotFoundError, PreconditionError, StoreError
from lance_core.fetch import Buffer, ByteRange, ManyRanges, Together
from lance_core.io.paths import UNFINISHED_SUFFIX, checked_path, checked_prefix, is_unfinished
from lance_core.io.scatter import read_scattered
from lance_core.io.store import StoreEntry

_MAX_READ = 1 << 30
"""The kernel returns at most about 2 GiB per call; larger reads loop."""

_FOLDER_ATTEMPTS = 10
"""Deleting the last file of a folder removes the folder, so a writer beside it may have to make it again."""

_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV})


class LocalStore:
    """A folder as a store. The folder need not exist until something is written."""

    is_local = True
    """Reads cost microseconds: small ones are not worth a thread."""

    has_put_if_absent = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.abspath(os.fspath(root))

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    @property
    def uri(self) -> str:
        """The absolute path of the folder."""
        return self._root

    def get(self, path: str) -> Buffer:
        """A whole file."""
        fd = self._open(path)
        try:
            return _read(fd, path, ByteRange(0, os.fstat(fd).st_size))
        except OSError as error:
            raise _as_store_error(error, path) from error
        finally:
            os.close(fd)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """One `pread` per range."""
        fd = self._open(path)
        try:
            return [_read(fd, path, item) for item in ranges]
        except OSError as error:
            raise _as_store_error(error, path) from error
        finally:
            os.close(fd)

    def get_scattered(self, path: str, asked: Sequence[ManyRanges]) -> Iterator[Together]:
        """Several lists of ascending ranges, each into one piece of memory, read when it is asked for."""
        fd = self._open(path)
        try:
            yield from read_scattered(fd, path, asked)
        except OSError as error:
            raise _as_store_error(error, path) from error
        finally:
            os.close(fd)

    def size(self, path: str) -> int:
        """Bytes in a file."""
        target = self._full(path)
        try:
            status = os.stat(target)
        except OSError as error:
            raise _as_store_error(error, path) from error
        if not _is_file(status):
            raise NotFoundError(f"{path!r} is a folder, not a file", uri=self._root)
        return status.st_size

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write a temporary file, then rename it over the target."""
        writer = self.open_writer(path)
        with _aborting(writer):
            writer.write(data)
            writer.close(durable=durable)

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write a temporary file, then hard-link it to the target, which fails when the target exists."""
        writer = self.open_writer(path)
        with _aborting(writer):
            writer.write(data)
            writer.close_if_absent(durable=durable)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy, then link to the target."""
        self.put_if_absent(target, self.get(source))

    def open_writer(self, path: str) -> LocalWriter:
        """Stream into a temporary file in the target's folder; `close` renames it."""
        target = self._full(path)
        with _typed(path):
            for _ in range(_FOLDER_ATTEMPTS):
                try:
                    # Any folder above may go while this is at it, when another process deletes the last file in it.
                    _make_folders(os.path.dirname(target))
                    return LocalWriter(target, path)
                except FileNotFoundError:
                    continue
                except NotADirectoryError as error:
                    raise StoreError(f"{path!r}: a folder above it is a file", uri=self._root) from error
        raise StoreError(f"{path!r}: its folder vanishes as often as it is made", uri=self._root)

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Files below a folder, in no order; files that vanish meanwhile are left out."""
        return (entry for entry in self._walk(prefix) if not is_unfinished(entry.path))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary files below a folder: of writers that are at work, or died."""
        return (entry for entry in self._walk(prefix) if is_unfinished(entry.path))

    def list_names(self, folder: str) -> Sequence[str]:
        """Names of the files directly in a folder."""
        prefix = checked_prefix(folder)
        try:
            with os.scandir(os.path.join(self._root, prefix)) as entries:
                return [entry.name for entry in entries if not is_unfinished(entry.name) and _entry_is_file(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _as_store_error(error, prefix) from error

    def delete(self, path: str) -> None:
        """Remove a file, and the folders above it that became empty, up to the root."""
        target = self._full(path)
        with _typed(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(target)
            self._drop_empty_folders(os.path.dirname(target))

    def child(self, path: str) -> LocalStore:
        """A store rooted at a sub-folder."""
        return LocalStore(os.path.join(self._root, checked_path(path.rstrip("/"))))

    def _full(self, path: str) -> str:
        return os.path.join(self._root, checked_path(path))

    def _open(self, path: str) -> int:
        target = self._full(path)
        try:
            return os.open(target, os.O_RDONLY | _O_CLOEXEC)
        except OSError as error:
            raise _as_store_error(error, path) from error

    def _walk(self, prefix: str) -> Iterator[StoreEntry]:
        start = os.path.join(self._root, checked_prefix(prefix))
        for folder, _, names in os.walk(start):
            for name in names:
                full = os.path.join(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(full)
                    relative = os.path.relpath(full, self._root).replace(os.sep, "/")
                    yield StoreEntry(path=relative, size=status.st_size, modified=status.st_mtime)

    def _drop_empty_folders(self, folder: str) -> None:
        # Object stores have no empty folders; a table that was emptied should leave none behind here either.
        while folder != self._root and folder.startswith(self._root + os.sep):
            try:
                # Looked at first: being refused takes the file system a hundred times as long.
                with os.scandir(folder) as entries:
                    if next(entries, None) is not None:
                        return
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)


class LocalWriter:
    """A file under its temporary name."""

    def __init__(self, target: str, path: str) -> None:
        self._target = target
        self._path = path
        folder, name = os.path.split(target)
        self._temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{UNFINISHED_SUFFIX}")
        self._file: IO[bytes] | None = _create(self._temporary)

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        if self._file is None:
            raise StoreError(f"{self._path!r} was closed already", operation="write")
        with _typed(self._path):
            self._file.write(data)

    def close(self, *, durable: bool = True) -> None:
        """fsync, rename, fsync of the folder. Closing twice is harmless."""
        if self._file is None:
            return
        with _typed(self._path):
            self._finish(durable=durable)
            os.replace(self._temporary, self._target)
            if durable:
                _sync_folder(os.path.dirname(self._target))

    def close_if_absent(self, *, durable: bool = True) -> None:
        """fsync, link, fsync of the folder; AlreadyExistsError when the target is there."""
        if self._file is None:
            return
        with _typed(self._path):
            self._finish(durable=durable)
            try:
                os.link(self._temporary, self._target)
            except FileExistsError:
                raise AlreadyExistsError(f"{self._path!r} exists already", uri=self._target) from None
            except OSError as error:
                raise _no_link(error, self._path) from error
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._temporary)
            if durable:
                _sync_folder(os.path.dirname(self._target))

    def abort(self) -> None:
        """Remove the temporary file; a no-op after `close`."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)

    def _finish(self, *, durable: bool) -> None:
        assert self._file is not None
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._file.close()
        self._file = None


def _create(path: str) -> IO[bytes]:
    return open(path, "xb", buffering=1 << 20)  # noqa: PTH123 - the writer owns it


def _read(fd: int, path: str, item: ByteRange) -> Buffer:
    if item.size <= 0:
        return b""
    data = os.pread(fd, min(item.size, _MAX_READ), item.start) if _plausible(fd, item) else b""
    if len(data) == item.size:
        return data
    if item.end > os.fstat(fd).st_size:
        raise CorruptFileError(
            f"{path!r} ends at byte {os.fstat(fd).st_size}, bytes {item.start} to {item.end} were asked for",
            cure="The file is truncated, or what refers to it is damaged.",
        )
    parts = [data]
    position = item.start + len(data)
    while position < item.end:
        part = os.pread(fd, min(item.end - position, _MAX_READ), position)
        if not part:
            raise CorruptFileError(f"{path!r} shrank while it was read")
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def _plausible(fd: int, item: ByteRange) -> bool:
    # pread allocates what it is asked for before it looks: a damaged length must not become a giant allocation.
    return item.start >= 0 and (item.size <= 1 << 20 or item.end <= os.fstat(fd).st_size)


def _no_link(error: OSError, path: str) -> OSError | PreconditionError:
    if error.errno not in _NO_LINKS:
        return error
    return PreconditionError(
        f"{path!r}: this file system has no hard links, so nothing on it can be written only-if-absent",
        cure="Keep the table on a file system with hard links, or on an object store with conditional put.",
    )


def _make_folders(folder: str) -> None:
    if os.path.isdir(folder):
        return
    _make_folders(os.path.dirname(folder))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        _sync_folder(os.path.dirname(folder))


def _sync_folder(folder: str) -> None:
    # A rename or link is durable only when the folder is; some file systems refuse to sync a folder, and then that is that.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _is_file(status: os.stat_result) -> bool:
    return (status.st_mode & 0o170000) == 0o100000


def _entry_is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


@contextlib.contextmanager
def _aborting(writer: LocalWriter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        writer.abort()
        raise


@contextlib.contextmanager
def _typed(path: str) -> Iterator[None]:
    try:
        yield
    except NotFoundError:
        raise  # it is an OSError, too
    except OSError as error:
        raise _as_store_error(error, path) from error


def _as_store_error(error: OSError, path: str) -> NotFoundError | StoreError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return NotFoundError(f"no object {path!r}")
    return StoreError(f"{path!r}: {error.strerror or error}", operation="local")


def local_path(root: str) -> str:
    """The folder a plain path means: `~` expanded, made absolute."""
    return str(Path(root).expanduser().absolute())
