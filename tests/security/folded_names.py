"""A file system that ignores the case of names and keeps it: as a model over this one's calls, and mounted where it can be.

::

    tree/side/ is there        open("tree/SIDE/a"), mkdir("tree/SIDE"), link(..., "tree/SIDE/a") are about tree/side/
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

_ONE_PATH = ("open", "lstat", "stat", "listdir", "scandir", "mkdir", "rmdir", "unlink", "access")
_TWO_PATHS = ("link", "rename", "replace")


@contextlib.contextmanager
def folding(root: Path) -> Iterator[None]:
    """Below a folder, names that differ by case only are one, whoever asks by Python's own calls."""
    below, listdir = f"{root}{os.sep}", os.listdir

    def meant(path: Any) -> Any:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path).startswith(below):
            return path
        found = str(root)
        for name in Path(path).relative_to(root).parts:
            with contextlib.suppress(OSError):
                names = listdir(found)
                name = next((one for one in names if one.casefold() == name.casefold()), name)
            found = f"{found}{os.sep}{name}"
        return found

    def about(call: Callable[..., Any], paths: int) -> Callable[..., Any]:
        @functools.wraps(call)
        def mapped(*given: Any, **named: Any) -> Any:
            return call(*map(meant, given[:paths]), *given[paths:], **named)

        return mapped

    with contextlib.ExitStack() as patched:
        for name in _ONE_PATH:
            patched.enter_context(mock.patch.object(os, name, about(getattr(os, name), 1)))
        for name in _TWO_PATHS:
            patched.enter_context(mock.patch.object(os, name, about(getattr(os, name), 2)))
        patched.enter_context(mock.patch.object(builtins, "open", about(builtins.open, 1)))
        yield


def _casefolded_ext4(image: Path, place: Path) -> list[list[str]]:
    return [
        ["mkfs.ext4", "-q", "-O", "casefold", str(image)], ["mount", "-o", "loop", str(image), str(place)],
        ["mkdir", f"{place}/lake"], ["chattr", "+F", f"{place}/lake"],
    ]  # fmt: skip


def _vfat(image: Path, place: Path) -> list[list[str]]:
    return [["mkfs.vfat", str(image)], ["mount", "-o", "loop", str(image), str(place)], ["mkdir", f"{place}/lake"]]


def _ntfs(image: Path, place: Path) -> list[list[str]]:
    """It shows the names in small letters, whatever they were made as, and has hard links."""
    return [
        ["mkntfs", "-q", "-F", str(image)], ["lowntfs-3g", "-o", "ignore_case", str(image), str(place)],
        ["mkdir", f"{place}/lake"],
    ]  # fmt: skip


KINDS = {"ext4": _casefolded_ext4, "vfat": _vfat, "ntfs": _ntfs}


@contextlib.contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Path | None]:
    """A folder of such a file system, None where this user, this kernel or this machine has none."""
    image, place = folder / "image", folder / "mounted"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    commands = KINDS[kind](image, place)
    may = os.name == "posix" and os.geteuid() == 0 and all(shutil.which(command[0]) for command in commands)
    is_there = may and all(subprocess.run(one, capture_output=True, check=False).returncode == 0 for one in commands)
    try:
        yield place / "lake" if is_there else None
    finally:
        if may:
            subprocess.run(["umount", str(place)], capture_output=True, check=False)
