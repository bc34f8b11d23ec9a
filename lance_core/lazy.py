"""Lazy public faces (PEP 562): a module that passes on names from where they are defined, and imports nothing before.

::

    if TYPE_CHECKING:
        from lance_core.format.fragment import Fragment as FragmentMetadata
    else:
        __getattr__, __dir__ = lazy_face(__name__, {"FragmentMetadata": "lance_core.format.fragment:Fragment"})

A type checker reads the imports, Python reads the table; a test holds the two equal.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from lance_core.errors import StoreError


def _loaded(source: str) -> object:
    """The module. Raises StoreError where this process has no file handle left to load it with."""
    try:
        return import_module(source)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise StoreError(
            f"{source} cannot be loaded: {error.strerror}",
            cure="Raise the limit (ulimit -n), or close what this process has open.",
        ) from error


def lazy_face(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a face. A home is `module`, `module:name` where it has another name there,
    or, for a submodule, `module:`."""

    def getattribute(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source, renamed, own = home.partition(":")
        found: object = _loaded(source)
        if own or not renamed:
            found = getattr(found, own or name)
        setattr(sys.modules[module], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes})

    return getattribute, names
