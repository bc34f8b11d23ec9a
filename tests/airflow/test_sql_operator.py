"""`LanceSqlOperator`, `hook.sql`: SQL over several tables in tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk import ObjectStoragePath

import lance_core
from airflow_lance.compat import AirflowFailException
from airflow_lance.hooks import LanceHook
from airflow_lance.operators import LanceSqlOperator, LanceTransaction
from lance_core.errors import InputError
from tests.airflow.operator_support import execute

pytest.importorskip("duckdb")

SUMS = (
    "INSERT INTO daily SELECT day, sum(price) AS paid FROM orders JOIN users USING (user) "
    "WHERE day = '{{ ds }}' GROUP BY day"
)


@pytest.fixture
def lake(tmp_path: Path, connection: Callable[[str, str], None]) -> Path:
    orders = pa.table({"day": ["2026-01-01"] * 3 + ["2026-01-02"], "user": [1, 2, 3, 1], "price": [1.0, 2.0, 4.0, 8.0]})
    lance_core.write_dataset(orders, str(tmp_path / "orders.lance"))
    lance_core.write_dataset(pa.table({"user": [1, 2]}), str(tmp_path / "users.lance"))
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    return tmp_path


def sql(statement: str, **kwargs: Any) -> LanceSqlOperator:
    tables = {"orders": "orders.lance", "users": "users.lance", "daily": "daily.lance", **kwargs.pop("tables", {})}
    return LanceSqlOperator(task_id="sql", sql=statement, tables=tables, lance_conn_id="lake", **kwargs)


def test_a_statement_changes_its_table_exactly_once(lake: Path) -> None:
    statement = SUMS.replace("{{ ds }}", "2026-01-01")
    first = execute(sql(statement), publishes=True)
    assert (first["version"], first["rows_inserted"]) == (1, 1)
    assert first["inputs"] == {"orders": 1, "users": 1}
    lance_core.dataset(str(lake / "orders.lance")).delete("true")
    again = execute(sql(statement), publishes=True)
    assert again["version"] == 1, "a retry after the source changed"
    table = lance.dataset(str(lake / "daily.lance"))
    assert table.to_table().to_pylist() == [{"day": "2026-01-01", "paid": 3.0}]
    assert lance_core.dataset(str(lake / "daily.lance")).version == 1


def test_tables_may_be_paths(lake: Path) -> None:
    tables = {"orders": lake / "orders.lance", "users": {"uri": ObjectStoragePath(f"file://{lake}/users.lance")}}
    found = execute(
        LanceSqlOperator(task_id="sql", sql="SELECT count(*) AS n FROM orders JOIN users USING (user)", tables=tables)
    )
    assert found["rows"] == [{"n": 3}]


def test_a_query_gives_rows_or_a_file(lake: Path) -> None:
    found = execute(sql("SELECT user, sum(price) AS paid FROM orders GROUP BY user ORDER BY user"))
    assert found["rows"] == [{"user": 1, "paid": 9.0}, {"user": 2, "paid": 2.0}, {"user": 3, "paid": 4.0}]
    with pytest.raises(AirflowFailException, match="more than 2 rows"):
        execute(sql("SELECT * FROM orders", max_rows=2))
    lance_core.dataset(str(lake / "orders.lance")).delete("user = 1")
    pinned = {"orders": {"uri": "orders.lance", "version": 1}}
    told = execute(sql("SELECT * FROM orders", tables=pinned, target=str(lake / "out.csv"), format="csv"))
    assert (told["num_rows"], told["inputs"]) == (4, {"orders": 1})
    assert len((lake / "out.csv").read_text().splitlines()) == 5


def test_other_sources_and_other_connections(lake: Path, connection: Callable[[str, str], None]) -> None:
    connection("other", json.dumps({"conn_type": "lance", "host": str(lake / "other")}))
    lance_core.write_dataset(pa.table({"user": [3]}), str(lake / "other" / "vip.lance"))
    (lake / "names.csv").write_text("user,name\n3,c\n")
    tables = {
        "vip": {"uri": "vip.lance", "lance_conn_id": "other"},
        "names": {"format": "csv", "paths": [str(lake / "names.csv")], "options": {"header": "true", "inferSchema": "true"}},
    }
    found = execute(sql("SELECT name, price FROM orders JOIN vip USING (user) JOIN names USING (user)", tables=tables))
    assert found["rows"] == [{"name": "c", "price": 4.0}]
    assert LanceHook("lake").sql(
        "SELECT count(*) AS n FROM vip JOIN orders USING (user)", {**tables, "orders": "orders.lance"}
    )["n"].to_pylist() == [1]


def test_mistakes_are_named_when_the_dag_is_parsed(lake: Path) -> None:
    from airflow.sdk import DAG

    for statement, kwargs, message in (
        ("DROP TABLE daily", {}, "must begin with one of"),
        ("INSERT INTO nowhere SELECT 1", {}, "not one of the Lance tables"),
        ("SELECT 1", {"gates": [{"min_rows": 1}]}, "a SELECT stages nothing"),
        ("INSERT INTO daily SELECT 1", {"execution": "kubernetes"}, "cannot be combined with execution='kubernetes'"),
        ("SELECT 1", {"execution": "spark-submit"}, "cannot run as a Spark job"),
        ('INSERT INTO daily SELECT 1; SELECT "', {"execution": "spark-submit"}, "one statement at a time"),
        ("UPDATE daily SET n = 1 FROM orders", {}, "compares no key column of daily"),
        ("INSERT INTO daily SELECT 1", {"tables": {"orders": {"uri": "o.lance", "verison": 3}}}, "unknown key 'verison'"),
    ):
        with DAG("parse"), pytest.raises(InputError, match=message):
            task = sql(statement, **kwargs)
            task.prepare_template()
            task.resolve_template_files()


def test_a_dag_of_statements(lake: Path, run_dag: Callable[..., Any]) -> None:
    import pendulum
    from airflow.sdk import DAG, task

    (lake / "daily.sql").write_text(SUMS)
    with DAG("sql_dag", schedule=None, template_searchpath=[str(lake)]) as dag:
        daily = sql("daily.sql")
        tables = {"daily": "daily.lance", "orders": "orders.lance"}
        with LanceTransaction("twice", uri=str(lake / "daily.lance")) as both:
            for day in ("a", "b"):
                LanceSqlOperator(
                    task_id=day, sql=f"INSERT INTO daily SELECT '{day}' AS day, max(price) AS paid FROM orders",
                    tables=tables, lance_conn_id="lake",
                )  # fmt: skip

        @task
        def look() -> int:
            return LanceHook("lake").sql("SELECT count(*) AS n FROM d", {"d": "daily.lance"})["n"][0].as_py()

        daily >> both >> look()
    run = run_dag(dag, logical_date=pendulum.datetime(2026, 1, 2))
    assert str(run.state) == "success"
    table = lance.dataset(str(lake / "daily.lance"))
    assert sorted(table.to_table().to_pylist(), key=lambda row: row["day"]) == [
        {"day": "2026-01-02", "paid": 8.0},
        {"day": "a", "paid": 8.0},
        {"day": "b", "paid": 8.0},
    ]
    assert table.version == 2
