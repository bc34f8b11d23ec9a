"""How many bytes of an object are read as a whole, by what its name says it is. Checked before anything is read.

::

    _versions/7.manifest                 40 GB of nothing, a sparse file     refused: a manifest has at most 1 GiB
    _refs/tags/prod.json                 5 KB                                read

Who may write to a table's folder may plant a file of any size that takes no disk, and whoever reads it whole runs out of
memory. Data files are read by ranges, so they have no limit here. LANCE_WHOLE_OBJECT_BYTES sets another one for all kinds.
A listing that never ends is given up as well: LANCE_LISTING_ENTRIES, LANCE_LISTING_SECONDS.
"""

from __future__ import annotations

import os
import time

from lance_core.errors import StoreRefusedError, UnsupportedFeatureError

LIMIT_VARIABLE = "LANCE_WHOLE_OBJECT_BYTES"
NO_LIMIT = 1 << 63
"""For copies, which are of data files too."""

ENTRIES_VARIABLE, SECONDS_VARIABLE = "LANCE_LISTING_ENTRIES", "LANCE_LISTING_SECONDS"
_ENTRIES, _SECONDS = 20_000_000, 3600

_MIB = 1 << 20
_BY_SUFFIX = (
    (".manifest", 1024 * _MIB),
    (".txn", 1024 * _MIB),
    (".json", 256 * _MIB),
    ("checksums", 64 * _MIB),
)
_OTHERS = 1024 * _MIB
"""Deletion files, segments of the ledger."""


def limit_of(path: str) -> int:
    """The most bytes that an object of this name is read with as a whole."""
    given = _number(LIMIT_VARIABLE, -1)
    if given >= 0:
        return given
    return next((most for suffix, most in _BY_SUFFIX if path.endswith(suffix)), _OTHERS)


def check_size(path: str, size: int, *, most: int, uri: str) -> None:
    """UnsupportedFeatureError for an object that is larger than what is read as a whole."""
    if size > most:
        raise UnsupportedFeatureError(
            f"{path!r} has {size:,} bytes, and objects of its kind are read with at most {most:,}",
            uri=uri,
            cure=f"If it is right, set {LIMIT_VARIABLE} to a larger number; if nobody of yours wrote it, remove it.",
        )


class ListingBound:
    """How much one listing may show, and how long it may take. A store whose pages never end would fill the memory."""

    def __init__(self, path: str, *, uri: str) -> None:
        self._path = path
        self._uri = uri
        self._entries = _number(ENTRIES_VARIABLE, _ENTRIES)
        self._seconds = _number(SECONDS_VARIABLE, _SECONDS)
        self._seen = 0
        self._begun = time.monotonic()

    def count(self, entries: int) -> None:
        """A page has come. StoreRefusedError when it is one too many."""
        self._seen += entries
        for most, found, unit, name in (
            (self._entries, self._seen, "entries", ENTRIES_VARIABLE),
            (self._seconds, time.monotonic() - self._begun, "seconds", SECONDS_VARIABLE),
        ):
            if found > most:
                raise StoreRefusedError(
                    f"the listing of {self._path!r} did not end within {most:,} {unit}",
                    uri=self._uri,
                    cure=f"If there are so many objects, set {name} to a larger number; if not, the store is at fault.",
                )

    def goes_on(self, last: str, first: str) -> None:
        """Of a store that lists in order: StoreRefusedError for a page that begins before the last one's end."""
        if first.encode() <= last.encode():
            raise StoreRefusedError(
                f"the listing of {self._path!r} does not go on: after {last!r} comes {first!r}",
                uri=self._uri,
                cure="The store repeats pages, or does not list in order; it cannot hold tables.",
            )


def _number(variable: str, default: int) -> int:
    given = os.environ.get(variable, "")
    return int(given) if given.isdecimal() else default
