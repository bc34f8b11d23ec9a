"""Open a local file to read it: not through another user's link, and nothing but a file.

::

    data/a.lance -> /etc/shadow     another user's link       StoreRefusedError
    data/a.lance                    a pipe                    StoreRefusedError, at once: nobody may ever write into it
"""

from __future__ import annotations

import errno
import os
import stat

from lance_core.errors import StoreRefusedError
from lance_core.io.local.links import NO_FOLLOW, check_link
from lance_core.io.local.writer import as_store_error

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
