"""Functions of regular expressions and of positions in texts: one row each in a table, as in `functions`.

::

    regexp_replace('abcab', '(b)', '[$1]', 'g') -> 'a[b]ca[b]'     regexp_count('abcab', 'a') -> 2
    regexp_instr('abcab', 'b', 3) -> 5     overlay('abcab', 'ZZ', 2, 1) -> 'aZZcab'     find_in_set('b', 'a,b') -> 2

Patterns are those of Rust's `regex` (`regex_dialect`). Positions count from 1. The module `regex` is used because it
can be told when to stop: a repetition within a repetition takes twice as long with each character of a text.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, as_text, family_of, plain
from lance_core.expr.patterns import MAX_SECONDS, compiled, in_time, regex_module
from lance_core.expr.rows import made_of, rows_of
from lance_core.expr.text_functions import MAX_TEXT

Row = tuple[int, int, Callable[..., Value]]
_GROUP = re.compile(r"\\?\\(\d+)|\$([0-9A-Za-z_]+)|\$\{(\w*)\}|\$\$")


@lru_cache(maxsize=64)
def _template(replacement: str) -> tuple[str, ...]:
    """The replacement as text, group, text, group, ..., text; `$$` is a dollar, and `$1x` is the group of that name."""
    parts, text, end = [], "", 0
    for match in _GROUP.finditer(replacement):
        text += replacement[end : match.start()]
        end = match.end()
        group = next(filter(None, match.groups()), None)
        if group is None:
            text += "$" if match[0] == "$$" else ""
        else:
            parts += [text, group]
            text = ""
    return (*parts, text + replacement[end:])


def _expanded(match: Any, parts: tuple[str, ...]) -> str:
    return "".join(_group_of(match, part) if at % 2 else part for at, part in enumerate(parts))


def _group_of(match: Any, name: str) -> str:
    """What a group found; nothing, where there is no such group."""
    try:
        return match.group(int(name) if name.isdigit() else name) or ""
    except IndexError:
        return ""


def _replace(text: str | None, pattern: str | None, new: str | None, flags: str | None = "") -> str | None:
    if text is None or pattern is None or new is None or flags is None:
        return None
    try:
        with in_time(pattern):
            found = _replaced(text, pattern, _template(new), flags)
    except regex_module().error as error:
        raise FilterError(f"regexp_replace by {new!r}: {error}", cure="Name groups as $1 or ${name}.") from error
    if len(found) > MAX_TEXT:
        raise FilterError(f"regexp_replace makes a text of more than {MAX_TEXT:,} characters")
    return found


def _replaced(text: str, pattern: str, parts: tuple[str, ...], flags: str) -> str:
    made, end = [], 0
    for match in islice(_found(text, pattern, flags), None if "g" in flags else 1):
        made += [text[end : match.start()], _expanded(match, parts)]
        end = match.end()
    return "".join([*made, text[end:]])


def _begin(start: int) -> int:
    if start < 1:
        raise FilterError(f"a search begins at position 1 or after it, got {start}")
    return start - 1


def _count(text: str | None, pattern: str | None, start: int | None = 1, flags: str | None = "") -> int:
    if text is None or pattern is None:
        return 0
    start = 1 if start is None else start
    if start > len(text) + 1:
        return 0
    with in_time(pattern):
        return sum(1 for _ in _found(text[_begin(start) :], pattern, flags))


def _instr(
    text: str | None, pattern: str | None, start: int | None = 1, number: int | None = 1, flags: str | None = "",
    group: int | None = 0,
) -> int | None:  # fmt: skip
    if pattern == "" or text == "":
        return 0
    if text is None or pattern is None:
        return None
    first, wanted = _begin(1 if start is None else start), number or 1
    if wanted < 1 or first >= len(text):
        return 0
    with in_time(pattern):
        match = next(islice(_found(text[first:], pattern, flags), wanted - 1, None), None)
    try:
        at = -1 if match is None else match.start(group or 0)
    except IndexError as error:
        raise FilterError(f"{pattern!r} has no group {group}") from error
    return 0 if at < 0 else at + first + 1


def _found(text: str, pattern: str, flags: str | None) -> Iterator[Any]:
    """Match after match: an empty one is not found where another ended, and behind it the search begins a character later.

    (Python's own `finditer` looks once more at the same place, for something that is not empty.)
    """
    matcher = compiled(pattern, (flags or "").replace("g", ""))
    at, end, until = 0, -1, time.monotonic() + MAX_SECONDS
    while at <= len(text):
        left = max(until - time.monotonic(), 0.001)
        match = matcher.search(text, at, concurrent=True, timeout=left)
        if match is None:
            return
        if match.start() == match.end() == end:
            at = end + 1
            continue
        yield match
        at = end = match.end()


def _overlay(text: str | None, new: str | None, start: int | None, *counts: int | None) -> str | None:
    if text is None or new is None or start is None or None in counts:
        return None
    first = max(start - 1, 0)
    return text[:first] + new + text[max(first + (counts[0] or 0 if counts else len(new)), 0) :]


def _find_in_set(text: str | None, listed: str | None) -> int | None:
    if text is None or listed is None:
        return None
    parts = listed.split(",")
    return parts.index(text) + 1 if text in parts else 0


def _tokens(text: str) -> set[str]:
    return {"".join(run) for is_word, run in groupby(text, str.isalnum) if is_word}


def _contains_tokens(text: str | None, wanted: str | None) -> bool | None:
    return None if text is None or wanted is None else _tokens(wanted) <= _tokens(text)


def _decode(value: str | bytes | None, name: str | None) -> bytes | None:
    if value is None or name is None:
        return None
    raw = value.encode() if isinstance(value, str) else value
    try:
        if name.lower() == "hex":
            return bytes.fromhex(raw.decode())
        if name.lower() == "base64":
            return base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
    except (ValueError, binascii.Error) as error:
        raise FilterError(f"{value!r} is no {name}: {error}") from error
    raise FilterError(f"no encoding {name!r}", cure="Known: hex, base64.")


def _row(
    name: str, fewest: int, most: int, function: Callable[..., object], kind: pa.DataType | None, *families: str
) -> Row:
    def call(*given: Value) -> Value:
        values = [
            as_text(value, name) if family == "any" else plain(value) for value, family in zip(given, families, strict=False)
        ]
        for value, family in zip(values, families, strict=False):
            if family_of(value.type) not in (*family.split("|"), "null") and family != "any":
                raise FilterError(f"{name} takes {family} here, got {value.type}", cure="CAST it.")
        result = pa.string() if kind is None else kind
        if name == "regexp_replace" and any(
            family_of(value.type) not in ("text", "null") for value in map(plain, given[:3])
        ):
            result = pa.large_string()
        if name == "find_in_set" and pa.large_string() == values[0].type == values[1].type:
            result = pa.int64()
        return made_of((function(*row) for row in rows_of(values)), result, values)

    return fewest, most, call


REGEX_FUNCTIONS: Mapping[str, Row] = MappingProxyType(
    {
        "regexp_replace": _row("regexp_replace", 3, 4, _replace, None, "any", "any", "any", "text"),
        "regexp_count": _row("regexp_count", 2, 4, _count, pa.int64(), "any", "any", "int", "text"),
        "regexp_instr": _row("regexp_instr", 2, 6, _instr, pa.int64(), "any", "any", "int", "int", "text", "int"),
        "overlay": _row("overlay", 3, 4, _overlay, None, "any", "any", "int", "int"),
        "find_in_set": _row("find_in_set", 2, 2, _find_in_set, pa.int32(), "any", "any"),
        "contains_tokens": _row("contains_tokens", 2, 2, _contains_tokens, pa.bool_(), "any", "any"),
        "decode": _row("decode", 2, 2, _decode, pa.binary(), "text|bytes", "text"),
    }
)
