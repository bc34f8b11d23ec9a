"""Statements that change a table by other tables leave the rows that DuckDB leaves when it carries them out itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.sql import lance_source, sql_spec
from tests.jobs.edit_support import commit, identity, make_table

duckdb = pytest.importorskip("duckdb")

USERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, None], pa.int64()),
        "grp": pa.array([1, 1, 2, 2, 3, 3], pa.int64()),
        "n": pa.array([10, 20, 30, None, 50, 60], pa.int64()),
        "name": ["a", "b", "c", "d", "e", "f"],
        "day": ["x", "y", "x", "y", "x", "y"],
    }
)
MORE = pa.table(
    {
        "user": pa.array([2, 3, 4, 7, 8, None], pa.int64()),
        "id": pa.array([2, 3, 4, 7, 8, None], pa.int64()),
        "n": pa.array([5, None, 7, 8, 9, 10], pa.int64()),
        "name": ["B", "C", None, "G", "H", "I"],
        "day": ["y", "x", "y", "x", "y", "x"],
    }
)

STATEMENTS = [
    # UPDATE ... FROM: by values of the other table alone, and of both
    "UPDATE users SET n = s.n FROM s WHERE users.id = s.user",
    "UPDATE users u SET n = s.n, name = upper(s.name) FROM s WHERE s.user = u.id AND s.n > 5",
    "UPDATE users AS u SET n = coalesce(u.n, 0) + s.n FROM s WHERE u.id = s.user",
    "UPDATE users u SET n = s.n FROM s WHERE (u.id = s.user AND u.day = 'y' AND s.n BETWEEN 1 AND 6)",
    "UPDATE users u SET name = s.day || u.name, n = CASE WHEN s.n > 6 THEN 1 ELSE u.n END FROM s WHERE u.id = s.user",
    "UPDATE users u SET n = q.m FROM (SELECT user, max(n) AS m FROM s GROUP BY user) q WHERE u.id = q.user",
    "UPDATE users u SET n = s.n FROM s JOIN s AS r ON s.user = r.id WHERE u.id = r.id AND u.day = r.day",
    "UPDATE users u SET n = CAST(s.n AS INTEGER) + 1::BIGINT, name = s.name FROM s WHERE u.id = s.user",
    # UPDATE with subqueries
    "UPDATE users SET n = 0, name = 'gone' WHERE id IN (SELECT user FROM s WHERE n > 5)",
    "UPDATE users u SET n = n + 1 WHERE u.id IN (SELECT user FROM s)",
    "UPDATE users SET n = n + 1 WHERE day = 'x' AND id IN (SELECT user FROM s)",
    "UPDATE users u SET n = (SELECT max(s.n) FROM s WHERE s.user = u.id) WHERE u.id < 4",
    "UPDATE users u SET n = (SELECT max(n) FROM s) WHERE EXISTS (SELECT 1 FROM s WHERE s.user = u.id AND s.day = u.day)",
    "UPDATE users SET n = 99 WHERE id IN (SELECT user FROM s) OR id = 1",
    "UPDATE users SET n = 0 WHERE CASE WHEN n BETWEEN 5 AND 25 THEN day = 'y' ELSE true END AND id IN (SELECT user FROM s)",
    "UPDATE users u SET n = s.n FROM s WHERE CASE WHEN s.n BETWEEN 1 AND 6 THEN s.day = 'y' ELSE true END AND u.id = s.user",
    # DELETE by other tables
    "DELETE FROM users WHERE id IN (SELECT user FROM s)",
    "DELETE FROM users WHERE id IN (SELECT user FROM s) AND day = 'y'",
    "DELETE FROM users u WHERE u.id IN (SELECT user FROM s WHERE s.day = u.day AND s.n > 5)",
    "DELETE FROM users u WHERE u.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM s WHERE s.user = u.id)",
    "DELETE FROM users u WHERE u.n > (SELECT avg(n) FROM users w WHERE w.grp = u.grp) AND u.id NOT IN (SELECT 3)",
    "DELETE FROM users USING s WHERE users.id = s.user",
    "DELETE FROM users u USING s, s AS r WHERE u.id = s.user AND s.user = r.id AND u.n > r.n",
    # MERGE with lists of columns
    "MERGE INTO users t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n",
    "MERGE INTO users t USING s ON (t.id = s.user) WHEN MATCHED THEN UPDATE SET n = s.n, name = s.name "
    "WHEN NOT MATCHED THEN INSERT (id, n, name) VALUES (s.user, s.n, s.name)",
    "MERGE INTO users t USING s ON t.id = s.user WHEN MATCHED THEN UPDATE SET n = t.n + s.n "
    "WHEN NOT MATCHED THEN INSERT (id, n, day) VALUES (s.user, 1, upper(s.day))",
    "MERGE INTO users t USING s ON t.id = s.user WHEN MATCHED AND t.day = 'y' AND s.n > 5 THEN UPDATE SET n = s.n "
    "WHEN NOT MATCHED AND s.n > 8 THEN INSERT (id, name) VALUES (s.user, CASE WHEN s.day = 'x' THEN 'x!' ELSE 'y!' END)",
    "MERGE INTO users t USING (SELECT user AS id, count(*) AS c FROM s -- one a user\n GROUP BY 1) AS q ON t.id = q.id "
    "WHEN MATCHED THEN UPDATE SET t.n = q.c + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (q.id, q.c)",
    "MERGE INTO users t USING s ON t.id = s.user WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED AND s.n > 8 THEN INSERT (id, name) VALUES (s.user, s.name)",
    "MERGE INTO users t USING s ON t.id = s.user WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.user, s.name)",
    "MERGE INTO users t USING s ON t.id = s.user WHEN MATCHED THEN UPDATE SET n = t.n * 2 "
    "WHEN NOT MATCHED BY SOURCE AND t.grp = 3 THEN DELETE",
    "MERGE INTO users t USING s ON t.id = s.user WHEN NOT MATCHED AND s.n > 8 THEN INSERT (id, name) VALUES (s.user, 'new') "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO users t USING (SELECT id, 7 AS grp, n, name, day FROM s) s ON t.id = s.id WHEN MATCHED AND s.n > t.n THEN "
    "UPDATE SET * WHEN NOT MATCHED AND s.n > 8 THEN INSERT *",
    "MERGE INTO users t USING (SELECT id, 7 AS grp, n, name, day FROM s) s ON t.id = s.id WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED AND s.n > 8 THEN INSERT *",
]  # fmt: skip


def by_duckdb(statement: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    for name, table in (("users", USERS), ("s", MORE)):
        connection.register(f"given_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS FROM given_{name}")
    # DuckDB has columns of the table without its name on the left of SET and of INSERT.
    connection.execute(statement.replace("SET t.n", "SET n"))
    return ordered(connection.execute("SELECT id, grp, n, name, day FROM users").fetchall())


def ordered(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])


def change(folder: Path, statement: str, **tables: pa.Table) -> str:
    lake = {name: make_table(str(folder / f"{name}.lance"), *parts(table)) for name, table in tables.items()}
    spec = sql_spec(statement, {n: lance_source(uri) for n, uri in lake.items()}, identity=identity(lake["users"], "1"))
    commit(spec.uri, run_job(spec))
    return lake["users"]


def parts(table: pa.Table) -> list[pa.Table]:
    return [table.slice(0, 3), table.slice(3)]


@pytest.mark.parametrize("number", range(len(STATEMENTS)), ids=lambda number: STATEMENTS[number].split()[0] + str(number))
def test_a_statement_leaves_the_rows_that_the_engine_leaves(tmp_path: Path, number: int) -> None:
    uri = change(tmp_path, STATEMENTS[number], users=USERS, s=MORE)
    found = lance.dataset(uri).to_table().select(["id", "grp", "n", "name", "day"]).to_pylist()
    assert ordered([tuple(row.values()) for row in found]) == by_duckdb(STATEMENTS[number])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE users u SET n = s.n FROM s WHERE u.id = s.user AND u.day = 'y'",
        "UPDATE users u SET n = u.n + 1 WHERE u.id IN (SELECT user FROM s)",
        "DELETE FROM users u WHERE u.id IN (SELECT user FROM s) AND u.day = 'y'",
        "DELETE FROM users u USING s WHERE u.id = s.user AND u.n > s.n",
        "MERGE INTO users u USING s ON u.id = s.user WHEN MATCHED THEN UPDATE SET n = u.n + s.n",
    ],
)
def test_a_key_that_two_rows_have_changes_nothing(tmp_path: Path, statement: str) -> None:
    twice = pa.concat_tables([USERS, USERS.slice(1, 1).set_column(2, "n", pa.array([21], pa.int64()))])
    with pytest.raises(InputError, match="users: a key is null or not unique, so id cannot tell which row to change"):
        change(tmp_path, statement, users=twice, s=MORE)
    assert lance.dataset(str(tmp_path / "users.lance")).to_table() == twice


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE users u SET n = s.n FROM s WHERE u.id = s.user",
        "UPDATE users SET n = 0 WHERE id IN (SELECT user FROM s)",
        "DELETE FROM users USING s WHERE users.id = s.user",
        "MERGE INTO users u USING s ON u.id = s.user WHEN MATCHED THEN UPDATE SET n = s.n",
    ],
)
def test_what_reads_the_other_table_alone_needs_no_unique_key(tmp_path: Path, statement: str) -> None:
    twice = pa.concat_tables([USERS, USERS.slice(1, 1)])
    uri = change(tmp_path, statement, users=twice, s=MORE)
    left = [row["n"] for row in lance.dataset(uri).to_table().to_pylist() if row["id"] == 2]
    assert left == ([] if statement.startswith("DELETE") else [0, 0] if "SET n = 0" in statement else [5, 5])


def test_a_null_key_is_refused_where_its_row_would_be_left_out(tmp_path: Path) -> None:
    statement = "UPDATE users u SET n = 1 WHERE u.day = 'y' AND NOT EXISTS (SELECT 1 FROM s WHERE s.user = u.id)"
    with pytest.raises(InputError, match="a key is null or not unique"):
        change(tmp_path, statement, users=USERS, s=MORE)


def test_several_rows_for_one_key_are_refused(tmp_path: Path) -> None:
    twice = pa.concat_tables([MORE, MORE])
    for number, statement in enumerate(("n = s.n", "n = users.n + s.n")):
        sql = f"UPDATE users SET {statement} FROM s WHERE users.id = s.user"
        with pytest.raises(InputError, match="several rows of the source match one row"):
            change(tmp_path / str(number), sql, users=USERS, s=twice)


@pytest.mark.parametrize("tail", ["UNION SELECT id FROM users", "ORDER BY id LIMIT 1", "GROUP BY ALL"])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM users u WHERE u.id IN (SELECT user FROM s)",
        "DELETE FROM users u USING s WHERE u.id = s.user AND u.n > s.n",
        "UPDATE users u SET n = u.n + s.n FROM s WHERE u.id = s.user AND u.n > 0",
        "UPDATE users u SET n = u.n + 1 WHERE u.id IN (SELECT user FROM s)",
    ],
)
def test_what_follows_a_condition_chooses_no_other_rows(tmp_path: Path, statement: str, tail: str) -> None:
    with pytest.raises(InputError):
        change(tmp_path, f"{statement} {tail}", users=USERS, s=MORE)
    assert lance.dataset(str(tmp_path / "users.lance")).to_table() == USERS
