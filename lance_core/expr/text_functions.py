"""Functions over texts that Arrow has no kernel for: one row each in a table, as in `functions`.

::

    strpos('abc', 'b') -> 2     left('abc', -1) -> 'ab'     split_part('a.b', '.', -1) -> 'b'     md5('') -> 'd41d8cd9...'

They are computed row by row; a null argument gives null, where nothing else is said.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, as_text, family_of, plain
from lance_core.expr.rows import made_of, rows_of

MAX_TEXT = 1 << 24
"""Characters of one value that a function may make: a filter must not fill the memory."""
_HASHES = ("md5", "sha224", "sha256", "sha384", "sha512")


def by_row(function: Callable[..., Any], kind: pa.DataType, *values: Value) -> Value:
    """The function of each row's values; null where one of them is null."""
    return made_of((None if None in row else function(*row) for row in rows_of(values)), kind, values)


def _made(name: str, function: Callable[..., Any], kind: pa.DataType, families: tuple[str, ...]) -> Callable[..., Value]:
    """A function whose arguments are of these families."""

    def call(*values: Value) -> Value:
        plains = [
            as_text(value, name) if family == "any" else plain(value)
            for value, family in zip(values, (*families, *families[-1:] * len(values)), strict=False)
        ]
        for value, family in zip(plains, families, strict=False):
            if family_of(value.type) not in (*family.split("|"), "null") and family != "any":
                raise FilterError(f"{name} expects {family}, got {value.type}", cure="CAST it.")
        kinds = [value.type for value in plains]
        is_large = any(kind == pa.large_string() for kind in (kinds if name == "replace" else kinds[:1]))
        if name == "encode":
            is_large = kinds[0] in (pa.large_string(), pa.large_binary())
        if name == "levenshtein":
            is_large = is_large and values[1].type in (pa.string(), pa.large_string())
        if name == "substr_index":
            is_large = kinds[:2] == [pa.large_string()] * 2
        return by_row(function, _LARGE[kind] if is_large and name not in _SMALL else kind, *plains)

    return call


_LARGE: Mapping[pa.DataType, pa.DataType] = MappingProxyType(
    {pa.string(): pa.large_string(), pa.int32(): pa.int64(), pa.binary(): pa.binary()}
)
_SMALL = frozenset({"ascii", "left", "right", "md5"})
"""Functions that give a short text or number of a long text too."""


def _sized(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise FilterError(f"the function returns a string of {len(text):,} characters, the limit is {MAX_TEXT:,}")
    return text


def _left(text: str, count: int) -> str:
    return text[:count]


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else text[-count:] if count < 0 else ""


def _replace(text: str, old: str, new: str) -> str:
    if text.count(old) * len(new) > MAX_TEXT:
        raise FilterError(f"replace returns a string of more than {MAX_TEXT:,} characters")
    return text.replace(old, new)


def _repeat(text: str, count: int) -> str:
    if len(text) * count > MAX_TEXT:
        raise FilterError(f"repeat returns a string of more than {MAX_TEXT:,} characters")
    return text * max(count, 0)


def _padding(text: str, count: int, fill: str) -> str:
    missing = max(min(count, MAX_TEXT + 1) - len(text), 0)
    return _sized((fill * (missing // len(fill) + 1))[:missing]) if fill else ""


def _lpad(text: str, count: int, fill: str = " ") -> str:
    return _padding(text, count, fill) + text[: max(count, 0)]


def _rpad(text: str, count: int, fill: str = " ") -> str:
    return text[: max(count, 0)] + _padding(text, count, fill)


def _split_part(text: str, by: str, number: int) -> str:
    if number == 0:
        raise FilterError("the index of split_part counts from 1, or from -1 backwards, and cannot be 0")
    parts = text.split(by) if by else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def _substr_index(text: str, by: str, count: int) -> str:
    if not by or not count:
        return ""
    parts = text.split(by)
    return by.join(parts[:count] if count > 0 else parts[count:])


def _initcap(text: str) -> str:
    made, inside = [], False
    for letter in text:
        made.append(letter.lower() if inside else letter.upper())
        inside = letter.isalnum()
    return "".join(made)


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for number, letter in enumerate(old):
        table.setdefault(ord(letter), new[number] if number < len(new) else None)
    return text.translate(table)


def _levenshtein(left: str, right: str) -> int:
    if len(left) * len(right) > MAX_TEXT:
        raise FilterError("the strings are too long for levenshtein")
    before = list(range(len(right) + 1))
    for number, letter in enumerate(left, 1):
        row = [number]
        for place, other in enumerate(right, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != other)))
        before = row
    return before[-1]


def _chr(number: int) -> str:
    if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
        raise FilterError(f"no character has the code {number}")
    return chr(number)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _digest(value: str | bytes, name: str) -> bytes:
    if name.lower() not in _HASHES:
        raise FilterError(f"unknown digest {name!r}", cure=f"Known: {', '.join(_HASHES)}.")
    return hashlib.new(name.lower(), _bytes_of(value), usedforsecurity=False).digest()


def _encode(value: str | bytes, name: str) -> str:
    if name.lower() == "hex":
        return _bytes_of(value).hex()
    if name.lower() == "base64":
        return base64.b64encode(_bytes_of(value)).decode().rstrip("=")
    raise FilterError(f"unknown encoding {name!r}", cure="Known: hex, base64.")


def _stripped(name: str, how: Callable[[str, str], str]) -> tuple[int, int, Callable[..., Value]]:
    """Of spaces, or of the characters given."""

    def function(text: str, letters: str = " ") -> str:
        return how(text, letters)

    return (1, 2, _made(name, function, pa.string(), ("text", "text")))


def _row(
    name: str, fewest: int, most: int, function: Callable[..., Any], kind: pa.DataType, *families: str
) -> tuple[int, int, Callable[..., Value]]:
    return fewest, most, _made(name, function, kind, families)


_ANY = "text|bytes"
_POSITION = _row("strpos", 2, 2, lambda text, part: text.find(part) + 1, pa.int32(), "text", "text")
_SUBSTR_INDEX = _row("substr_index", 3, 3, _substr_index, pa.string(), "any", "any", "int")
TEXT_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Value]]] = MappingProxyType(
    {
        "strpos": _POSITION,
        "instr": _POSITION,
        "position": _POSITION,
        "left": _row("left", 2, 2, _left, pa.string(), "any", "int"),
        "right": _row("right", 2, 2, _right, pa.string(), "any", "int"),
        "replace": _row("replace", 3, 3, _replace, pa.string(), "text", "text", "text"),
        "repeat": _row("repeat", 2, 2, _repeat, pa.string(), "text", "int"),
        "lpad": _row("lpad", 2, 3, _lpad, pa.string(), "any", "int", "any"),
        "rpad": _row("rpad", 2, 3, _rpad, pa.string(), "any", "int", "any"),
        "btrim": _stripped("btrim", str.strip),
        "ltrim": _stripped("ltrim", str.lstrip),
        "rtrim": _stripped("rtrim", str.rstrip),
        "split_part": _row("split_part", 3, 3, _split_part, pa.string(), "text", "text", "int"),
        "substr_index": _SUBSTR_INDEX,
        "substring_index": _SUBSTR_INDEX,
        "initcap": _row("initcap", 1, 1, _initcap, pa.string(), "text"),
        "translate": _row("translate", 3, 3, _translate, pa.string(), "any", "any", "any"),
        "levenshtein": _row("levenshtein", 2, 2, _levenshtein, pa.int32(), "text", "text"),
        "ascii": _row("ascii", 1, 1, lambda text: ord(text[0]) if text else 0, pa.int32(), "text"),
        "chr": _row("chr", 1, 1, _chr, pa.string(), "int"),
        "bit_length": _row("bit_length", 1, 1, lambda text: 8 * len(_bytes_of(text)), pa.int32(), "text"),
        "md5": _row("md5", 1, 1, lambda value: _digest(value, "md5").hex(), pa.string(), _ANY),
        "digest": _row("digest", 2, 2, _digest, pa.binary(), _ANY, "text"),
        "encode": _row("encode", 2, 2, _encode, pa.string(), _ANY, "text"),
        **{
            name: _row(name, 1, 1, lambda value, name=name: _digest(value, name), pa.binary(), _ANY)
            for name in _HASHES
            if name != "md5"
        },
    }
)
