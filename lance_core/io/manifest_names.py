"""The version in the name of a manifest. Pure, and below every package that uses such names.

::

    "18446744073709551613.manifest"  -> (2, True)     scheme V2 counts down from 2^64 - 1, always 20 digits
    "2.manifest"                     -> (2, False)    scheme V1
    "2.manifest-5f0c…"               -> None          staged for an external manifest store: not published under this name
    "d9223372036854775810.manifest"  -> None          a detached version

(Spec: FORMAT C.3.)
"""

from __future__ import annotations

U64_MAX = (1 << 64) - 1
SUFFIX = ".manifest"
V2_DIGITS = 20


def number_of(name: str) -> tuple[int, bool] | None:
    """(version, whether the scheme is V2) of a file name; None when it is no manifest of an attached version."""
    stem, dot, rest = name.partition(".")
    if dot + rest != SUFFIX or not stem.isascii() or not stem.isdigit() or len(stem) > V2_DIGITS:
        return None
    number = int(stem)
    if number > U64_MAX:
        return None
    # V1 numbers are small, V2 numbers have all 20 digits: versions stay below 10^19 in both.
    return (U64_MAX - number, True) if len(stem) == V2_DIGITS else (number, False)
