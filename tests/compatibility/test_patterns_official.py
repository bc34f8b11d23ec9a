"""Random regular expressions over odd texts: what this library finds is what the official one finds."""

from __future__ import annotations

import os
import random
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import FilterError

TEXTS = [
    "a\n", "a", "\n", "", "a\n\n", "a\r\n", "ab\na", "a\nb", "é\n", "a\u2028", "a\x0b", "a\r", "\u2028a", "b\na\r\nc",
    "aab}{", "{name}", "a+ aab", "ß SS ss ẞ", "_x-1", "ab AB", "[&]|~", "ﬃ K\u212a", "ǅ", "Ⅷ٣", "\U0001f468\u200d\U0001f469",
]  # fmt: skip
ATOMS = [
    "a", "b", ".", "$", "^", r"\b", r"\w", r"\s", r"\d", r"\W", r"\pL", r"\p{L}", "[ab]", "[^a]", "[[:alpha:]&&[^a]]",
    "[[:^alpha:]]", "[a-z--[aeiou]]", "[]a]", r"[\w&&\D]", r"\x{e9}", r"\u{df}", r"\b{start}", r"\>", r"\z", r"\A", r"\{",
    r"\n", "ß", "k", "(a|b)", "(?:ab)", "(?P<n>a)", "(?i:A)", "(?-m:$)", "(?m:$)", "(?m:^)", "(?s:.)", "(?x: a b # $(\n)",
    "(?U:a+)", "|", "[$]", r"\$", "[|]", "[a&]", "[~-]", r"\x0a", "ǆ", "[[:punct:]]",
]  # fmt: skip
REPEATS = ["", "", "", "", "*", "+", "?", "*?", "{2}", "{1,}", "{0,2}"]
HEADS = ["", "", "", "(?m)", "(?s)", "(?i)", "(?U)", "(?x)", "(?im)", "(?sm)"]
FLAGS = ["", "", "m", "s", "i", "x", "im", "U"]
CALLS = [
    "regexp_like(s, '{0}', '{1}')", "regexp_replace(s, '{0}', '<$0>', 'g{1}')", "regexp_count(s, '{0}', 1, '{1}')",
    "regexp_instr(s, '{0}', 1, 1, '{1}')", "regexp_match(s, '{0}', '{1}')", "regexp_like(s, '{0}')",
    "regexp_match(s, '{0}')", "regexp_replace(s, '{0}', '[$1]')",
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    path = tmp_path_factory.mktemp("patterns")
    lance.write_dataset(pa.table({"s": TEXTS}), path, data_storage_version="2.2")
    return lance_core.dataset(str(path)), lance.dataset(path)


def _asked(table: Any, expression: str) -> list[Any]:
    return list(table.to_table(columns={"x": expression})["x"].to_pylist())


def _differences(tables: tuple[Any, Any], seed: int, count: int) -> list[str]:
    rng, answered, found = random.Random(seed), 0, []
    for _ in range(count):
        pattern = rng.choice(HEADS) + "".join(
            rng.choice(ATOMS) + rng.choice(REPEATS) for _ in range(rng.choice([1, 2, 2, 3]))
        )
        expression = rng.choice(CALLS).format(pattern.replace("'", "''"), rng.choice(FLAGS))
        try:
            theirs = _asked(tables[1], expression)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            continue
        answered += 1
        mine = _asked(tables[0], expression)
        if mine != theirs:
            found.append(f"{expression!r}: {mine!r:.300}, officially {theirs!r:.300}")
    assert answered > count // 2
    return found


def test_a_sample_of_patterns(tables: tuple[Any, Any]) -> None:
    seed = int(os.environ.get("EXPRESSION_SEED") or random.SystemRandom().randrange(10**6))
    print(f"EXPRESSION_SEED={seed}")
    found = _differences(tables, seed, 150)
    assert not found, "\n".join([f"EXPRESSION_SEED={seed}", *found])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_many_patterns(tables: tuple[Any, Any], seed: int) -> None:
    found = _differences(tables, 2900 + seed, 3000)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "expression",
    [
        "regexp_replace(s, 'a$', 'X')", "regexp_like(s, '[a&&b]')", "regexp_count(s, '$')", "regexp_match(s, '(?s).$')",
        "regexp_replace(s, '(?x) a $ # the end $', 'X')", "regexp_replace(s, 'a*?', '-', 'g')",
        "regexp_replace(s, 'b(?i)a', 'X')", "regexp_replace(s, 'ss', 'X', 'gi')",
    ],
)  # fmt: skip
def test_a_pattern_means_what_it_means_officially(tables: tuple[Any, Any], expression: str) -> None:
    assert _asked(tables[0], expression) == _asked(tables[1], expression)


@pytest.mark.parametrize("rows", ["s", "'a(a)' || s"])
@pytest.mark.parametrize(
    "pattern",
    ["(?R)?a", "a(?1)", "(?&n)", "(?P<n>a)(?P>n)", "a++b", "a**", "(?q)a", r"\x{110000}", "(?-u)a", "(?=a)", "(?!a)",
     "(?<=a)", "(?<!a)", "(?>a)", r"(a)\1", r"(?P<n>a)(?P=n)", r"\Ka", r"\Xa", r"(?=a)\p{Lu}", "(?(1)a|b)", "(?|a|b)",
     "(?#a)b", r"(?U)a\Z", r"(?U)\ma", r"(?U)\N{DIGIT ONE}", r"[\1a]"],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(tables: tuple[Any, Any], pattern: str, rows: str) -> None:
    for call in ("regexp_replace({}, '{}', 'x')", "regexp_count({}, '{}')", "regexp_like({}, '{}')"):
        with pytest.raises(FilterError):
            _asked(tables[0], call.format(rows, pattern))
