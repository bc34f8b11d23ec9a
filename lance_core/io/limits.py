"""How many bytes of an object are read as a whole, by what its name says it is. Checked before anything is read.

::

    _versions/7.manifest                 40 GB of nothing, a sparse file     refused: a manifest has at most 1 GiB
    _refs/tags/prod.json                 5 KB                                read

Who may write to a table's folder may plant a file of any size that takes no disk, and whoever reads it whole runs out of
memory. Data files are read by ranges, so they have no limit here. LANCE_WHOLE_OBJECT_BYTES sets another one for all kinds.
"""

from __future__ import annotations

import os

from lance_core.errors import UnsupportedFeatureError

LIMIT_VARIABLE = "LANCE_WHOLE_OBJECT_BYTES"
NO_LIMIT = 1 << 63
"""For copies, which are of data files too."""

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
    given = os.environ.get(LIMIT_VARIABLE, "")
    if given.isdecimal():
        return int(given)
    return next((most for suffix, most in _BY_SUFFIX if path.endswith(suffix)), _OTHERS)


def check_size(path: str, size: int, *, most: int, uri: str) -> None:
    """UnsupportedFeatureError for an object that is larger than what is read as a whole."""
    if size > most:
        raise UnsupportedFeatureError(
            f"{path!r} has {size:,} bytes, and objects of its kind are read with at most {most:,}",
            uri=uri,
            cure=f"If it is right, set {LIMIT_VARIABLE} to a larger number; if nobody of yours wrote it, remove it.",
        )
