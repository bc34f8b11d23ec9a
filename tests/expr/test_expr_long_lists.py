"""Long lists of constants behind IN are read beside the parser: they mean what the parser makes of them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from lance_core.errors import FilterError
from lance_core.expr import ast, long_lists, parse, parse_filter

SCHEMA = pa.schema({"a": pa.int64(), "s": pa.string(), "f": pa.float64(), "in": pa.int32(), "d": pa.date32()})
NUMBERS = ", ".join(map(str, range(-150, 150)))
FLOATS = ",".join(f"{number}.25" for number in range(-150, 150))
TEXTS = ", ".join(f"'t''{number}'" for number in range(300))
DAYS = ",\n".join(f"'20{number % 80 + 10}-01-{number % 28 + 1:02}'" for number in range(300))


@pytest.mark.parametrize(
    "text",
    [
        f"a IN ({NUMBERS})",
        f"NOT a in( {NUMBERS} ) OR s NOT IN ({TEXTS}) AND f > 1",
        f"f IN ({FLOATS})",
        f"d IN ({DAYS})",
        f"`in` IN ({NUMBERS}) AND s = 'a IN ({NUMBERS})'",
        f's = "it IN ({NUMBERS})" OR a IN ({NUMBERS})',
        f"a IN ({NUMBERS}) /* a IN ({NUMBERS}) */ AND a > 0 -- ' IN ({NUMBERS})",
        f"a IN ({NUMBERS}, NULL)",
        f"s IN (null, {TEXTS}, Null) AND a NOT IN (NULL, {NUMBERS})",
        f"a IN ({NUMBERS}, a)",
        f"a IN ({NUMBERS}, 1e3)",
        f"s IN ({TEXTS}, 'a\\b')",
        f"s IN ({TEXTS}, '\ue0000')",
        f"a IN ({NUMBERS}) AND s = '\ue0000'",
        f"f IN ({NUMBERS}, {'9' * 30})",
        f"a + 1 IN ({NUMBERS}) IS NOT TRUE",
        f"CASE WHEN a IN ({NUMBERS}) THEN s IN ({TEXTS}) ELSE a IN (1, 2) END",
    ],
)
def test_a_long_list_means_what_the_parser_makes_of_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_filter(text, SCHEMA)
    monkeypatch.setattr(parse, "cut_long_lists", lambda sql: (sql, {}))
    assert found == parse_filter(text, SCHEMA)


def test_lists_are_cut() -> None:
    short, lists = long_lists.cut_long_lists(f"a IN ({NUMBERS}) AND s in ({TEXTS})")
    assert len(short) < 40
    assert [len(values) for values in lists.values()] == [300, 300]
    assert next(iter(lists.values()))[:2] == (ast.Literal(-150), ast.Literal(-149))


@pytest.mark.parametrize("text", [f"a IN ({NUMBERS}) AND zzz = 1", f"a IN ({NUMBERS}) AND (s = 'x'", f"a IN ({NUMBERS}"])
def test_an_error_tells_what_it_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FilterError) as told:
        parse_filter(text, SCHEMA)
    monkeypatch.setattr(parse, "cut_long_lists", lambda sql: (sql, {}))
    with pytest.raises(FilterError) as expected:
        parse_filter(text, SCHEMA)
    assert str(told.value) == str(expected.value)


@pytest.mark.parametrize(
    "text",
    [
        "a IN (" * 3000,
        "in (1," * 60000,
        "a IN (" + "1," * 200000,
        "a IN (" + "'a'," * 200000 + "'",
        "a IN (" + "''" * 200000,
    ],
)
def test_what_is_no_list_is_left(text: str) -> None:
    """Texts in which a search that begins again at each place would not come to an end."""
    assert long_lists.cut_long_lists(text) == (text, {})


def test_random_texts_in_lists() -> None:
    rng = random.Random(7)
    for _ in range(5):
        values = ["".join(rng.choice("a'\", ()-`\n%é") for _ in range(rng.randrange(6))) for _ in range(300)]
        listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
        found = parse_filter(f"s IN ({listed})", SCHEMA)
        assert isinstance(found, ast.In)
        assert [value.value for value in found.values if isinstance(value, ast.Literal)] == values
