"""Paths inside a store: relative, with forward slashes, never outside the root.

::

    checked_path("data/a.lance")   -> "data/a.lance"
    checked_path("../secret")      -> InputError
    checked_path("/etc/passwd")    -> InputError

Paths come from manifests as well as from callers, and a manifest is a file that anybody may have written.
"""

from __future__ import annotations

from lance_core.errors import InputError

UNFINISHED_SUFFIX = ".unfinished"
"""Ending of a temporary name of ours; what wears it was never visible and belongs to a writer that is alive or dead."""
UNFINISHED_GONE = "write of an unfinished file"
"""The operation of the StoreError of a writer whose unfinished file somebody removed."""

_CLIMBS = frozenset({".", ".."})


def checked_path(path: str) -> str:
    """The path itself, when it names an object below the root; InputError when it is empty, absolute or climbs out."""
    if not path:
        raise InputError("the path of an object must not be empty", cure="Pass a path relative to the table's root.")
    _refuse_hostile(path)
    if path.endswith("/") or "//" in path:
        raise InputError(f"path {path!r} is not the path of an object", cure="Use single slashes and no trailing slash.")
    return path


def checked_prefix(prefix: str) -> str:
    """A folder prefix: "" for the root, otherwise a relative folder that ends in "/"."""
    if prefix == "":
        return prefix
    _refuse_hostile(prefix)
    return prefix if prefix.endswith("/") else prefix + "/"


def _refuse_hostile(path: str) -> None:
    absolute = path.startswith("/") or (path[1:2] == ":" and path[0].isalpha())
    may_climb = path.startswith(".") or "/." in path
    if absolute or "\\" in path or "\x00" in path or (may_climb and not _CLIMBS.isdisjoint(path.split("/"))):
        raise InputError(
            f"path {path!r} is outside the root of the table",
            cure="Use a relative path with forward slashes, without `.`, `..` or a drive.",
        )


def is_unfinished(name: str) -> bool:
    """Whether a file name is the temporary name of a write that has not ended."""
    return name.endswith(UNFINISHED_SUFFIX)
