"""Fold upper case to lower case and letters with marks to ASCII, as the official tokenizer does.

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
    "Ǿ=O ǿ=o ᴭ=AE ᵑ=n ᶞ=d ẞ=SS ℏ=h ꟱=S ꟲ=C ꟳ=F ꟴ=Q ꟸ=H ꟹ=oe 𐞃=ae 𐞕=h 𐞢=o 𐞥=q 𝚤=i"
)
_YOUNG_CAPITALS = (
    (0x1C89, 0x1C89, 1), (0x2C2F, 0x2C2F, 48), (0xA7C0, 0xA7C0, 1), (0xA7CB, 0xA7CB, -42343), (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1), (0xA7D0, 0xA7D0, 1), (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1), (0xA7D6, 0xA7D6, 1),
    (0xA7D8, 0xA7D8, 1), (0xA7DA, 0xA7DA, 1), (0xA7DC, 0xA7DC, -42561), (0x10570, 0x1057A, 39), (0x1057C, 0x1058A, 39),
    (0x1058C, 0x10592, 39), (0x10594, 0x10595, 39), (0x10D50, 0x10D65, 32), (0x16EA0, 0x16EB8, 27),
)  # fmt: skip
"""First, last, how far their small letters are: capitals of Unicode 14 to 17, some of which no Python makes small yet."""
_OUTLINED = 0x1CCD6
"""Outlined capitals and digits, which older Python does not decompose."""


@cache
def _table() -> dict[int, str]:
    listed = {ord(pair[0]): pair[2:] for pair in _LISTED.split()}
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return {_OUTLINED + place: letter for place, letter in enumerate(plain)} | listed


def lower(text: str) -> str:
    """The text in small letters, letter by letter: the official tokenizer has no final sigma."""
    return text.lower() if text.isascii() else "".join(_lowered(letter) for letter in text)


@cache
def _lowered(letter: str) -> str:
    small, point = letter.lower(), ord(letter)
    if small != letter:
        return small
    return next((chr(point + far) for first, last, far in _YOUNG_CAPITALS if first <= point <= last), letter)


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
