"""A local file being written: under a temporary name, then published by a rename or by links, durably on request.

::

    .5.manifest.77ab.unfinished   written, fsync -> rename over | link to 5.manifest   -> fsync of the folder

A link fails where its name is taken: the file system decides the race, once. Files that were published are never written
again, so many names may stand for one file.
"""

# `os` on plain strings, as in `local`.
# ruff: noqa: PTH102, PTH105, PTH108, PTH112, PTH120, PTH118

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import IO

from lance_core.errors import (
    AlreadyExistsError,
    LanceError,
    NotFoundError,
    PreconditionError,
    StoreError,
    StoreRefusedError,
)
from lance_core.fetch import Buffer
from lance_core.io.paths import UNFINISHED_GONE, UNFINISHED_SUFFIX
from lance_core.io.pool import in_io_pool, io_pool

_REFUSALS: Mapping[int, str] = {
    errno.ENOSPC: "Free space on the disk, then retry.",
    errno.EDQUOT: "Free space or raise the quota, then retry.",
    errno.EROFS: "Mount the file system as writable.",
    errno.EACCES: "Grant this user write permission.",
    errno.EPERM: "Grant this user write permission.",
    errno.EFBIG: "Write smaller files (max_bytes_per_file).",
    errno.ENAMETOOLONG: "Use a shorter path.",
}
"""What a retry does not change, and what does."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV})


class Syncs:
    """Files on their way to the disk while their writer goes on; nothing may be published before `wait` has returned."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Future[None]] = []
        self._failure: OSError | None = None

    def add(self, file: IO[bytes], folder: str) -> None:
        """Sync a written file and the folder that has its name, and close it."""
        if in_io_pool():  # whose threads must not wait for each other
            _sync_file(file)
            sync_folder(folder)
            return
        with self._lock:
            self._pending += [io_pool("").submit(_sync_file, file), io_pool("").submit(sync_folder, folder)]

    def add_folder(self, folder: str) -> None:
        """Sync a folder that has a new name in it."""
        if in_io_pool():
            sync_folder(folder)
            return
        with self._lock:
            self._pending.append(io_pool("").submit(sync_folder, folder))

    def wait(self) -> None:
        """Until all are on the disk. OSError when one could not be written: now, and on each later call."""
        with self._lock:
            for future in self._pending:
                try:
                    future.result()
                except OSError as error:
                    self._failure = error
            self._pending = []
            if self._failure is not None:
                raise self._failure


class LocalWriter:
    """A file under its temporary name. With `syncs`, `close` gives it its name first and leaves the disk to them."""

    def __init__(self, target: str, path: str, *, durable: bool = True, syncs: Syncs | None = None) -> None:
        self._durable = durable
        self._syncs = syncs
        self._target = target
        self._path, self._root = path, target.removesuffix(f"{os.sep}{path}")
        folder, name = os.path.split(target)
        self._temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{UNFINISHED_SUFFIX}")
        self._has_temporary = True
        self._file: IO[bytes] | None = _create(self._temporary)

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        if self._file is None:
            raise StoreError(f"{self._path!r} is already closed", operation="write")
        try:
            self._file.write(data)
        except OSError as error:
            raise as_store_error(error, self._path, root=self._root) from error

    def close(self, *, durable: bool = True) -> None:
        """fsync, rename, fsync of the folder. Closing twice is harmless."""
        if self._file is None:
            return
        durable = durable and self._durable
        with typed(self._path, root=self._root):
            if self._syncs is not None and durable:
                self._finish_later(self._syncs)
                return
            self._finish(durable=durable)
            self._rename()
            if durable:
                sync_folder(os.path.dirname(self._target))

    def close_if_absent(self, *, durable: bool = True, after: Syncs | None = None) -> None:
        """fsync, link (not before `after`), fsync of the folder; AlreadyExistsError when the target is there."""
        if self._file is None:
            return
        durable = durable and self._durable
        with typed(self._path, root=self._root):
            self._finish(durable=durable)
            try:
                if after is not None:
                    _wait(after, self._path)
                if not self._link(self._target, self._path):
                    raise AlreadyExistsError(f"{self._path!r} already exists", uri=self._target)
            finally:
                self._drop_temporary()
            if durable and after is not None:
                after.add_folder(os.path.dirname(self._target))
            elif durable:
                sync_folder(os.path.dirname(self._target))

    def close_as_many(self, targets: Sequence[tuple[str, str]], *, durable: bool = True) -> list[str]:
        """Like `close_if_absent` under many names, (file, path) each, of one folder; the paths that existed already."""
        if self._file is None:
            return []
        durable = durable and self._durable
        with typed(self._path, root=self._root):
            self._finish(durable=durable)
            try:
                found = [path for target, path in targets if not self._link(target, path)]
            finally:
                self._drop_temporary()
            if durable:
                sync_folder(os.path.dirname(self._target))
            return found

    def abort(self) -> None:
        """Remove the temporary file; a no-op after `close`."""
        if self._file is not None:
            # Closing flushes, which fails once more on a disk that is full; what counts is that the file goes.
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
        if self._has_temporary:
            self._has_temporary = False
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)

    def _link(self, target: str, path: str) -> bool:
        try:
            os.link(self._temporary, target)
        except FileExistsError:
            return False
        except FileNotFoundError as error:
            raise unfinished_gone(path, self._root) from error
        except OSError as error:
            raise _no_link(error, path) from error
        return True

    def _drop_temporary(self) -> None:
        self._has_temporary = False
        # A name that stays is garbage which `list_unfinished` finds; what was published is published.
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)

    def _rename(self) -> None:
        try:
            os.replace(self._temporary, self._target)
        except FileNotFoundError as error:
            raise unfinished_gone(self._path, self._root) from error
        self._has_temporary = False

    def _finish_later(self, syncs: Syncs) -> None:
        assert self._file is not None
        self._file.flush()
        self._rename()
        file, self._file = self._file, None
        syncs.add(file, os.path.dirname(self._target))

    def _finish(self, *, durable: bool) -> None:
        assert self._file is not None
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._file.close()
        self._file = None


def _create(path: str) -> IO[bytes]:
    return open(path, "xb", buffering=1 << 20)  # noqa: PTH123 - the writer owns it


def _no_link(error: OSError, path: str) -> OSError | PreconditionError:
    if error.errno not in _NO_LINKS:
        return error
    return PreconditionError(
        f"{path!r}: this file system has no hard links, so put-if-absent is impossible",
        cure="Keep the table on a file system with hard links, or on an object store with conditional put.",
    )


def make_folders(folder: str, *, durable: bool = True) -> None:
    if os.path.isdir(folder):
        return
    make_folders(os.path.dirname(folder), durable=durable)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        if durable:
            sync_folder(os.path.dirname(folder))


def _wait(syncs: Syncs, path: str) -> None:
    try:
        syncs.wait()
    except OSError as error:
        # Not a StoreError as of a lost reply: it is certain that nothing was published.
        raise PreconditionError(
            f"{path!r} was not published, because earlier files could not be synced to the disk: {error.strerror or error}",
            operation="fsync",
        ) from error


def _sync_file(file: IO[bytes]) -> None:
    with file:
        os.fsync(file.fileno())


def sync_folder(folder: str) -> None:
    # A rename or link is durable only when the folder is; some file systems refuse to sync a folder, and then that is that.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def typed(path: str, *, root: str) -> Iterator[None]:
    try:
        yield
    except LanceError:
        raise  # many of them are OSErrors too
    except OSError as error:
        raise as_store_error(error, path, root=root) from error


def unfinished_gone(path: str, root: str) -> StoreError:
    """A file that was being written has no name any more. A NotFoundError would say that the table lacks a file."""
    return StoreError(
        f"{path!r} in {root}: its unfinished file was removed while it was written",
        uri=root,
        operation=UNFINISHED_GONE,
        cure="Another process took its writer for dead, or the folder is gone. Run the work again.",
    )


def as_store_error(error: OSError, path: str, *, root: str) -> NotFoundError | StoreError:
    where = f"{path!r} in {root}"
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return NotFoundError(f"no object {where}", uri=root)
    if error.errno is not None and error.errno in _REFUSALS:
        cure = _REFUSALS[error.errno]
        return StoreRefusedError(f"{where}: {error.strerror or error}", uri=root, operation="local", cure=cure)
    return StoreError(f"{where}: {error.strerror or error}", uri=root, operation="local")
