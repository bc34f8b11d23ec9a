"""Blobs that are objects of somebody else: which uris may be stored, and how they are named. Pure.

::

    bases (1, "/media")   file:///media/a.mp4     -> (1, "a.mp4")                 below a registered base path
                          s3://other/a.mp4        -> refused                      outside of all bases
    allow_outside         s3://other/a.mp4        -> (0, "s3://other/a.mp4")      as the caller allowed

Readers fetch what is stored here from wherever it points to, on their own machines and with their own identity; so a uri
outside of the registered bases needs somebody's word, when it is stored and when it is read. (Official default.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from lance_core.errors import InputError
from lance_core.format.manifest import BasePath
from lance_core.io.options import ALLOW_EXTERNAL_BLOBS, is_true


@dataclass(frozen=True)
class ExternalUris:
    """The rule for one write."""

    bases: tuple[BasePath, ...] = ()
    allow_outside: bool = False

    @classmethod
    def of(cls, bases: Sequence[BasePath], options: Mapping[str, str] | None, *, allow: bool = False) -> ExternalUris:
        """The rule of a table with these bases, for a caller with these storage options."""
        return cls(tuple(bases), allow or is_true((options or {}).get(ALLOW_EXTERNAL_BLOBS)))

    def place(self, uri: str) -> tuple[int, str]:
        """(blob id, uri) of the descriptor. InputError for a uri that nobody allowed."""
        found = find_base(uri, self.bases)
        if found is not None:
            return found
        if self.allow_outside:
            return 0, uri
        raise InputError(
            f"the external blob {uri!r} is outside the registered base paths",
            cure="Register its folder with add_bases (or initial_bases), or write with "
            "allow_external_blob_outside_bases=True.",
        )


BASES_ONLY = ExternalUris()
"""Without bases: no uri at all."""

KEEP = ExternalUris(allow_outside=True)
"""For rows of the table itself that are written again: what is stored stays as it is."""


def find_base(uri: str, bases: Sequence[BasePath]) -> tuple[int, str] | None:
    """The base that a uri is below, and its path there; None when there is none. A dataset's root is no such base."""
    wanted = _bare(uri)
    if ".." in wanted.split("/"):
        return None
    for base in bases:
        folder = _bare(base.path).rstrip("/")
        if not base.is_dataset_root and wanted.startswith(f"{folder}/"):
            return base.id, wanted[len(folder) + 1 :]
    return None


def _bare(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else uri
