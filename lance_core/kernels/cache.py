"""Compiled kernels on disk: found by what they are made of, so that a folder of them can be shipped with an image.

::

    unpack-u4-5f0c...e1.kernel      the name is the digest of the kernels' source, numba, llvmlite, Python and the processor

A file's time or place does not count, so a copied folder stays good. Compiled code is run without a look, so a folder is
read only when nobody but its owner may write there, and its owner is this user or root.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pkgutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

_LOG = logging.getLogger(__name__)
_SUFFIX = ".kernel"


class KernelCache:
    """The cache of one variant, in the shape that a numba dispatcher asks for."""

    def __init__(
        self, name: str, digest: Callable[[Any], str], *, dump: Callable[[Any], bytes], load: Callable[[Any, bytes], Any]
    ) -> None:
        self._name = name
        self._digest = digest
        self._dump = dump
        self._load = load
        self.was_found = False

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled variant, None when no folder has it."""
        target_context.refresh()
        file = f"{self._name}-{self._digest(target_context.codegen().magic_tuple())}{_SUFFIX}"
        for folder in readable_folders():
            try:
                data = (folder / file).read_bytes()
            except OSError:
                continue
            try:
                found = self._load(target_context, data)
            except MemoryError:
                raise  # to compile it takes more
            except Exception:
                _LOG.warning("the compiled kernel %s cannot be loaded and is compiled again", folder / file, exc_info=True)
                continue
            self.was_found = True
            return found
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled variant in the first folder that this user may write."""
        folder = writable_folder()
        if folder is None:
            _LOG.warning("no writable folder for compiled kernels: each process compiles them again. Set NUMBA_CACHE_DIR.")
            return
        path = folder / f"{self._name}-{self._digest(compiled.codegen.magic_tuple())}{_SUFFIX}"
        try:
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".")
            with os.fdopen(handle, "wb") as file:
                file.write(self._dump(compiled))
            # A folder may be shipped to other users, who read it; who may write there is the folder's own matter.
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except OSError as error:
            _LOG.warning("the compiled kernel %s cannot be cached: %s", path, error)


def is_kept(name: str) -> bool:
    """Whether some folder has the variant, for whatever processor: a guess that needs no numba."""
    return any(entry.startswith(f"{name}-") for folder in readable_folders() for entry in _entries(folder))


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def readable_folders() -> Iterator[Path]:
    """Folders whose compiled kernels may be run."""
    return (path for path in _candidates() if is_trusted(path))


def writable_folder() -> Path | None:
    """The first folder that is ours to write, made when it is not there; None for none."""
    return next((path for path in _candidates() if is_private_and_writable(path)), None)


def _candidates() -> Iterator[Path]:
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    yield Path(base) / "lance_core" / "kernels"
    yield Path(tempfile.gettempdir()) / f"lance_core-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def is_trusted(path: Path) -> bool:
    """Whether only its owner may write there, and that is this user or root."""
    try:
        info = path.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode) or not hasattr(os, "getuid"):
        return stat.S_ISDIR(info.st_mode)
    return info.st_uid in (0, os.getuid()) and not info.st_mode & (stat.S_IWOTH | stat.S_IWGRP)


def is_private_and_writable(path: Path) -> bool:
    """Whether a folder, made when it is not there, is trusted, ours and writable."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_foreign = hasattr(os, "getuid") and path.stat().st_uid != os.getuid()
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK) and not is_foreign and is_trusted(path)


def digest_of(*parts: object) -> str:
    """A file name's digest: of these parts, this Python, and the source of every kernel."""
    told = (*parts, sys.implementation.cache_tag, _source_digest())
    return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


@lru_cache(maxsize=1)
def _source_digest() -> str:
    package = sys.modules["lance_core.kernels"]
    whole = hashlib.sha256()
    for module in sorted(item.name for item in pkgutil.iter_modules(package.__path__)):
        whole.update(module.encode())
        whole.update(pkgutil.get_data("lance_core.kernels", f"{module}.py") or b"")
    return whole.hexdigest()
