"""An expression has one meaning, whether the library computes it or a statement's engine does, in each form of one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import LanceDataset, write_dataset
from lance_core.dataset.query.engine_functions import EngineFunctions
from lance_core.dataset.query.table_view import TableView
from lance_core.errors import LanceError
from lance_core.expr.queries import in_our_meaning
from lance_core.jobs.run import run_job
from lance_core.jobs.sources.duckdb_sql import query
from lance_core.jobs.specs.sql import lance_source, sql_spec
from tests.jobs.edit_support import commit, identity
from tests.jobs.sources.statement_forms import FORMS, TABLE, Expressions

pytest.importorskip("duckdb")
KNOWN = [
    "n / 4", "1 / 3", "n / m", "n % 4", "CAST(f AS INT)", "CAST(d AS BIGINT)", "CAST(ts AS STRING)", "n * 0.1", "d / 3",
    "round(d, 1)", "TRY_CAST(t AS INT)", "CASE WHEN m < 2 THEN d ELSE g END", "m + 1", "s || f", "g = 0.1",
    "-2 / nullif(d, 0)", "upper(s)",
]  # fmt: skip
GUARDED = [
    "CASE WHEN n <> 0 THEN m / n ELSE 0.5 END", "CASE n WHEN 0 THEN 0.5 ELSE m / n END", "n <> 0 AND m / n >= 0",
    "n = 0 OR m / n >= 0", "NOT (n IS NULL OR n = 0 OR m / n < 3)",
    "CASE WHEN n = 0 THEN 0.5 WHEN m % n = 0 THEN m / n ELSE n END", "CASE WHEN n <> 0 AND m / n >= 0 THEN 1 ELSE 0 END",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    return write_dataset(TABLE, str(tmp_path_factory.mktemp("forms") / "t.lance"))


def asked(table: LanceDataset, form: str, expression: str) -> list[Any] | None:
    """What the engine gives for an expression in a form, by id; None when it refuses it."""
    text = FORMS[form].replace("{}", expression)
    try:
        rows = query(text, {"t": TableView(table.snapshot)}, what="it", cure="", batch_rows=1000).read_all()
    except LanceError:
        return None
    found: list[Any] = rows.sort_by("id")["x"].to_pylist()
    return found


def computed(table: LanceDataset, expression: str) -> list[Any] | None:
    try:
        found: list[Any] = table.to_table(columns={"x": expression})["x"].to_pylist()
    except LanceError:
        return None
    return found


def same(one: list[Any] | None, other: list[Any] | None) -> bool:
    """Whether values are the same; 3 and 3.0 are."""
    if one is None or other is None:
        return one is other
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def differing(table: LanceDataset, expressions: Iterator[str], forms: list[str]) -> list[str]:
    found = []
    for number, expression in enumerate(expressions):
        here = computed(table, expression)
        form = forms[number % len(forms)]
        there = asked(table, form, expression)
        if here is not None and not same(here, there):
            found.append(f"{form}: {expression}: {here} here, {there} there")
    return found


def some(seed: int, count: int) -> Iterator[str]:
    supply = Expressions(seed)
    return (supply.next() for _ in range(count))


@pytest.mark.parametrize("expression", KNOWN)
def test_an_expression_is_computed_as_the_library_and_the_official_one_do(table: LanceDataset, expression: str) -> None:
    here = computed(table, expression)
    assert here is not None
    assert same(here, asked(table, "plain", expression))
    batches = lance.dataset(table.uri).sql(f"SELECT {expression} AS x FROM dataset").build().to_batch_records()
    official = [value for batch in batches for value in batch["x"].to_pylist()]
    if expression != "g = 0.1":  # the official library's filters and its SQL contradict each other
        assert same(here, official)


@pytest.mark.parametrize(
    "expression", ["f * (1 / 2)", "g = 1 / 2", "d + 7 / 2", "f IN (5 / 2, 3)", "abs(f * (1 / 2))", "n * (7 / 2)"]
)
def test_quotients_of_constants_take_the_type_of_the_column(table: LanceDataset, expression: str) -> None:
    here = computed(table, expression)
    assert here is not None
    assert [form for form in FORMS if not same(here, asked(table, form, expression))] == []


@pytest.mark.parametrize("expression", GUARDED)
def test_a_guarded_division_is_the_same_in_each_form(table: LanceDataset, expression: str) -> None:
    """Some of these the official library refuses: it divides first."""
    assert computed(table, expression) is not None
    assert not differing(table, iter([expression] * len(FORMS)), [*FORMS])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(n) / sum(n - n) AS x FROM t HAVING sum(n - n) <> 0", []),
        ("SELECT CASE WHEN sum(n - n) <> 0 THEN sum(n) / sum(n - n) ELSE 0.5 END AS x FROM t", [0.5]),
        ("SELECT count(*) AS x FROM t WHERE (n <> 0 AND m / n > 3) OR id = 0", [2]),
        ("SELECT count(*) AS x FROM t GROUP BY n HAVING n = 0 OR 100 / n > 90", [1, 1]),
        ("SELECT CASE WHEN n = 0 THEN 0.5 ELSE row_number() OVER (ORDER BY id) / n END AS x FROM t WHERE id = 2", [0.5]),
    ],
)
def test_what_a_condition_guards_is_not_computed_for_other_rows(table: LanceDataset, sql: str, expected: list[Any]) -> None:
    rows = query(sql, {"t": TableView(table.snapshot)}, what="it", cure="", batch_rows=1000).read_all()
    assert rows["x"].to_pylist() == expected


def test_guards_of_many_operands_compute_none_more_than_twice() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("t", TABLE)
    conditions = " OR ".join(f"m / n = {number}" for number in range(60))
    made = in_our_meaning(f"SELECT id FROM t WHERE n <> 0 AND ({conditions})", EngineFunctions(duckdb, connection))
    assert 60 <= made.count("lance_") <= 2 * 60
    assert connection.sql(made).fetchall() == [(0,), (1,), (3,), (6,), (7,)]


def test_random_expressions_mean_the_same_in_each_form(table: LanceDataset) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    assert not differing(table, some(seed, 36), [*FORMS])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_many_random_expressions_mean_the_same(table: LanceDataset, form: str) -> None:
    assert not differing(table, some(len(form) * 1000 + ord(form[0]), 700), [form])


STATEMENTS = [
    "UPDATE t SET f = {e} WHERE id < 5",
    "UPDATE t SET f = {e} WHERE id IN (SELECT id FROM u WHERE id < 5)",
    "UPDATE t SET f = {e} FROM u WHERE t.id = u.id AND u.id < 5",
    "MERGE INTO t USING (SELECT id FROM u WHERE id < 5) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET f = {e}",
    "MERGE INTO t USING (SELECT id, {e} AS f FROM t WHERE id < 5) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET f = s.f",
]


@pytest.mark.parametrize("expression", ["t.n / 4", "CAST(t.f AS INT)", "round(t.d, 1) / 3", "t.n * 0.1"])
def test_a_change_by_other_tables_stores_what_a_simple_one_does(tmp_path: Path, expression: str) -> None:
    stored = []
    for number, statement in enumerate(STATEMENTS):
        uri, other = str(tmp_path / f"{number}.lance"), str(tmp_path / f"u{number}.lance")
        write_dataset(TABLE.select(["id", "n", "f", "d"]), uri)
        write_dataset(pa.table({"id": TABLE["id"]}), other)
        tables = {"t": lance_source(uri), "u": lance_source(other)}
        commit(uri, run_job(sql_spec(statement.format(e=expression), tables, identity=identity(f"{number}"))))
        stored.append(lance.dataset(uri).to_table().sort_by("id").to_pylist())
    assert stored[1:] == stored[:1] * (len(STATEMENTS) - 1)
    assert stored[0] != TABLE.select(["id", "n", "f", "d"]).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM t SELECT count(*)", [8]),
        ("SELECT list_sum([x / 2 for x in [1, 2]]) FROM t LIMIT 1", [1.5]),
        ("SELECT n / 4 AS y, y + 1 AS z FROM t WHERE id = 0", [1, 2]),
        ("SELECT sum(n) / 4 FROM t", [4]),
        ("SELECT sum(n / 4) FROM t", [4]),
        ("SELECT m / 2 AS g, count(*) FROM t GROUP BY ALL ORDER BY g LIMIT 1", [-1, 1]),
        ("SELECT n / 4, count(*) FROM t GROUP BY n / 4 HAVING n / 4 > 1 ORDER BY n / 4", [2, 2]),
        ("SELECT n FROM t QUALIFY row_number() OVER (ORDER BY n / 4 DESC, n) = 1", [9]),
        ("SELECT * EXCLUDE (n) REPLACE (m / 2 AS m) FROM (SELECT n, m FROM t WHERE id = 1)", [1]),
        ("SELECT strftime(ts, '%Y') FROM t WHERE id = 0", ["2020"]),
        ("WITH RECURSIVE r(i) AS (SELECT 8 UNION ALL SELECT i / 2 FROM r WHERE i > 1) SELECT count(*) FROM r", [4]),
        ("SELECT a.n / b.m FROM t a ASOF JOIN t b ON a.id >= b.id WHERE a.id = 5", []),
        ("SELECT TIMESTAMP '9999-12-31 00:00:00' - INTERVAL 1 DAY < TIMESTAMP '9999-12-31 00:00:00'", [True]),
        ("VALUES (1 / 3, 'a')", [0, "a"]),
        ("SELECT max(x) FROM (PIVOT (SELECT id, b, n FROM t) ON b USING sum(n) GROUP BY id) p(id, x, y)", [9]),
    ],
)
def test_statements_of_the_engine_alone_are_answered(table: LanceDataset, text: str, expected: list[Any]) -> None:
    rows = query(text, {"t": TableView(table.snapshot)}, what="it", cure="", batch_rows=1000).read_all()
    assert [column[0].as_py() for column in rows.columns if rows.num_rows] == expected or not expected


def test_names_of_columns_stay(table: LanceDataset) -> None:
    rows = query("SELECT n / 4, round(f) FROM t", {"t": TableView(table.snapshot)}, what="it", cure="", batch_rows=9)
    assert rows.schema.names == ["(n / 4)", "round(f)"]


def test_an_error_of_ours_is_named(table: LanceDataset) -> None:
    with pytest.raises(LanceError, match="division by zero"):
        query(
            "SELECT t.m / t.n FROM t JOIN t u USING (id)", {"t": TableView(table.snapshot)}, what="it", cure="", batch_rows=9
        ).read_all()
