"""Letters with marks become plain ones, then all become small: what n-gram indices do to a text first.

::

    "Crème Brûlée, STRASSE"  ->  "creme brulee, strasse"
"""

from __future__ import annotations

import unicodedata

_SPECIAL = str.maketrans(
    {
        "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
        "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ħ": "h", "Ħ": "H", "ı": "i", "ŋ": "n", "Ŋ": "N",
        "ŧ": "t", "Ŧ": "T", "ĸ": "q",
    }
)  # fmt: skip


def fold(text: str) -> str:
    """The text in plain small letters as far as that goes; what has no plain form stays."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.translate(_SPECIAL))
    return "".join(char for char in apart if not unicodedata.combining(char)).lower()
