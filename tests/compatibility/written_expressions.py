"""Expressions over constants that people write, and over columns beside them: products of arguments and functions.

The sweep of random trees draws columns and few constants. What is here are the odd ones: numbers at the limits of types,
times of all units and zones, patterns, formats, empty lists and lists of nulls, each as an argument of whatever takes it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_NUMBERS = (
    "127", "128", "-128", "-129", "1e10", "-0.0", "0.0", "0.5", "1.5", "-2.5", "2.675", "9007199254740993",
    "-9223372036854775807", "1e19", "123456789.987654321", "cast('NaN' as float)", "cast('inf' as double)",
    "cast(1.5 as float)", "cast(7 as decimal(5,2))", "cast(-7.77 as decimal(20,5))", "cast(200 as tinyint unsigned)",
    "cast(-5 as smallint)", "5e-324", "NULL", "arrow_cast(1.5, 'Float16')",
)  # fmt: skip
_NUMBER_FUNCTIONS = (
    "abs", "sqrt", "cbrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "ceil", "floor", "round", "signum", "degrees", "radians", "factorial", "isnan", "iszero", "cot", "to_hex",
    "chr", "to_timestamp", "to_date", "bit_length", "reverse", "ascii", "upper",
)  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "%", "=", "<", "IS DISTINCT FROM")
_CASTS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "int unsigned", "bigint unsigned", "float", "double",
    "decimal(10,2)", "decimal(38,10)", "decimal(3,3)", "string", "binary", "date", "timestamp", "timestamp(0)",
)  # fmt: skip
_TIMES = (
    "date '2020-02-29'", "date '1900-01-01'", "date '2024-12-31'", "timestamp '2020-02-29 23:59:59.999999'",
    "timestamp '1969-12-31 23:59:59.5'", "to_timestamp('2024-03-31T02:30:00')",
    "arrow_cast('2024-10-27T01:30:00', 'Timestamp(Second, Some(\"Europe/Berlin\"))')",
    "arrow_cast('2024-10-27T02:30:00Z', 'Timestamp(Microsecond, Some(\"+05:45\"))')", "z_ber", "zn_nyc", "ts_ms",
    "d32", "time_us", "NULL", "'2020-02-29'", "'2020-02-29T12:30:00'",
)  # fmt: skip
_TIME_FUNCTIONS = ("to_date", "to_timestamp", "to_timestamp_millis", "to_unixtime", "to_local_time")
_TIME_CASTS = ("string", "date", "timestamp", "timestamp(3)", "bigint", "double")
_PARTS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond",
    "dow", "doy", "epoch", "isodow", "YEAR", "isoyear", "mins",
)  # fmt: skip
_UNITS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond",
)  # fmt: skip
_SPECIFIERS = (
    "Y", "C", "y", "m", "b", "B", "d", "e", "a", "A", "w", "u", "U", "W", "G", "g", "V", "j", "D", "F", "H", "k", "I", "l",
    "P", "p", "M", "S", "T", "s",
)  # fmt: skip
_INTERVALS = (
    "interval '1 day'", "interval '15 minutes'", "interval '1 week'", "interval '1 second'", "interval '-1 day'",
)  # fmt: skip
_TEXTS = (
    "'Σίσυφος ΟΔΟΣ'", "'İstanbul'", "'straße STRASSE'", "'aXbXc'", "'a.b.c'", "'\u00a0x\u00a0'", "'  pad  '",
    "'日本語テキスト'", "'a\nb\nc'", "'foo123bar45'", "''", "NULL", "s", "ls", "dict", "'ǅ ŉ ﬁ'", "'aaa'", "'A_b%c'",
)  # fmt: skip
_PATTERNS = (
    r"'a'", r"'[a-c]+'", r"'(\d+)'", r"'(?P<x>\w)(?P<y>\w)'", r"'^$'", r"'(?i)SS'", r"'(?s).+'", r"'(?m)^b$'",
    r"'.+?'", r"'\pL+'", r"'\p{Greek}+'", r"'[^\x00-\x7f]'", r"'(a|b)*'", r"'\Bb'", r"'a{2,}'", r"'(?x) a  b # c'",
    r"'[[:upper:]][[:lower:]]'", r"'(?i)σ'", r"'(?U)a+'", r"'[\w&&[^a]]'", r"'(a)(x)?'", r"'$'", r"'\z'",
)  # fmt: skip
_PATTERN_FUNCTIONS = ("regexp_like", "regexp_match", "regexp_count", "regexp_instr")
_REPLACEMENTS = ("'[$1]'", "'${1}x'", r"'\1'", "''", "'$$'")
_LIKES = (
    r"'a%'", r"'%b_'", r"'a\_b%'", r"'%\%c'", "'_'", "'%'", "''", "'A%'", "'%ß%'", "'__'",
)  # fmt: skip
_WORDS = ("'a'", "''", "'b'", "'σ'", "'x '", "NULL", "s", "'日'")
_LISTS = (
    "li", "lf", "lt", "ldt", "lll", "vec", "deep", "[1,2,3,NULL,2]", "[]",
    "[1.5,NULL,-0.0]", "['a',NULL,'']", "[[1],[2,3]]", "NULL", "[date '2020-02-29']", "[cast(1 as tinyint), 300]",
    "[1, 2.5]", "[true,false]", "[cast('NaN' as double), 1.0]",
)  # fmt: skip
_LIST_FUNCTIONS = (
    "array_length", "cardinality", "array_distinct", "array_reverse", "array_sort", "array_max", "array_min",
    "array_pop_back", "flatten", "empty",
)  # fmt: skip
_ITEMS = ("1", "NULL", "2", "2.5", "'a'", "true", "[1]", "date '2020-02-29'", "k", "i8", "f32", "s", "''")


def _of_numbers() -> Iterator[str]:
    for number in _NUMBERS:
        yield from (f"{cast}({number} as {kind})" for kind in _CASTS for cast in ("try_cast", "cast"))
        yield from (f"{name}({number})" for name in _NUMBER_FUNCTIONS)
        for other in _NUMBERS:
            yield from (
                f"{number} {operator} {other}" for operator in ("+", "-", "*", "/", "%", "=", "<", "IS DISTINCT FROM")
            )
            yield from (f"{name}({number},{other})" for name in ("atan2", "greatest", "coalesce", "nullif"))
        for places in ("-3", "0", "1", "2", "5", "20", "NULL"):
            yield from (f"{name}({number},{places})" for name in ("round", "gcd", "lcm"))
            yield from (f"{number} {operator} {places}" for operator in ("&", "|", "<<", ">>"))


def _of_times() -> Iterator[str]:
    for time in _TIMES:
        yield from (f"date_part('{part}', {time})" for part in _PARTS)
        yield from (f"date_trunc('{unit}', {time})" for unit in _UNITS)
        yield from (f"to_char({time}, '%{letter}')" for letter in _SPECIFIERS)
        for interval in _INTERVALS:
            yield from (f"date_bin({interval}, {time})", f"{time} + {interval}", f"{time} - {interval}")
        for other in _TIMES:
            yield from (f"{time} {operator} {other}" for operator in ("-", "=", "<"))
            yield from (f"{name}({time},{other})" for name in ("coalesce", "greatest", "nullif"))
        yield from (
            f"{name}({time})" for name in ("to_date", "to_timestamp", "to_timestamp_millis", "to_unixtime", "to_local_time")
        )
        yield from (
            f"try_cast({time} as {kind})" for kind in ("string", "date", "timestamp", "timestamp(3)", "bigint", "double")
        )


def _of_texts() -> Iterator[str]:
    for text in _TEXTS:
        for pattern in _PATTERNS:
            yield from (
                f"{name}({text},{pattern})" for name in ("regexp_like", "regexp_match", "regexp_count", "regexp_instr")
            )
            yield from (
                f"regexp_replace({text},{pattern},{new},'g')" for new in ("'[$1]'", "'${1}x'", r"'\1'", "''", "'$$'")
            )
        yield from (f"{text} {operator} {like}" for operator in ("LIKE", "NOT LIKE", "ILIKE") for like in _LIKES)
        yield from (f"{name}({text})" for name in ("upper", "lower", "initcap", "reverse", "ascii", "length", "trim", "md5"))
        for number in ("0", "1", "2", "-1", "-5", "100", "NULL"):
            yield from (f"{name}({text},{number})" for name in ("left", "right", "repeat", "lpad", "rpad", "substr"))
            yield from (f"substr({text},{number},{count})" for count in ("0", "2", "NULL"))
            yield f"split_part({text},'b',{number})"
        for word in _WORDS:
            yield from (f"{name}({text},{word})" for name in ("strpos", "starts_with", "contains", "levenshtein", "btrim"))
            yield from (
                f"replace({text},{word},'_')",
                f"translate({text},{word},'123')",
                f"concat_ws({word},{text},NULL,'z')",
            )


def _of_lists() -> Iterator[str]:
    for one in _LISTS:
        yield from (
            f"{name}({one})" for name in ("array_length", "cardinality", "array_distinct", "array_reverse", "array_sort")
        )
        yield from (f"{name}({one})" for name in ("array_max", "array_min", "array_pop_back", "flatten", "empty"))
        for item in _ITEMS:
            yield from (
                f"{name}({one},{item})" for name in ("array_has", "array_append", "array_positions", "list_contains")
            )
            yield from (f"array_prepend({item},{one})", f"array_remove_all({one},{item})")
        for number in ("0", "1", "-1", "10", "NULL", "k"):
            yield from (f"{one}[{number}]", f"array_slice({one},{number},2)", f"array_slice({one},{number},-1)")
        for other in _LISTS:
            yield from (
                f"{name}({one},{other})" for name in ("array_union", "array_has_all", "array_has_any", "array_except")
            )
            yield from (f"{one} = {other}", f"coalesce({one},{other})", f"nullif({one},{other})")


def written(seed: int) -> Sequence[str]:
    """All of them, each once, in an order that a seed gives; those of each family in turn come early."""
    families = [sorted({*family}) for family in (_of_numbers(), _of_times(), _of_texts(), _of_lists())]
    rng = random.Random(seed)
    for family in families:
        rng.shuffle(family)
    longest = max(map(len, families))
    return [family[at] for at in range(longest) for family in families if at < len(family)]
