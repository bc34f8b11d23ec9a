"""Local files as a store: positioned reads that release the GIL, writes that are atomic and durable.

::

    put            .a.txn.3f9c.unfinished  written, fsync -> rename over a.txn        -> fsync of the folder
    put_if_absent  .5.manifest.77ab.unfinished written, fsync -> link to 5.manifest   -> fsync of the folder
                   the link fails when 5.manifest exists: the file system decides the race, once

`pread` and not a memory map: a map of a file that shrinks kills the process with SIGBUS, and a page fault holds the GIL.
Names ending in `.unfinished` are never listed; `list_unfinished` finds what dead writers left.

Open a local file to read it: not through another user's link, and nothing but a file.

::

    data/a.lance -> /etc/shadow     another user's link       StoreRefusedError
    data/a.lance                    a pipe                    StoreRefusedError, at once: nobody may ever write into it

Symbolic links below a root: followed only where this process's user or root made them. Standard library only.

::

    data -> /mnt/large/data      made by us or by root        followed
    data -> /lake/other/data     made by another user         StoreRefusedError

Who may write to a table's folder may put a link there, and whoever follows it reads, writes and deletes with its own
permissions what the link's maker may not reach. The root itself is the caller's choice and may be anything.

Names on a file system that ignores case (macOS's, Windows's, FAT, folders with `chattr +F`): one that is spelled otherwise
there is refused, and never taken for the same. Any spelling of the root is the same table.

::

    tree/side/ is there, tree/SIDE/ is requested       two folders elsewhere, one there       StoreRefusedError
"""

# `os` on plain strings: a scan makes these calls by the thousand, and pathlib costs as much as the read.
# ruff: noqa: PTH100, PTH106, PTH108, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

from lance_core.errors import CorruptFileError, LanceError, NotFoundError, StoreError, StoreRefusedError
from lance_core.fetch import Buffer, ByteRange, JointBuffers, ManyRanges
from lance_core.io.abilities import DeletesMany, ReadsScattered, SharesContent
from lance_core.io.limits import NO_LIMIT, check_size, limit_of
from lance_core.io.local.writer import LocalWriter, Syncs, as_store_error, make_folders, typed
from lance_core.io.paths import UNFINISHED_SUFFIX, checked_path, checked_prefix, is_unfinished
from lance_core.io.scattered_reads import read_scattered
from lance_core.io.store import StoreEntry

_MAX_READ = 1 << 30
"""The kernel returns at most about 2 GiB per call; larger reads loop."""

_FOLDER_ATTEMPTS = 10
"""Deleting the last file of a folder removes the folder, so a writer beside it may have to make it again."""

_CHOSEN = "_refs/"
"""Below it users choose the names of files: tags, branches. All others are numbers, random, or always the same."""

_MAX_CHECKED = 10_000
"""How many folders are remembered as free of links."""


class LocalStore(DeletesMany, ReadsScattered, SharesContent):
    """A folder as a store. The folder need not exist until something is written."""

    is_local = True
    is_wide = False
    has_put_if_absent = True

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = True, syncs: Syncs | None = None) -> None:
        """`durable=False`: nothing waits for the disk; what was written may be lost when the machine dies."""
        self._root = os.path.abspath(os.fspath(root))
        self._durable = durable
        self._syncs = syncs
        self._checked: set[str] = set()

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    @property
    def uri(self) -> str:
        """The absolute path of the folder."""
        return self._root

    def get(self, path: str) -> Buffer:
        """A whole file, if it is not larger than its kind may be."""
        return self._whole(path, most=limit_of(path))

    def _whole(self, path: str, *, most: int) -> Buffer:
        fd = self._open(path)
        try:
            size = os.fstat(fd).st_size
            check_size(path, size, most=most, uri=self._root)
            return _read(fd, path, ByteRange(0, size))
        except LanceError:
            raise
        except OSError as error:
            raise as_store_error(error, path, root=self._root) from error
        finally:
            os.close(fd)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """One `pread` per range."""
        fd = self._open(path)
        try:
            return [_read(fd, path, item) for item in ranges]
        except LanceError:
            raise
        except OSError as error:
            raise as_store_error(error, path, root=self._root) from error
        finally:
            os.close(fd)

    def get_scattered(self, path: str, asked: Sequence[ManyRanges]) -> Generator[JointBuffers, None, None]:
        """Several lists of ascending ranges, each into one piece of memory, read when it is requested."""
        fd = self._open(path)
        try:
            yield from read_scattered(fd, path, asked)
        except LanceError:
            raise
        except OSError as error:
            raise as_store_error(error, path, root=self._root) from error
        finally:
            os.close(fd)

    def size(self, path: str) -> int:
        """Bytes in a file."""
        return self._status(path).st_size

    def stat(self, path: str) -> StoreEntry:
        """Its size and when it was changed."""
        status = self._status(path)
        return StoreEntry(path=path, size=status.st_size, modified=status.st_mtime)

    def _status(self, path: str) -> os.stat_result:
        target = self._full(path)
        try:
            status = os.stat(target)
        except OSError as error:
            raise as_store_error(error, path, root=self._root) from error
        if not _is_file(status):
            raise NotFoundError(f"{path!r} is a folder, not a file", uri=self._root)
        return status

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Those of many paths at which there is no file, in order."""
        found = []
        for path in paths:
            target = self._full(path)
            try:
                if not _is_file(os.stat(target)):
                    found.append(path)
            except (FileNotFoundError, NotADirectoryError):
                found.append(path)
            except OSError as error:
                raise as_store_error(error, path, root=self._root) from error
        return found

    def not_listed(self, paths: Sequence[str], *, most: int) -> list[str]:
        """Those of many paths that the first `most` entries of their folders do not show as files, in order: for many files
        of a folder a tenth of what `missing` costs. One that is not listed may be there all the same."""
        unseen = dict.fromkeys(paths)
        for folder in {path.rpartition("/")[0] for path in paths}:
            prefix = f"{folder}/" if folder else ""
            # A folder that cannot be read, or that a path must not name: asking for the file itself says so.
            with contextlib.suppress(OSError), os.scandir(self._folder(prefix)) as entries:
                for entry in itertools.islice(entries, most):
                    if entry.is_file(follow_symlinks=False):
                        unseen.pop(prefix + entry.name, None)
        return list(unseen)

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write a temporary file, then rename it over the target."""
        self._chosen(path)
        writer = self._writer(path)
        with _aborting(writer):
            writer.write(data)
            writer.close(durable=durable)

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write a temporary file, then hard-link it to the target, which fails when the target exists."""
        writer = self._writer(path)
        with _aborting(writer):
            writer.write(data)
            # What is published may refer to whatever was streamed before.
            writer.close_if_absent(durable=durable, after=self._syncs)

    def put_same_if_absent(self, paths: Sequence[str], data: Buffer, *, durable: bool = True) -> list[str]:
        """The same bytes at many paths of one folder, as links to one file; returns those that were there already."""
        if not paths:
            return []
        writer = self._writer(paths[0])
        with _aborting(writer):
            writer.write(data)
            return writer.close_as_many([(self._full(path), path) for path in paths], durable=durable)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy, then link to the target."""
        self.put_if_absent(target, self._whole(source, most=NO_LIMIT))

    def open_writer(self, path: str) -> LocalWriter:
        """Stream into a temporary file in the target's folder; `close` renames it."""
        return self._writer(path, syncs=self._syncs)

    def syncing_later(self, syncs: Syncs) -> LocalStore:
        """This place, where streamed files reach the disk while others work; `put_if_absent` waits for them."""
        return LocalStore(self._root, durable=self._durable, syncs=syncs)

    def _writer(self, path: str, *, syncs: Syncs | None = None) -> LocalWriter:
        target = self._full(path)
        with typed(path, root=self._root):
            for _ in range(_FOLDER_ATTEMPTS):
                try:
                    # Any folder above may go while this is at it, when another process deletes the last file in it.
                    make_folders(os.path.dirname(target), durable=self._durable)
                    return LocalWriter(target, path, durable=self._durable, syncs=syncs)
                except FileNotFoundError:
                    continue
                except NotADirectoryError as error:
                    raise StoreError(f"{path!r}: a folder above it is a file", uri=self._root) from error
        raise StoreError(f"{path!r}: its folder was removed each time it was created", uri=self._root)

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Files below a folder, in no order; files that vanish in the meantime are left out."""
        return self._walk(prefix, unfinished=False)

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary files below a folder: of writers that are at work, or died."""
        return self._walk(prefix, unfinished=True)

    def list_names(self, folder: str) -> Sequence[str]:
        """Names of the files directly in a folder."""
        target = self._folder(folder)
        try:
            names = os.listdir(target)  # noqa: PTH208
            return _finished(names if _is_flat(target) else _files_in(target))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise as_store_error(error, folder, root=self._root) from error

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        target = self._folder(folder)
        try:
            with os.scandir(target) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise as_store_error(error, folder, root=self._root) from error

    def delete(self, path: str) -> None:
        """Remove a file, and the folders above it that became empty, up to the root."""
        with typed(path, root=self._root):
            folder = self._unlink(path)
            if folder is not None:
                self._drop_empty_folders(folder)

    def delete_many(self, paths: Iterable[str]) -> None:
        """Like `delete` of each, in this order; folders are checked once, when all files are gone."""
        folders: dict[str, None] = {}
        for path in paths:
            try:
                folder = self._unlink(path)
            except LanceError:
                raise  # many of them are OSErrors too
            except OSError as error:
                raise as_store_error(error, path, root=self._root) from error
            if folder is not None:
                folders[folder] = None
        for folder in folders:
            self._drop_empty_folders(folder)

    def child(self, path: str) -> LocalStore:
        """A store rooted at a sub-folder."""
        bare = checked_path(path.rstrip("/"))
        self._check_folder(bare)
        return LocalStore(os.path.join(self._root, bare), durable=self._durable, syncs=self._syncs)

    def _full(self, path: str) -> str:
        target = f"{self._root}{os.sep}{checked_path(path)}"
        folder = path.rpartition("/")[0]
        if folder not in self._checked:
            self._check_folder(folder)
        return target

    def _folder(self, prefix: str) -> str:
        target = os.path.join(self._root, checked_prefix(prefix))
        self._check_folder(prefix.rstrip("/"))
        return target

    def _check_folder(self, folder: str) -> None:
        if folder and folder not in self._checked:
            is_there = check_folder(self._root, folder)
            if is_there and len(self._checked) < _MAX_CHECKED:
                self._checked.add(folder)

    def _unlink(self, path: str) -> str | None:
        """Remove a file; its folder, None when there was no such file."""
        target = self._chosen(path)
        try:
            os.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return os.path.dirname(target)

    def _open(self, path: str) -> int:
        return open_to_read(self._chosen(path), path, root=self._root)

    def _chosen(self, path: str) -> str:
        """The file of a path; NotFoundError where its name is one that users choose, and spelled otherwise there."""
        target = self._full(path)
        if path.startswith(_CHOSEN):
            _check_file_spelling(target, path, root=self._root)
        return target

    def _walk(self, prefix: str, *, unfinished: bool) -> Iterator[StoreEntry]:
        start = self._folder(prefix)
        # A folder that cannot be read must not count as empty: what is missing from a listing may be deleted.
        for folder, _, names in os.walk(start, onerror=_raise_unless_gone):
            below = os.path.relpath(folder, self._root).replace(os.sep, "/")
            for name in names:
                if is_unfinished(name) is not unfinished:
                    continue
                with contextlib.suppress(FileNotFoundError), typed(name, root=self._root):
                    status = os.stat(os.path.join(folder, name))
                    relative = name if below == "." else f"{below}/{name}"
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


def _is_flat(folder: str) -> bool:
    """Whether a folder certainly has no folders in it: each would be one more link to it. Where a file system does not count
    them, the answer is no.

    Asked after the names were read: a folder among them that is gone by then looks like a file that is gone.
    """
    return os.stat(folder).st_nlink == 2


def _files_in(folder: str) -> list[str]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            # A link that leads in a circle.
            with contextlib.suppress(OSError):
                if entry.is_file():
                    found.append(entry.name)
    return found


def _finished(names: list[str]) -> list[str]:
    # One search in all names: a table has thousands of versions, and each commit lists them.
    if UNFINISHED_SUFFIX not in "/".join(names):
        return names
    return [name for name in names if not is_unfinished(name)]


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        folder, name = os.path.split(str(error.filename))
        raise as_store_error(error, name, root=folder) from error


def _read(fd: int, path: str, item: ByteRange) -> Buffer:
    if item.size <= 0:
        return b""
    data = os.pread(fd, min(item.size, _MAX_READ), item.start) if _plausible(fd, item) else b""
    if len(data) == item.size:
        return data
    if item.end > os.fstat(fd).st_size:
        raise CorruptFileError(
            f"{path!r} ends at byte {os.fstat(fd).st_size}, but bytes {item.start} to {item.end} were requested",
            cure="The file is truncated, or the metadata that refers to it is damaged.",
        )
    parts = [data]
    position = item.start + len(data)
    while position < item.end:
        part = os.pread(fd, min(item.end - position, _MAX_READ), position)
        if not part:
            raise CorruptFileError(f"{path!r} became shorter while it was read")
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def _plausible(fd: int, item: ByteRange) -> bool:
    # pread allocates the requested length before it reads: a damaged length must not become a giant allocation.
    return item.start >= 0 and (item.size <= 1 << 20 or item.end <= os.fstat(fd).st_size)


def _is_file(status: os.stat_result) -> bool:
    return (status.st_mode & 0o170000) == 0o100000


@contextlib.contextmanager
def _aborting(writer: LocalWriter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        writer.abort()
        raise


def local_path(root: str) -> str:
    """The folder a plain path means: `~` expanded, made absolute."""
    return str(Path(root).expanduser().absolute())


# Without waiting: opening a pipe with nobody at its other end holds the thread forever.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def open_to_read(target: str, path: str, *, root: str) -> int:
    """A descriptor of the file `target`, which errors call `path`."""
    try:
        return _checked(os.open(target, _FLAGS | NO_FOLLOW), path, root=root)
    except StoreRefusedError:
        raise
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise as_store_error(error, path, root=root) from error
    check_link(target, root=root)
    try:
        return _checked(os.open(target, _FLAGS), path, root=root)
    except StoreRefusedError:
        raise
    except OSError as error:
        raise as_store_error(error, path, root=root) from error


def _checked(fd: int, path: str, *, root: str) -> int:
    """The descriptor, unless it is one of a pipe, a device or a socket. Reading a folder fails with an error of its own."""
    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        return fd
    os.close(fd)
    raise StoreRefusedError(
        f"{path!r} is neither a file nor a folder, but a pipe, a device or a socket",
        uri=root,
        cure="Remove it: no table has such files.",
    )


NO_FOLLOW = 0 if sys.platform == "win32" else os.O_NOFOLLOW
"""For `os.open`: ELOOP when the file itself is a link."""


def check_folder(root: str, folder: str) -> bool:
    """Refuse a folder below the root that is behind another user's link, or spelled otherwise; False when there is none."""
    path = root
    for part in folder.split("/"):
        path = f"{path}/{part}"
        if not check_link(path, root=root):
            return False
        _check_folder_spelling(path, root=root)
    return True


def check_link(path: str, *, root: str) -> bool:
    """Refuse another user's link; False when nothing is there."""
    try:
        status = os.lstat(path)
    except OSError:
        return False  # what is done next fails with an error of its own, or makes the folder
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in trusted_users():
        raise StoreRefusedError(
            f"{path!r} is a symbolic link of user {status.st_uid}, and is not followed",
            uri=root,
            cure="Put the files themselves there, or have the link made by the user of this process, or by root.",
        )
    return True


def trusted_users() -> frozenset[int]:
    """Whose links are followed."""
    if sys.platform == "win32":  # says 0 of every file
        return frozenset({0})
    return frozenset({0, os.geteuid()})


_SPELL_IT = "Spell the name as it is there, or choose one that differs in more than the case of its letters."


def _check_folder_spelling(path: str, *, root: str) -> None:
    """Refuse a folder that is there under another spelling only."""
    found = _other_spelling(path)
    if found is not None:
        raise StoreRefusedError(
            f"{path!r} is {found!r} there: this file system ignores the case of letters", uri=root, cure=_SPELL_IT
        )


def _check_file_spelling(target: str, path: str, *, root: str) -> None:
    """NotFoundError for a file that is there under another spelling only."""
    found = _other_spelling(target)
    if found is not None:
        raise NotFoundError(
            f"{path!r} does not exist, but {found!r}, which this file system takes for the same", uri=root, cure=_SPELL_IT
        )


def _other_spelling(path: str) -> str | None:
    """How a name is spelled that the file system takes for this one; None where it is spelled so, or not there."""
    folder, name = os.path.split(path)
    other = name.swapcase()
    if other == name or not os.path.lexists(os.path.join(folder, other)):
        return None
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return None  # what is done next fails with an error of its own
    if name in names:
        return None
    alike = [found for found in names if found.casefold() == name.casefold()]
    return alike[0] if alike else other
