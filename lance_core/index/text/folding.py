"""Letters with marks to plain ASCII, as the official tokenizer folds them.

::

    fold("crème brûlée ﬁ ½")  ->  "creme brulee fi 12"        fold("日本 ć")  ->  "日本 ć" with its loose accent kept

A character that has a compatibility decomposition keeps the ASCII part of it; some have none and are listed; a character
without an ASCII part stays.
"""

from __future__ import annotations

import unicodedata
from functools import cache

_LISTED = (
    "Æ=AE Ð=D Ø=O Þ=TH ß=ss æ=ae ð=d ø=o þ=th Đ=D đ=d Ħ=H ħ=h ı=i ĸ=k Ł=L ł=l Ŋ=N ŋ=n Œ=OE œ=oe Ŧ=T ŧ=t Ǣ=AE ǣ=ae Ǽ=AE ǽ=ae "
    "Ǿ=O ǿ=o ᴭ=AE ᵑ=n ᶞ=d ẞ=SS ℏ=h ꟱=S ꟸ=H ꟹ=oe 𐞃=ae 𐞕=h 𐞢=o 𝚤=i"
)
_OUTLINED = 0x1CCD6
"""Outlined capitals and digits, which older Python does not decompose."""


@cache
def _table() -> dict[int, str]:
    listed = {ord(pair[0]): pair[2:] for pair in _LISTED.split()}
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return {_OUTLINED + place: letter for place, letter in enumerate(plain)} | listed


def fold(text: str) -> str:
    """The text with every character that can be folded folded."""
    return text if text.isascii() else "".join(_folded(letter) for letter in text)


@cache
def _folded(letter: str) -> str:
    if letter.isascii():
        return letter
    listed = _table().get(ord(letter))
    if listed is not None:
        return listed
    parts = "".join(part for part in unicodedata.normalize("NFKD", letter) if part.isascii())
    return parts or letter
