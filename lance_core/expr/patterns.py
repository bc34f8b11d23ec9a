"""LIKE, ILIKE and regular expressions over text.

::

    'a%' any text after a      'b\\%' the text b%      '_' one character, a line break too

A pattern is nearly always one constant for all rows; patterns from a column are matched row by row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrays import Bytes, Ints
from lance_core.arrow_numpy import arrow_of, constant, numpy_of
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, is_scalar
from lance_core.expr.regex_dialect import ONLY_HERE, for_module

pc: Any = compute  # the stubs know only some of what the kernels take


MAX_PATTERN = 1 << 16
_BLOCK, _SAMPLE = 1 << 18, 1 << 14
_MOST_TESTED = 16
_MAX_STATES = 1000
"""How many characters a regular expression may have after the first %: with more of them, RE2 takes time for each of them
at each character of the text."""


def match_like(item: Value, pattern: Value, *, ignore_case: bool, escape: str) -> Value:
    """`item [I]LIKE pattern`; null when a side is null. FilterError for a pattern that would take too long."""

    def match(values: Value, text: str) -> Value:
        if len(text) > MAX_PATTERN:
            raise FilterError(f"a LIKE pattern has {len(text):,} characters, the limit is {MAX_PATTERN:,}")
        pieces = like_pieces(text, escape=escape)
        num_states = sum(len(piece) + 1 for piece in pieces[1:])
        if num_states > _MAX_STATES:
            if ignore_case or any(None in piece for piece in pieces):
                raise FilterError(
                    f"{num_states:,} characters follow the first % of a pattern with _ or of ILIKE, "
                    f"the limit is {_MAX_STATES:,}"
                )
            return _match_pieces(values, [_text(piece) for piece in pieces])
        if not ignore_case and len(pieces) == 3 and not pieces[0] and not pieces[2] and None not in pieces[1]:
            return contains(values, pattern=_text(pieces[1]).decode())
        expression = ("(?is)" if ignore_case else "(?s)") + like_to_regex(text, escape=escape)
        return pc.match_substring_regex(values, expression)

    return _for_each_pattern(item, pattern, match)


def contains(values: Value, *, pattern: str) -> Value:
    """Whether each text holds another. All texts are searched at once where few of them do."""
    types = pa.types
    if (
        not pattern
        or not isinstance(values, pa.Array)
        or not (types.is_string(values.type) or types.is_large_string(values.type))
    ):
        return pc.match_substring(values, pattern=pattern)
    dtype = np.dtype(np.int64 if types.is_large_string(values.type) else np.int32)
    _, where, data = cast("list[Any]", values.buffers())
    if data is None or where is None or not len(values):
        return pc.match_substring(values, pattern=pattern)
    ends = np.frombuffer(where, dtype, len(values) + 1, values.offset * dtype.itemsize).astype(np.int64)
    wanted, base = pattern.encode(), int(ends[0])
    found = _places(np.frombuffer(data, np.uint8, int(ends[-1]) - base, base), wanted, limit=len(values) // 16 + 16)
    if found is None:
        return pc.match_substring(values, pattern=pattern)
    rows = np.searchsorted(ends, found + base, "right") - 1
    holds = np.zeros(len(values), np.bool_)
    holds[rows[found + base + len(wanted) <= ends[rows + 1]]] = True
    missing = numpy_of(values.is_null(), may_copy=True) if values.null_count else None
    return arrow_of(holds) if missing is None else arrow_of(holds, mask=missing)


def _places(data: Bytes, wanted: bytes, *, limit: int) -> Ints | None:
    """Where some bytes begin in others, overlaps among them; None where they are, or nearly, in more places than `limit`.

    Places that have the two rarest of the bytes are candidates; they are found block by block, while a block is in the
    processor's cache, and no byte is copied.
    """
    first, second, *others = _by_rarity(data, wanted)
    more, num_places = others[:_MOST_TESTED], len(data) - len(wanted) + 1
    found, count = [np.empty(0, np.int64)], 0
    for begin in range(0, num_places, _BLOCK):
        end = min(begin + _BLOCK, num_places)
        hits = data[begin + first : end + first] == wanted[first]
        if second != first:
            hits &= data[begin + second : end + second] == wanted[second]
        places = hits.nonzero()[0] + begin
        for at in more if len(places) else ():
            places = places[data[places + at] == wanted[at]]
        count += len(places)
        if count > limit:
            return None
        if len(others) > len(more):
            places = places[[data[at : at + len(wanted)].tobytes() == wanted for at in places.tolist()]]
        found.append(places)
    return np.concatenate(found)


def _by_rarity(data: Bytes, wanted: bytes) -> list[int]:
    """Places in `wanted`, those first whose bytes are rare at the beginning of `data`; at least two, maybe the same."""
    counts = np.bincount(data[:_SAMPLE], minlength=256)[np.frombuffer(wanted, np.uint8)]
    order: list[int] = np.argsort(counts, kind="stable").tolist()
    return order if len(order) > 1 else order * 2


def _match_pieces(values: Value, pieces: Sequence[bytes]) -> Value:
    """Whether values are the first piece, the others somewhere behind it in their order, and the last one at the end."""
    first, *middle, last = pieces

    def match(text: bytes) -> bool:
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    if is_scalar(values):
        return pa.scalar(match(values.as_buffer().to_pybytes()) if values.is_valid else None, pa.bool_())
    rows = values.cast(pa.large_binary()).to_pylist()
    return pa.array([None if row is None else match(row) for row in rows], pa.bool_())


def match_regex(item: Value, pattern: Value, flags: str = "") -> Value:
    """Whether a regular expression is found anywhere in the text."""
    known_flags(flags)
    prefix = f"(?{flags})" if flags else ""

    def match(values: Value, text: str) -> Value:
        if ONLY_HERE.search(prefix + text) or (_UNICODE_CLASS.search(text) and not _is_ascii(values)):
            return _match_here(values, text, flags)
        return pc.match_substring_regex(values, prefix + text)

    return _for_each_pattern(item, pattern, match)


def known_flags(letters: str) -> str:
    """The letters. FilterError where there are others than i, m, s, x and U (few before many)."""
    if set(letters) - set("imsxU"):
        raise FilterError(f"unknown flags {letters!r} of a regular expression", cure="Use some of i, m, s, x, U.")
    return letters


_UNICODE_CLASS = re.compile(r"\\[wWdDsSbB]")


def _is_ascii(values: Value) -> bool:
    if isinstance(values, pa.Scalar):
        return not values.is_valid or str(values.as_py()).isascii()
    return pc.all(pc.string_is_ascii(values)).as_py() is not False


def _match_here(values: Value, pattern: str, flags: str) -> Value:
    """By letters, digits and spaces of all scripts and by classes within classes, which RE2 does not know."""
    matcher = compiled(pattern, flags)
    rows = [values.as_py()] if is_scalar(values) else values.to_pylist()
    with in_time(pattern):
        found = [
            None if row is None else matcher.search(row, concurrent=True, timeout=MAX_SECONDS) is not None for row in rows
        ]
    made = pa.array(found, pa.bool_())
    return made[0] if is_scalar(values) else made


def match_groups(item: Value, pattern: Value, found: Value, flags: str = "") -> Value:
    """What `regexp_match` gives: the groups of the first match that took part in it, or the match where there are none; null
    where `found` is not true. Raises FilterError for a pattern that only RE2 knows."""
    values, patterns, truths = (each if not is_scalar(each) else _Same(each) for each in (item, pattern, found))
    count = next((len(each) for each in (item, pattern, found) if not is_scalar(each)), 1)
    rows = [_groups(values[at], patterns[at], flags) if truths[at].as_py() else None for at in range(count)]
    made = pa.array(rows, pa.list_(pa.string()))
    return made[0] if all(map(is_scalar, (item, pattern, found))) else made


class _Same:
    """A constant as the value of every row."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def __getitem__(self, _at: int) -> Value:
        return self._value


def _groups(value: Value, pattern: Value, flags: str) -> list[str] | None:
    matcher = compiled(pattern.as_py(), flags)
    with in_time(pattern.as_py()):
        found = matcher.search(value.as_py(), concurrent=True, timeout=MAX_SECONDS)
    if found is None:
        return None
    return [group for group in found.groups() if group is not None] if matcher.groups else [found.group(0)]


MAX_SECONDS = 5.0
"""How long one regular expression may take on one text, where RE2 cannot be used."""


@lru_cache(maxsize=1)
def regex_module() -> Any:
    """The module `regex`, imported when a pattern needs it: few filters do, and each process that imports it pays."""
    return import_module("regex")


@lru_cache(maxsize=64)
def compiled(pattern: str, flags: str) -> Any:
    """The pattern for the module `regex`, with flags as in `(?im)`. FilterError when it is none."""
    if len(pattern) > MAX_PATTERN:
        raise FilterError(f"a pattern has {len(pattern):,} characters, at most {MAX_PATTERN:,} are read")
    wanted = for_module(f"(?{known_flags(flags)}){pattern}" if flags else pattern)
    try:
        # In version 1 flags end with their group; without -f, ignoring case would find ss for ß.
        return regex_module().compile(f"(?-f){wanted}", regex_module().V1)
    except (regex_module().error, OverflowError) as error:
        raise FilterError(f"{pattern!r} is no regular expression: {error}") from error


@contextmanager
def in_time(pattern: str) -> Iterator[None]:
    """FilterError for a search that has used up its time."""
    try:
        yield
    except TimeoutError as error:
        raise FilterError(
            f"the regular expression {pattern[:200]!r} takes more than {MAX_SECONDS:.0f} s on one text",
            cure="Do not repeat what is repeated already, as in (x+)+.",
        ) from error


Piece = list[str | None]
"""Characters between two %; None for a _."""


def like_to_regex(pattern: str, *, escape: str = "\\") -> str:
    """The regular expression a LIKE pattern stands for.

    >>> like_to_regex("a%_")
    '\\\\Aa.*.\\\\z'
    """
    pieces = like_pieces(pattern, escape=escape)
    inner = ".*".join("".join("." if each is None else _quote(each) for each in piece) for piece in pieces)
    return rf"\A{inner}\z"


def like_pieces(pattern: str, *, escape: str = "\\") -> list[Piece]:
    """What a LIKE pattern has between its %; many of them in a row mean what one means.

    >>> like_pieces("a%%_b")
    [['a'], [None, 'b']]
    """
    pieces: list[Piece] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            pieces[-1].append(next(characters, escape))
        elif character == "%":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return pieces


def _text(piece: Piece) -> bytes:
    return "".join(each or "" for each in piece).encode()


def _quote(character: str) -> str:
    # RE2 does not know every escape that `re` writes for other than ASCII.
    return re.escape(character) if character.isascii() else character


def for_each(item: Value, argument: Value, match: Callable[[Value, object], Value]) -> Value:
    """Apply `match` with a constant argument, or row by row when the argument is a column; null when a side is null."""
    if isinstance(argument, pa.Scalar):
        if argument.is_valid:
            return match(item, argument.as_py())
        return constant(None, pa.bool_()) if is_scalar(item) else pa.nulls(len(item), pa.bool_())
    values = [item] * len(argument) if isinstance(item, pa.Scalar) else item
    rows = (
        match(value, each.as_py()).as_py() if each.is_valid else None for value, each in zip(values, argument, strict=True)
    )
    return pa.array(rows, pa.bool_())


def _for_each_pattern(item: Value, pattern: Value, match: Callable[[Value, str], Value]) -> Value:
    return for_each(item, pattern, lambda values, text: match(values, str(text)))
