"""SQL statements become the jobs that do their work; everything that has no job is refused by name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_tokens import SPARK
from lance_core.jobs.specs.statement import read_statement

FORMS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "select 1; ": ("query", "", "select 1", {}),
    "-- rows\nWITH q AS (SELECT 1) SELECT * FROM q": ("query", "", "WITH q AS (SELECT 1) SELECT * FROM q", {}),
    "INSERT INTO daily SELECT d AS day /* ; */ FROM o WHERE a<=3": (
        "append",
        "daily",
        "SELECT d AS day /* ; */ FROM o WHERE a<=3",
        {},
    ),
    "INSERT INTO daily SELECT E'it\\'s -- no; comment' AS note, $$(;$$ AS more FROM o -- the end\n;": (
        "append",
        "daily",
        "SELECT E'it\\'s -- no; comment' AS note, $$(;$$ AS more FROM o",
        {},
    ),
    "MERGE INTO t USING (SELECT $q$) x$q$ AS id /* all */ FROM s) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *": (
        "merge",
        "t",
        "SELECT $q$) x$q$ AS id /* all */ FROM s",
        {"on": ["id"], "when_matched": "keep", "when_not_matched": "insert", "create": False},
    ),
    'insert into "da ily" (day, "p x") select d, x::int from o': (
        "append",
        "da ily",
        'SELECT * FROM (select d, x::int from o\n) AS rows_of_query("day", "p x")',
        {"schema_drift": "fill_missing"},
    ),
    "INSERT OVERWRITE TABLE t SELECT 1 a": ("overwrite", "t", "SELECT 1 a", {}),
    "CREATE OR REPLACE TABLE t AS SELECT 1 a": ("overwrite", "t", "SELECT 1 a", {}),
    "INSERT INTO t REPLACE WHERE day='d' AND x>=2 SELECT * FROM s": (
        "replace_where",
        "t",
        "SELECT * FROM s",
        {"predicate": "day='d' AND x>=2"},
    ),
    "UPDATE users u SET u.name = upper(u.name), n = u.n+1 WHERE u.id<=3 AND \"odd u.n\"='u.n'": (
        "update",
        "users",
        "",
        {"updates": {"name": "upper(name)", "n": "n+1"}, "where": "id<=3 AND `odd u.n`='u.n'"},
    ),
    "UPDATE t SET a = b IN (1, 2)": ("update", "t", "", {"updates": {"a": "b IN (1, 2)"}}),
    "DELETE FROM t": ("delete", "t", "", {"predicate": "true"}),
    "DELETE FROM t WHERE id IN (1,2) AND x LIKE 'a;--b'": (
        "delete",
        "t",
        "",
        {"predicate": "id IN (1,2) AND x LIKE 'a;--b'"},
    ),
    "DELETE FROM users AS u WHERE u.id IN (SELECT id FROM leavers WHERE (x))": (
        "merge",
        "users",
        'SELECT DISTINCT "id" FROM (SELECT id FROM leavers WHERE (x)\n) AS rows_of_query("id") WHERE "id" IS NOT NULL',
        {"on": ["id"], "when_matched": "delete", "when_not_matched": "keep", "create": False},
    ),
    "MERGE INTO users t USING (SELECT * FROM s) s ON (t.id = s.id AND s.day=t.day) WHEN MATCHED AND s.ts > t.ts THEN UPDATE "
    "SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.old THEN DELETE": (
        "merge",
        "users",
        "SELECT * FROM s",
        {
            "on": ["id", "day"],
            "when_matched": "update",
            "when_matched_condition": "source.ts > target.ts",
            "when_not_matched": "insert",
            "when_not_matched_by_source": "delete",
            "when_not_matched_by_source_condition": "old",
            "create": False,
        },
    ),
    "MERGE INTO a USING b USING (k) WHEN MATCHED THEN DELETE": (
        "merge",
        "a",
        'SELECT * FROM "b"',
        {"on": ["k"], "when_matched": "delete", "when_not_matched": "keep", "create": False},
    ),
}

BY_OTHERS_ALONE = [
    "s.n", "upper(s.name)", "s.n + INTERVAL 1 DAY", "DATE '2026-01-01'", "CAST(s.n AS INT)", "s.a.b.c", "CURRENT_DATE",
    "CASE WHEN s.n > 1 THEN 'u.n' ELSE s.x END",
]  # fmt: skip
BY_ITS_OWN = [
    "u.n", "n", "s.n + n", "(SELECT 1)", "upper(n)", "n.upper()", "list_transform(s.l, x -> x + n)", "load", "call", "show",
    "set n", "s.n IN u", "s.a[n]", "s.n +", "EXISTS (FROM u)", "date",
]  # fmt: skip
"""Or by what may be its own, or what cannot be told."""

REFUSED = {
    "": "must begin with one of",
    "DROP TABLE x": "got DROP",
    "DELETE FROM t /* WHERE id = 1": "a text, a name in quotes or a comment is not closed",
    "DELETE FROM t WHERE id = 'x": "a text, a name in quotes or a comment is not closed",
    "SELECT 1; SELECT 2": "one statement at a time",
    "CREATE TABLE x AS SELECT 1": "expected OR, got TABLE",
    "INSERT INTO t": "expected a query, got the end",
    "INSERT INTO t VALUES (1, 'x')": "names no columns.*INSERT INTO t .a, b. VALUES",
    "INSERT OVERWRITE t VALUES (1)": "names no columns",
    "INSERT INTO t REPLACE WHERE a = 1 VALUES (1)": "names no columns",
    "INSERT INTO t (a": "not closed",
    "INSERT INTO t (a) SELECT 1) AS q(a) UNION (SELECT 2": "that none opens",
    "DELETE FROM t WHERE id IN (SELECT 1)) OR (true": "that none opens",
    "UPDATE t SET a = s.a), (s.b FROM s WHERE t.id = s.id": "that none opens",
    "INSERT INTO lake.t SELECT 1": "plain names",
    "UPDATE t SET a = 1 FROM b": "compares no key column of t",
    "UPDATE t SET a = 1 FROM WHERE t.id = b.id": "another table to change t by",
    "UPDATE t SET a = 1 FROM b WHERE t.id = b.id OR b.x": "compares no key column",
    "UPDATE t SET a = 1 FROM b WHERE t.id = b.id AND b.y OR b.x": "compares no key column",
    "UPDATE t SET id = 1 FROM b WHERE t.id = b.id": "cannot be changed as well",
    "UPDATE t SET b.a = 1 WHERE x": "expected SET column = expression",
    "UPDATE t SET a": "expected SET column = expression",
    "UPDATE t SET a = (SELECT 1)": "no key column of t is compared",
    "UPDATE t SET a = ": "an expression is missing",
    "DELETE FROM t WHERE a > (SELECT 1)": "no key column of t is compared",
    "DELETE FROM t USING b": "compares no key column of t",
    "DELETE FROM t WHERE": "condition or an expression is missing",
    "MERGE INTO a USING b ON a.k = b.j WHEN MATCHED THEN DELETE": "columns of one name",
    "MERGE INTO a USING b ON a.k = b.k AND b.x > 1 WHEN MATCHED THEN DELETE": "columns of one name",
    "MERGE INTO a USING b ON a.k = b.k WHEN MATCHED THEN UPDATE SET x = 1 WHEN NOT MATCHED THEN INSERT *": "the other has a",
    "MERGE INTO a USING b ON a.k = b.k WHEN MATCHED THEN UPDATE SET k = b.x": "'k' is a key, so UPDATE SET cannot change it",
    "MERGE INTO a USING b ON a.k = b.k WHEN NOT MATCHED THEN INSERT (x) VALUES (b.x)": "it the value b.k",
    "MERGE INTO a USING b ON a.k = b.k WHEN NOT MATCHED THEN INSERT (k, x) VALUES (b.k)": "names 2 columns and gives 1",
    "MERGE INTO a USING b ON a.k = b.k WHEN NOT MATCHED THEN INSERT (k, x)": "expected INSERT .columns. VALUES",
    "MERGE INTO a USING b ON a.k = b.k WHEN MATCHED AND b.x THEN DELETE": "not supported here",
    "MERGE INTO a USING b ON a.k = b.k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 1": "not supported here",
    "MERGE INTO a USING b ON a.k = b.k WHEN MATCHED AND a.x THEN UPDATE SET x = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE": (
        "cannot be combined with WHEN NOT MATCHED BY SOURCE"
    ),
    "MERGE INTO a USING b ON a.k = b.k WHEN MATCHED AND b.x THEN UPDATE SET * WHEN MATCHED THEN DELETE": "two clauses",
}


@pytest.mark.parametrize("sql", FORMS)
def test_a_statement_becomes_a_job(sql: str) -> None:
    kind, target, query, fields = FORMS[sql]
    told = read_statement(sql)
    assert (told.kind, told.target, told.query, dict(told.fields)) == (kind, target, query, fields)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_has_no_job_is_refused(sql: str) -> None:
    with pytest.raises(InputError, match=REFUSED[sql]):
        read_statement(sql)


@pytest.mark.parametrize("expression", BY_OTHERS_ALONE + BY_ITS_OWN)
def test_the_table_is_read_where_an_expression_may_need_it(expression: str) -> None:
    query = read_statement(f"UPDATE users u SET x = {expression} FROM s WHERE u.id = s.id").query
    assert ("lance_copies" in query) == (expression in BY_ITS_OWN)
    assert f"({expression}\n)" in query


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'a\\tb'", "'a\tb'"),
        ("'it''s'", "'it''s'"),
        ("'it\\'s'", "'it''s'"),
        ('"it\'s"', "'it''s'"),
        ("r'a\\q'", "'a\\q'"),
        ("'a\\\\q'", "'a\\q'"),
        ("x'00'", "x'00'"),
        ("`a``b`", "`a`b`"),
        ("1.5D", "1.5D"),
    ],
)
def test_texts_of_spark_become_those_of_a_filter(text: str, said: str) -> None:
    told = read_statement(f"DELETE FROM t WHERE a = {text} /* a /* nested */ comment */ AND b", SPARK)
    assert told.fields == {"predicate": f"a = {said} AND b"}


@pytest.mark.parametrize("escape", ["\\%", "\\_", "\\q", "\\u0041", "\\0", "\\101"])
def test_an_escape_of_spark_that_no_filter_has_is_refused(escape: str) -> None:
    with pytest.raises(InputError, match="holds the escape"):
        read_statement(f"DELETE FROM t WHERE a = 'x{escape}'", SPARK)


def test_reading_a_statement_imports_its_parser_and_nothing_before_does() -> None:
    script = """
import sys
from airflow_lance.operators.sql import LanceSqlOperator
from lance_core.jobs.specs.sql import sql_spec
from lance_core.jobs.specs.statement import read_statement
assert "sqlglot" not in sys.modules
read_statement("SELECT 1")
assert "sqlglot" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
