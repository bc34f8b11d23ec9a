"""Symbolic links below a root: followed only where this process's user or root made them. Standard library only.

::

    data -> /mnt/large/data      made by us or by root        followed
    data -> /lake/other/data     made by another user         StoreRefusedError

Who may write to a table's folder may put a link there, and whoever follows it reads, writes and deletes with its own
permissions what the link's maker may not reach. The root itself is the caller's choice and may be anything.
"""

from __future__ import annotations

import os
import stat
import sys

from lance_core.errors import StoreRefusedError

NO_FOLLOW = 0 if sys.platform == "win32" else os.O_NOFOLLOW
"""For `os.open`: ELOOP when the file itself is a link."""


def check_folder(root: str, folder: str) -> bool:
    """Refuse a folder below the root that is behind another user's link; False when there is no such folder."""
    path = root
    for part in folder.split("/"):
        path = f"{path}/{part}"
        if not check_link(path, root=root):
            return False
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
