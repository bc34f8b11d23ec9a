"""Lower-case letters and remove their marks: the first step of n-gram indices.

::

    "Crème Brûlée, STRASSE ½"  ->  "creme brulee, strasse 12"

The official library drops what is not ASCII from the compatibility decomposition of a letter; a mark that stands alone, as
in decomposed text, stays and separates words. Capitals that only a decomposition brings (the trade mark sign is TM) it gives
numbers of its own; here they are made small.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_SPECIAL = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "n",
    "ŧ": "t", "ĸ": "k", "ẚ": "a",
}  # fmt: skip


def fold(text: str) -> str:
    """The text in plain small letters as far as that goes; what has no plain form stays."""
    small = text.lower()
    return small if small.isascii() else "".join(char if char < "\x80" else _plain(char) for char in small)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    parts = unicodedata.normalize("NFKD", char)
    if parts == char:
        return char
    kept = "".join(_SPECIAL.get(part, part) for part in parts)
    return "".join(part for part in kept if part.isascii() and part.isalnum()).lower() or char
