"""Deeper expressions than those of `expressions`: trees of functions and operators, columns in every argument.

Each family of types has a table of what makes a value of it from values of others; a tree is drawn by it to a depth.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tests.compatibility.expressions import BOOLS, DATES, DECIMALS, DURATIONS, FLOATS, INTS, STAMPS, TEXTS, TIMES, ZONED

_COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "int": INTS,
        "float": FLOATS,
        "decimal": DECIMALS,
        "text": TEXTS,
        "bool": BOOLS,
        "date": DATES,
        "stamp": STAMPS,
        "zoned": ZONED,
        "time": TIMES,
        "duration": DURATIONS,
        "ints": ("li", "ll", "lll"),
        "texts": ("lt",),
        "floats": ("lf", "vec"),
    }
)
_CONSTANTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "int": ("0", "1", "-1", "2", "7", "255", "-32768", "65536", "4294967295", "-9223372036854775807", "NULL"),
        "float": ("0.0", "-0.0", "1.25", "-2.5", "1e-300", "1e300", "0.3", "3.0", "CAST('Infinity' AS DOUBLE)", "NULL"),
        "decimal": ("CAST('-0.05' AS DECIMAL(10,2))", "CAST(12 AS DECIMAL(20,4))", "CAST('99.995' AS DECIMAL(38,10))"),
        "text": (
            "''", "'a'", "'Straße'", "'ǅ'", "'ﬃ'", "'é'", "'\U0001f468‍\U0001f469'", "'İI'", "' a\tb '",
            "'2020-02-29'", "'-7'", "NULL",
        ),
        "bool": ("true", "false", "NULL"),
        "date": ("date '1600-02-29'", "date '2024-02-29'", "CAST('1969-12-31' AS DATE)"),
        "stamp": ("timestamp '2024-03-10 02:30:00'", "timestamp '1900-01-01 00:00:00.000001'"),
        "zoned": ("timestamp '2024-11-03 01:30:00'", "timestamp '2024-11-03T01:30:00-04:00'"),
        "time": ("CAST('23:59:59' AS TIME)",),
        "duration": ("interval '1' hour", "interval '3' day"),
        "ints": ("[1, 2, 3]", "[NULL, 2]"),
        "texts": ("['a', NULL, 'b']", "['']"),
        "floats": ("[1.0, 2.0]", "[0.5]"),
    }
)  # fmt: skip
_N = ("int", "float", "decimal")
_T = ("date", "stamp", "zoned")
_PARTS = ("year", "month", "day", "hour", "minute", "week", "doy", "dow", "quarter")
_ORDERED = ("int", "float", "decimal", "text", "date", "stamp", "zoned", "time", "duration")


class DeepExpressions:
    """An endless, seeded supply of trees."""

    def __init__(self, seed: int, *, depth: int = 3) -> None:
        self.rng = random.Random(seed)
        self.depth = depth

    def expression(self) -> str:
        """The next expression."""
        return self.of(self.rng.choice([*_MAKERS]), self.rng.choice([2, self.depth, self.depth + 1]))

    def of(self, family: str | Sequence[str], depth: int) -> str:
        """A value of a family: a column, a constant or a tree."""
        chosen = family if isinstance(family, str) else self.rng.choice(family)
        drawn = self.rng.random()
        if depth <= 0 or drawn < 0.15 or chosen not in _MAKERS:
            constants = _CONSTANTS[chosen]
            return self.rng.choice(constants) if drawn < 0.03 else self.rng.choice(_COLUMNS[chosen])
        return self.rng.choice(_MAKERS[chosen])(self, depth - 1)

    def small(self) -> str:
        """A small whole number, often a column."""
        return self.rng.choice(["1", "2", "-1", "0", "3", "one"])

    def word(self, *words: str) -> str:
        """One of some words."""
        return self.rng.choice(words)


Make = Callable[[DeepExpressions, int], str]


def _f(form: str, *families: str | Sequence[str]) -> Make:
    """A text with places for values of families."""
    return lambda e, depth: form.format(*(e.of(family, depth) for family in families))


def _same(form: str, families: Sequence[str], count: int = 2) -> Make:
    """Places for values of one family."""

    def make(e: DeepExpressions, depth: int) -> str:
        family = e.rng.choice(families)
        return form.format(*(e.of(family, depth) for _ in range(count)))

    return make


def _choices(family: str) -> list[Make]:
    return [
        _f("coalesce({}, {})", family, family),
        _f("nullif({}, {})", family, family),
        _f("nvl2({}, {}, {})", family, family, family),
    ]


def _extremes(family: str) -> list[Make]:
    return [_f("greatest({}, {}, {})", family, family, family), _f("least({}, {})", family, family)]


_MAKERS: Mapping[str, Sequence[Make]] = MappingProxyType(
    {
        "int": [
            lambda e, d: f"({e.of('int', d)} {e.word('+', '-', '*', '%', '/')} {e.of('int', d)})",
            _f("abs({})", "int"),
            _f("-({})", "int"),
            _f("length({})", ("text", "int", "date")),
            _f("strpos({}, {})", "text", "text"),
            _f("levenshtein({}, {})", "text", "text"),
            _f("ascii({})", "text"),
            lambda e, d: f"date_part('{e.word(*_PARTS)}', {e.of(_T, d)})",
            _f("CAST({} AS BIGINT)", ("int", "bool", "text")),
            _f("TRY_CAST({} AS INT)", ("text", "float", "decimal", "int")),
            _f("array_length({})", ("ints", "texts")),
            _f("array_position({}, {})", "ints", "int"),
            lambda e, d: f"{e.of('ints', d)}[{e.small()}]" if d < 1 else f"array_element({e.of('ints', d)}, {e.small()})",
            _f("array_max({})", "ints"),
            _f("regexp_count({}, {})", "text", "text"),
            _f("to_unixtime({})", _T),
            _f("gcd({}, {})", "int", "int"),
            *_choices("int"),
            *_extremes("int"),
        ],
        "float": [
            lambda e, d: f"({e.of(_N, d)} {e.word('+', '-', '*', '/')} {e.of('float', d)})",
            _f("sqrt(abs({}))", _N),
            lambda e, d: f"round({e.of('float', d)}, {e.small()})",
            _f("floor({})", "float"),
            _f("CAST({} AS DOUBLE)", ("int", "float", "decimal")),
            _f("TRY_CAST({} AS FLOAT)", ("text", "int")),
            _f("nanvl({}, {})", "float", "float"),
            _f("power({}, {})", "float", "int"),
            _f("ln({})", _N),
            _f("atan2({}, {})", "float", "float"),
            lambda e, d: f"array_min({e.of('floats', d)})",
            *_choices("float"),
            *_extremes("float"),
        ],
        "decimal": [
            lambda e, d: f"({e.of('decimal', d)} {e.word('+', '-', '*', '%')} {e.of(('decimal', 'int'), d)})",
            _f("abs({})", "decimal"),
            _f("TRY_CAST({} AS DECIMAL(20, 4))", ("int", "float", "decimal")),
            lambda e, d: f"round({e.of('decimal', d)}, {e.word('1', '0', '-1')})",
            *_choices("decimal"),
            *_extremes("decimal"),
        ],
        "text": [
            _f("({} || {})", "text", ("text", "int")),
            _f("concat({}, {}, {})", "text", ("int", "bool", "date", "float"), "text"),
            _f("concat_ws({}, {}, {})", "text", "text", "text"),
            lambda e, d: f"{e.word('lower', 'upper', 'reverse', 'trim', 'initcap', 'btrim')}({e.of('text', d)})",
            lambda e, d: f"{e.word('left', 'right', 'repeat')}({e.of('text', d)}, {e.small()})",
            lambda e, d: f"substr({e.of('text', d)}, {e.word('1', '2', '0', '-1')}, {e.word('0', '1', '3')})",
            _f("replace({}, {}, {})", "text", "text", "text"),
            _f("translate({}, {}, {})", "text", "text", "text"),
            lambda e, d: f"split_part({e.of('text', d)}, {e.of('text', d)}, {e.word('1', '2', '-1')})",
            lambda e, d: f"{e.word('lpad', 'rpad')}({e.of('text', d)}, {e.word('5', 'one')}, {e.of('text', d)})",
            _f(
                "CAST({} AS STRING)",
                ("int", "float", "decimal", "bool", "date", "stamp", "zoned", "time", "duration", "ints"),
            ),
            lambda e, d: f"to_char({e.of(_T, d)}, {e.word(*_FORMATS)})",
            _f("array_to_string({}, {})", ("texts", "ints"), "text"),
            lambda e, d: f"regexp_replace({e.of('text', d)}, {e.word(*_PATTERNS)}, {e.of('text', d)}, 'g')",
            _f("md5({})", "text"),
            *_choices("text"),
            *_extremes("text"),
        ],
        "bool": [
            lambda e, d: _compared(e, d),
            _f("({} AND {})", "bool", "bool"),
            _f("({} OR NOT ({}))", "bool", "bool"),
            lambda e, d: f"(({e.of('bool', d)}) IS {e.word('TRUE', 'NOT TRUE', 'FALSE', 'NULL', 'NOT NULL')})",
            lambda e, d: f"({e.of(_ORDERED, d)} IS {e.word('', 'NOT ')}NULL)",
            lambda e, d: f"({e.of('text', d)} {e.word('LIKE', 'NOT LIKE', 'ILIKE')} {e.of('text', d)})",
            lambda e, d: f"{e.word('starts_with', 'ends_with', 'contains')}({e.of('text', d)}, {e.of('text', d)})",
            lambda e, d: f"regexp_like({e.of('text', d)}, {e.word(*_PATTERNS)})",
            _same("({} BETWEEN {} AND {})", _ORDERED, 3),
            _same("({} IN ({}, {}, {}))", _ORDERED, 4),
            _same("({} NOT IN ({}, {}))", _ORDERED, 3),
            _same("({} IS DISTINCT FROM {})", _ORDERED),
            _f("array_has({}, {})", "ints", "int"),
            _f("array_has_any({}, {})", "texts", "texts"),
            _f("isnan({})", "float"),
            _f("CAST({} AS BOOLEAN)", "int"),
        ],
        "date": [
            _f("CAST({} AS DATE)", ("stamp", "zoned")),
            _f("coalesce({}, {})", "date", "date"),
            *_extremes("date"),
            _f("nullif({}, {})", "date", "date"),
            _f("to_date({})", ("stamp", "zoned")),
        ],
        "stamp": [
            lambda e, d: f"date_trunc('{e.word(*_PARTS[:6])}', {e.of('stamp', d)})",
            _f("({} + {})", "stamp", "duration"),
            _f("CAST({} AS TIMESTAMP)", ("date", "zoned")),
            _f("to_timestamp_micros({})", ("int", "stamp")),
            *_choices("stamp"),
            *_extremes("stamp"),
        ],
        "zoned": [
            lambda e, d: f"date_trunc('{e.word(*_PARTS[:6])}', {e.of('zoned', d)})",
            _f("({} - {})", "zoned", "duration"),
            *_extremes("zoned"),
            _f("coalesce({}, {})", "zoned", "zoned"),
        ],
        "duration": [
            _f("({} - {})", "stamp", "stamp"),
            _f("-({})", "duration"),
            _f("coalesce({}, {})", "duration", "duration"),
        ],
        "ints": [
            _f("make_array({}, {})", "int", "int"),
            _f("array_append({}, {})", "ints", "int"),
            _f("array_concat({}, {})", "ints", "ints"),
            _f("array_sort({})", "ints"),
            _f("array_distinct({})", "ints"),
            _f("array_except({}, {})", "ints", "ints"),
            lambda e, d: f"array_slice({e.of('ints', d)}, {e.small()}, {e.small()})",
            _f("array_replace({}, {}, {})", "ints", "int", "int"),
            _f("array_remove({}, {})", "ints", "int"),
            _f("coalesce({}, {})", "ints", "ints"),
        ],
        "texts": [
            _f("make_array({}, {})", "text", "text"),
            _f("string_to_array({}, {})", "text", "text"),
            _f("array_union({}, {})", "texts", "texts"),
            _f("array_reverse({})", "texts"),
            _f("array_prepend({}, {})", "text", "texts"),
        ],
        "floats": [
            _f("array_sort({})", "floats"),
            _f("array_append({}, {})", "floats", "float"),
            _f("array_distinct({})", "floats"),
        ],
    }
)
_FORMATS = ("'%Y-%m-%dT%H:%M:%S%.6f'", "'%A %d %B %j'", "'%y/%m/%d %I %p'", "'%G-W%V %e'", "'%s'")
_PATTERNS = (r"'[aeiou]'", r"'^(.)(.*)$'", r"'\w\b'", r"'(?i)STR'", r"'\p{L}+'", r"'.{2}'", r"'[^\x00-\x7f]'", r"'$'")


def _compared(e: DeepExpressions, depth: int) -> str:
    family = e.rng.choice(_ORDERED)
    other = e.rng.choice(_N) if family in _N else family
    if family in _T and e.rng.random() < 0.4:
        other = e.rng.choice(_T)
    return f"({e.of(family, depth)} {e.word('=', '!=', '<', '<=', '>', '>=')} {e.of(other, depth)})"
