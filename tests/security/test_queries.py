"""Queries and filters: no files, no settings, bounded size and linear time."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import FilterError, InputError
from lance_core.expr import evaluate, parse_filter, patterns, regex_functions
from lance_core.expr.patterns import match_like
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.specs.bind import bind

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
PATIENCE = 10.0
"""Seconds of this thread alone, not of what other tests left running: what these tests forbid takes minutes."""


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM read_text('{0}')", "SELECT * FROM read_csv('{0}')", "SELECT * FROM '{0}'", "COPY t TO '{0}.out'",
     "ATTACH '{0}.db' AS x", "INSTALL httpfs", "LOAD httpfs", "SET enable_external_access = true",
     "SET memory_limit = '1TB'",
     "SELECT getenv('HOME') AS a", "SELECT * FROM secret_table_of_python"],
)  # fmt: skip
def test_a_query_sees_its_views_only(tmp_path: Path, sql: str) -> None:
    secret_table_of_python = pa.table({"a": [1]})
    place = tmp_path / "secret.csv"
    place.write_text("a\n1\n")
    table = pa.table({"a": [1, 2]})
    with pytest.raises(InputError):
        query(sql.format(place), {"t": table.to_reader()}, what="q", cure="c", batch_rows=10).read_all()
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(table, uri)
    with pytest.raises(InputError):
        lance_core.dataset(uri).sql(sql.format(place)).build().to_batch_records()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv", "t.lance"]
    assert secret_table_of_python.num_rows == 1


def test_a_query_over_its_views_still_works() -> None:
    reader = query(
        "SELECT sum(a) AS n FROM t", {"t": pa.table({"a": [1, 2]}).to_reader()}, what="q", cure="c", batch_rows=10
    )
    assert reader.read_all().to_pylist() == [{"n": 3}]


@pytest.mark.parametrize(
    "text",
    ["(" * 500_000 + "a = 1" + ")" * 500_000, " or ".join(["a = 1"] * 100_000), "not " * 100_000 + "a = 1",
     "a = 1 and (" * 3000 + "a = 1" + ")" * 3000, "x" * (17 << 20)],
    ids=["parentheses", "1 MB of OR", "NOTs", "nested ANDs", "long"],
)  # fmt: skip
def test_a_filter_that_is_too_large_is_refused_at_once(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(FilterError):
        parse_filter(text, SCHEMA)
    assert time.thread_time() - began < PATIENCE


def test_long_filters_below_the_limits_are_read() -> None:
    values = ", ".join(str(number) for number in range(3000))
    assert parse_filter(f"a in ({values})", SCHEMA)
    assert parse_filter(" or ".join(f"a = {number}" for number in range(500)), SCHEMA)
    assert parse_filter("s = 'and or not (((((' or s like '%'", SCHEMA)


def test_many_percent_signs_cost_what_one_does(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"a": [1, 2], "s": ["xx", "yx"]}), uri)
    began = time.thread_time()
    found = lance_core.dataset(uri).to_table(filter="s like 'x" + "%" * 20_000 + "'")
    assert found.to_pylist() == [{"a": 1, "s": "xx"}]
    assert time.thread_time() - began < PATIENCE


@pytest.mark.parametrize("count", [600, 20_000])
def test_a_pattern_of_thousands_of_pieces_takes_linear_time(count: int) -> None:
    texts = pa.array(["x" * 100_000, "x" * (count - 1), None, "x" * 100_000 + "y"])
    began = time.thread_time()
    found = match_like(texts, pa.scalar("%x" * count), ignore_case=False, escape="\\")
    assert found.to_pylist() == [True, False, None, False]
    for pattern, ignore_case in [("%_" * count, False), ("%x_" * count, False), ("%" + "X" * 2 * count, True)]:
        with pytest.raises(FilterError, match="the limit is 1,000"):
            match_like(texts, pa.scalar(pattern), ignore_case=ignore_case, escape="\\")
    assert time.thread_time() - began < PATIENCE


def test_long_and_short_patterns_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    made = [["".join(rng.choice("ab%\\é_") for _ in range(rng.randrange(8))) for _ in range(6)] for _ in range(300)]
    pairs = [(pattern.replace("_", "%"), [*texts, None]) for pattern, *texts in made]

    def found() -> list[list[bool | None]]:
        return [
            match_like(pa.array(texts), pa.scalar(pattern), ignore_case=False, escape="\\").to_pylist()
            for pattern, texts in pairs
        ]

    expected = found()
    monkeypatch.setattr(patterns, "_MAX_STATES", 0)
    assert found() == expected
    assert match_like(pa.scalar("ab"), pa.scalar("%b%"), ignore_case=False, escape="\\").as_py() is True


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "(x|x)*y|z", "(?:a?x|x)*y|z", "(x*x*x*x*x*x*)*y"])
@pytest.mark.parametrize(
    "text", ["regexp_count(s, {}) = 7", "regexp_replace(s, {}, '') = ''", "regexp_instr(s, {}) = 7",
             "array_length(regexp_match(s, {} || '|x')) = 7", "regexp_like(s, {}) and a = 7"],
)  # fmt: skip
def test_no_regular_expression_keeps_a_filter_busy(monkeypatch: pytest.MonkeyPatch, text: str, pattern: str) -> None:
    monkeypatch.setattr(patterns, "MAX_SECONDS", 0.2)
    monkeypatch.setattr(regex_functions, "MAX_SECONDS", 0.2)
    batch = pa.record_batch({"a": [1], "s": ["x" * 60]})
    began = time.thread_time()
    with suppress(FilterError):
        assert evaluate(parse_filter(text.format(f"'{pattern}'"), batch.schema), batch).to_pylist() == [False]
    assert time.thread_time() - began < PATIENCE


def test_a_group_that_a_pattern_does_not_have_is_a_typed_error() -> None:
    batch = pa.record_batch({"a": [1], "s": ["xyz"]})
    with pytest.raises(FilterError, match="has no group 3"):
        evaluate(parse_filter("regexp_instr(s, '(y)', 1, 1, '', 3) = 1", batch.schema), batch)


def test_a_bound_value_cannot_change_the_filter() -> None:
    evil = "x' or 'a' = 'a"
    table = pa.table({"a": [1, 2], "s": [evil, "y"]})
    bound = bind("s = :s and a in :ids and s <> ':s'", {"s": evil, "ids": [1, 2]})
    assert bound == "s = 'x'' or ''a'' = ''a' and a in (1, 2) and s <> ':s'"
    assert table.filter(evaluate(parse_filter(bound, table.schema), table.to_batches()[0])).num_rows == 1
    wrong = [("a = :b", {"c": 1}), ("a = 1", {"b": 1}), ("a = :b", {"b": object()}), ("a = :b", {"b": "\x00"})]
    for predicate, params in wrong:
        with pytest.raises(InputError):
            bind(predicate, params)
