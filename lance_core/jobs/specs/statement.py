"""SQL statements that change a table, read into the work that does it. A DAG file may import this.

::

    INSERT INTO daily SELECT day, sum(price) AS price FROM orders GROUP BY day       append of a query's rows, by column name
    INSERT OVERWRITE daily SELECT ..., CREATE OR REPLACE TABLE daily AS SELECT ...    overwrite
    INSERT INTO daily REPLACE WHERE day = '2026-01-01' SELECT ...                     replace_where
    UPDATE daily SET price = price * 2 WHERE day = 7, DELETE FROM daily WHERE ...     update, delete
    UPDATE daily d SET price = s.price FROM s WHERE d.day = s.day                     merge of the new values, by key
    DELETE FROM users WHERE id IN (SELECT id FROM leavers)                            merge that deletes what matches
    MERGE INTO users USING (SELECT ...) s ON users.id = s.id WHEN MATCHED THEN ...    merge

Queries inside are left to the engine as they were written. Conditions and expressions over the table's own rows become our
filters; those that read other tables become a query that gives keys and new values (`statement_keys`).
"""

from __future__ import annotations

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_reader import NOTHING, QUERY, Statement, StatementReader, as_filter, has_query
from lance_core.jobs.specs.sql_tokens import DUCKDB, Dialect
from lance_core.jobs.specs.statement_keys import delete_by_query, delete_using, update_by_query, update_from
from lance_core.jobs.specs.statement_merge import read_merge

_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE"})
SUPPORTED = "SELECT, INSERT, UPDATE, DELETE, MERGE and CREATE OR REPLACE TABLE ... AS"


def read_statement(sql: str, dialect: Dialect = DUCKDB) -> Statement:
    """What one statement asks for. InputError for another statement, and for a form that has no job."""
    reader = StatementReader(sql, dialect)
    first = reader.peek()
    if first in QUERY:
        return Statement("query", query=reader.rest())
    if first not in _CHANGES:
        raise InputError(f"a statement must begin with one of {SUPPORTED}; got {first or 'nothing'}")
    return {"INSERT": _insert, "CREATE": _create, "UPDATE": _update, "DELETE": _delete, "MERGE": read_merge}[first](reader)


def _insert(reader: StatementReader) -> Statement:
    reader.expect("INSERT")
    if reader.take("OVERWRITE"):
        _ = reader.take("INTO") or reader.take("TABLE")
        return Statement("overwrite", reader.name("a table"), _rows_by_name(reader))
    reader.expect("INTO")
    target = reader.name("a table")
    if reader.take("REPLACE"):
        reader.expect("WHERE")
        predicate = as_filter(reader.until(QUERY), {target}, reader.dialect)
        return Statement("replace_where", target, _rows_by_name(reader), {"predicate": predicate})
    if reader.take("BY"):
        reader.expect("NAME")
    columns = reader.names() if reader.peek() == "(" and reader.peek(1) not in QUERY else []
    if not columns:
        return Statement("append", target, _rows_by_name(reader))
    renamed = reader.select("*", f"({reader.query()}\n) AS rows_of_query({', '.join(map(reader.dialect.quoted, columns))})")
    return Statement("append", target, renamed, {"schema_drift": "fill_missing"})


def _rows_by_name(reader: StatementReader) -> str:
    """Take a query that names its columns. InputError for VALUES alone, which another engine would take by position."""
    if reader.peek() == "VALUES":
        raise InputError(
            "INSERT ... VALUES names no columns, and rows are added by the names of their columns",
            cure="Write INSERT INTO t (a, b) VALUES (1, 'x').",
        )
    return reader.query()


def _create(reader: StatementReader) -> Statement:
    for word in ("CREATE", "OR", "REPLACE", "TABLE"):
        reader.expect(word, "Write CREATE OR REPLACE TABLE ... AS SELECT; LanceCreateTableOperator creates an empty table.")
    target = reader.name("a table")
    reader.expect("AS")
    return Statement("overwrite", target, reader.query())


def _update(reader: StatementReader) -> Statement:
    reader.expect("UPDATE")
    target, alias = reader.table()
    own = {target, alias}
    reader.expect("SET")
    updates = reader.assignments(reader.until({"WHERE", "FROM"}), own)
    if reader.take("FROM"):
        source = reader.until({"WHERE"})
        return Statement("merge", target, *update_from(reader, (target, alias), updates, source, reader.where()))
    where = reader.where()
    if any(map(has_query, updates.values())) or has_query(where or ()):
        return Statement("merge", target, *update_by_query(reader, (target, alias), updates, where))
    told = {name: as_filter(tokens, own, reader.dialect) for name, tokens in updates.items()}
    condition = {} if where is None else {"where": as_filter(where, own, reader.dialect)}
    return Statement("update", target, fields={"updates": told, **condition})


def _delete(reader: StatementReader) -> Statement:
    reader.expect("DELETE")
    reader.expect("FROM")
    target, alias = reader.table()
    if reader.take("USING"):
        source = reader.until({"WHERE"})
        query, fields = delete_using(reader, (target, alias), source, reader.where())
        return Statement("merge", target, query, {**NOTHING, **fields})
    where = reader.where()
    if where is None:
        return Statement("delete", target, fields={"predicate": "true"})
    if has_query(where):
        query, fields = delete_by_query(reader, (target, alias), where)
        return Statement("merge", target, query, {**NOTHING, **fields})
    return Statement("delete", target, fields={"predicate": as_filter(where, {target, alias}, reader.dialect)})
