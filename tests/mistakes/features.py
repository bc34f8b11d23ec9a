"""Mistakes with what is younger than the first tables: declared columns, columns that are filled, descriptions, empty
sources, duplicates, audits, results and tasks that return rows. See `mistakes.py`."""

from __future__ import annotations

import json
import os
from typing import Any
from unittest.mock import patch

from airflow.sdk import DAG

import lance_core
from airflow_lance.decorators.lance import lance_task
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.describe import LanceDescribeOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.publish_branch import LancePublishBranchOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.rename_column import LanceRenameColumnOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.switch_column import LanceSwitchColumnOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from tests.airflow.operator_support import execute
from tests.mistakes.mistakes import ROW, Call, Mistake, Table, rows_of, task_of


def _text(content: str | bytes) -> Any:
    """A CSV file of this content."""

    def make(table: Table) -> str:
        path = table.folder / "s.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return make


HEADER = "id,city,day,v\n"


def _declared(**arguments: Any) -> Call:
    return lambda t: lance_core.declare_column(t.uri, **arguments)


COLUMNS = {
    "what becomes of a column that exists, with a typing error": Mistake(
        ("fil", "if_exists"),
        ("fill",),
        dag=task_of(LanceAddColumnsOperator, columns={"city": "'x'"}, if_exists="fil"),
    ),
    "a column is filled with another type": Mistake(
        ("city", "string", "int64"),
        ("another name",),
        dag=task_of(LanceAddColumnsOperator, columns={"city": "id"}, if_exists="fill"),
    ),
    "a column is added by nothing": Mistake(
        ("columns", "function"), ("exactly one of",), dag=task_of(LanceAddColumnsOperator)
    ),
    "a column by a function that is not there": Mistake(
        ("textwrap:wrapp",),
        ("wrap",),
        dag=task_of(LanceAddColumnsOperator, function="textwrap:wrapp", reads=["city"]),
    ),
    "a declared column that reads an unknown one": Mistake(
        ("cty",),
        ("city",),
        dag=task_of(LanceDeclareColumnOperator, column="words", sql="length(cty)"),
        python=_declared(name="words", sql="length(cty)"),
    ),
    "a declared column that reads itself": Mistake(
        ("city",),
        ("another name",),
        dag=task_of(LanceDeclareColumnOperator, column="city", sql="upper(city)"),
        python=_declared(name="city", sql="upper(city)"),
    ),
    "a column of texts that is declared by numbers": Mistake(
        ("city", "id + 1", "string", "int64"),
        ("CAST",),
        dag=task_of(LanceDeclareColumnOperator, column="city", sql="id + 1"),
        python=_declared(name="city", sql="id + 1"),
    ),
    "a declared column without its type": Mistake(
        ("words",), ("type",), python=_declared(name="words", function="textwrap:wrap", inputs=["city"])
    ),
    "a declared column by two rules": Mistake(
        ("sql", "function"), ("one of them",), python=_declared(name="words", sql="length(city)", function="textwrap:wrap")
    ),
    "a column that nobody declared is refreshed": Mistake(
        ("city",),
        ("Declared columns",),
        dag=task_of(LanceRefreshColumnsOperator, columns=["city"]),
        python=lambda t: lance_core.refresh_columns(t.uri, ["city"]),
        cli=lambda t: ["refresh", t.uri, "--column", "city"],
    ),
    "a declaration that is not there is taken back": Mistake(
        ("city",),
        ("Declared columns",),
        python=lambda t: lance_core.undeclare_column(t.uri, "city"),
        cli=lambda t: ["undeclare", t.uri, "city"],
    ),
    "what becomes of a row whose function fails, with a typing error": Mistake(
        ("skipp",), ("skip",), dag=task_of(LanceDeclareColumnOperator, column="n", sql="id + 1", on_error="skipp")
    ),
    "a column that nobody declared is switched": Mistake(
        ("city_next",), ("Its columns",), dag=task_of(LanceSwitchColumnOperator, column="city", version="2")
    ),
    "a column gets the name of another": Mistake(
        ("day",), ("another name",), dag=task_of(LanceRenameColumnOperator, column="city", new_name="day")
    ),
    "a column that is not there is renamed": Mistake(
        ("cty",), ("city",), dag=task_of(LanceRenameColumnOperator, column="cty", new_name="town")
    ),
}

WORDS = {
    "a description of an unknown column": Mistake(
        ("cty",),
        ("city",),
        cli=lambda t: ["describe", t.uri, "--column", "cty=where"],
        dag=task_of(LanceDescribeOperator, columns={"cty": "where"}),
    ),
    "a freshness without its unit": Mistake(
        ("26", "fresh"),
        ("26h",),
        cli=lambda t: ["describe", t.uri, "--fresh-within", "26"],
        dag=task_of(LanceDescribeOperator, fresh_within="26"),
    ),
    "a description of nothing": Mistake((), ("description",), dag=task_of(LanceDescribeOperator)),
    "a description of a column without its words": Mistake(
        ("city",), ("=",), cli=lambda t: ["describe", t.uri, "--column", "city"]
    ),
    "a button that is not there": Mistake(("compac",), ("compact",), page={"action": "compac"}),
    "a button with an argument of another type": Mistake(
        ("version", "str"), ("int",), page={"action": "restore", "version": "two", "expected_version": 2}
    ),
    "a button with an argument that it has not": Mistake(
        ("nam",), ("name",), page={"action": "tag", "nam": "gold", "version": 1}
    ),
    "a button with an age below none": Mistake(
        ("older_than_days", "-1"), ("must not be negative",), page={"action": "cleanup", "older_than_days": -1}
    ),
}

SOURCES = {
    "an overwrite with no rows": Mistake(
        ("no rows",),
        ("allow_empty",),
        cli=lambda t: ["write", t.uri, _text(HEADER)(t), "--mode", "overwrite"],
        dag=task_of(LanceOverwriteOperator, source=_text(HEADER)),
    ),
    "a replacement with no rows": Mistake(
        ("no rows",),
        ("allow_empty",),
        dag=task_of(LanceReplaceWhereOperator, predicate="id < 10", source=_text("id\n"), schema_drift="fill_missing"),
    ),
    "a file of no bytes": Mistake(
        ("s.csv",),
        ("rename it when it is complete",),
        cli=lambda t: ["write", t.uri, _text("")(t)],
        dag=task_of(LanceAppendOperator, source=_text("")),
    ),
    "a pattern that matches no file": Mistake(
        ("*.parquet",),
        ("glob pattern",),
        cli=lambda t: ["write", t.uri, f"{t.folder}/raw/*.parquet"],
        dag=task_of(LanceAppendOperator, source=lambda t: f"{t.folder}/raw/*.parquet"),
    ),
    "a file in another encoding": Mistake(
        ("s.csv",),
        ("encoding",),
        cli=lambda t: ["write", t.uri, _text(b"id,city\n1,M\xfcnchen\n")(t)],
        dag=task_of(LanceAppendOperator, source=_text(b"id,city\n1,M\xfcnchen\n")),
    ),
    "a value that does not fit": Mistake(
        ("id", "x1"),
        ("schema",),
        dag=task_of(LanceAppendOperator, source=_text("id,city\n1,Bonn\nx1,Rome\n"), schema_drift="fill_missing"),
    ),
    "what is done when a file is late, with a typing error": Mistake(
        ("wait",), ("retry",), dag=task_of(LanceAppendOperator, source="/x.csv", on_missing="wait")
    ),
    "what is done with a key twice, with a typing error": Mistake(
        ("frist",), ("last",), dag=task_of(LanceMergeOperator, on="id", source=rows_of(**ROW), when_duplicate="frist")
    ),
    "what is done with rows that match, with a typing error": Mistake(
        ("updat",), ("update",), dag=task_of(LanceMergeOperator, on="id", source=rows_of(**ROW), when_matched="updat")
    ),
    "a condition of a merge by an unknown column": Mistake(
        ("cty",),
        ("city",),
        dag=task_of(LanceMergeOperator, on="id", source=rows_of(**ROW), when_matched_condition="source.cty = 'x'"),
    ),
}


def _group(**arguments: Any) -> Call:
    def call(table: Table) -> object:
        with DAG("audits", schedule=None):
            return LanceWriteAuditPublish("day", uri=table.uri, **arguments)

    return call


def _connection(kind: str) -> Call:
    """A query through a connection of another kind."""

    def call(table: Table) -> object:
        with patch.dict(os.environ, {"AIRFLOW_CONN_LAKE": json.dumps({"conn_type": kind, "host": "local[2]"})}):
            return execute(LanceQueryOperator(task_id="t", uri=table.uri, lance_conn_id="lake"))

    return call


def _statement(sql: str) -> Call:
    def call(table: Table) -> object:
        tables = {"orders": table.uri}
        with patch.dict(os.environ, {"AIRFLOW_CONN_LANCE_DEFAULT": json.dumps({"conn_type": "lance"})}):
            return execute(LanceSqlOperator(task_id="s", sql=sql, tables=tables, execution="local"), publishes=True)

    return call


def _decorated(**arguments: Any) -> Call:
    def rows() -> list[dict[str, int]]:
        return [{"id": 1}]

    def call(table: Table) -> object:
        with DAG("rows", schedule=None):
            return lance_task(uri=table.uri, **arguments)(rows)()

    return call


TASKS = {
    "what becomes of a branch that failed, with a typing error": Mistake(
        ("ignore",), ("discard",), dag=_group(on_failure="ignore")
    ),
    "a branch that is not there is published": Mistake(
        ("devel",), ("dev",), dag=task_of(LancePublishBranchOperator, branch="devel")
    ),
    "a check with a key that is not there": Mistake(
        ("no_nulls",), ("known keys",), dag=task_of(LanceCheckOperator, checks=[{"no_nulls": "id"}])
    ),
    "a result in a format that is not there": Mistake(
        ("out.xlsx", "Excel"), ("csv",), dag=task_of(LanceQueryOperator, target=lambda t: f"{t.folder}/out.xlsx")
    ),
    "a result whose name says another format": Mistake(
        ("out.csv", "parquet"), ('format="csv"',), dag=task_of(LanceQueryOperator, target=lambda t: f"{t.folder}/out.csv")
    ),
    "a number of rows that is none": Mistake(("ten",), ("integer",), dag=task_of(LanceQueryOperator, limit="ten")),
    "a statement that changes an unknown table": Mistake(
        ("orderz",),
        ("orders",),
        cli=lambda t: ["sql", "DELETE FROM orderz WHERE id = 1", "-t", f"orders={t.uri}"],
        dag=_statement("DELETE FROM orderz WHERE id = 1"),
    ),
    "a connection to Spark where one to tables is meant": Mistake(("lake", "spark"), ("lance",), dag=_connection("spark")),
    "a task that returns rows, in a mode that is not there": Mistake(("merg",), ("merge",), dag=_decorated(mode="merg")),
    "a task that merges rows without their key": Mistake(("merge",), ("on",), dag=_decorated(mode="merge")),
    "a task that returns rows, run elsewhere": Mistake(
        ("spark-submit",), ("Omit",), dag=_decorated(execution="spark-submit")
    ),
}

COMMANDS = {
    "a report in a place that cannot be written": Mistake(
        ("notes.txt/r.html",),
        ("may write there",),
        cli=lambda t: ["report", t.uri, "--html", f"{t.text('notes.txt', 'x')}/r.html"],
    ),
    "a row of a version that is not there": Mistake(
        ("99",), ("from 1 to 2",), cli=lambda t: ["count", t.uri, "--version", "99"]
    ),
    "tables of a folder that is not there": Mistake(
        ("nowhere",), ("Create the folder",), cli=lambda t: ["tables", f"{t.folder}/nowhere"]
    ),
    "a wait for a word": Mistake(("many",), ("integer",), cli=lambda t: ["wait", t.uri, "--rows", "many"]),
}

FEATURES: dict[str, Mistake] = {**COLUMNS, **WORDS, **SOURCES, **TASKS, **COMMANDS}
