"""`LanceSqlOperator` with Spark: what reaches the job, what comes back, and a real spark-submit."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk.exceptions import TaskDeferred

import lance_core
from airflow_lance.execution.spark_submit import SparkSettings, SparkSubmitRun, all_options, with_references
from airflow_lance.operators import LanceSqlOperator
from lance_core.errors import InputError
from lance_core.jobs import api
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.sources.open_source import LocalSource
from lance_core.jobs.specs.secret import Secret, reveal_all
from lance_core.jobs.specs.spec import JobSpec, SourceSpec
from lance_core.spark.argument import decode_argument
from lance_core.spark.lance_tables import LanceTables
from tests.airflow.operator_support import FakeTi, execute
from tests.jobs.specs.test_specs import SPECS

pytest.importorskip("airflow.providers.apache.spark")

SUMS = """INSERT INTO daily SELECT o.day, sum(o.price) AS `paid`, "a" AS note FROM orders o JOIN users u ON o.user = u.user
GROUP BY o.day"""
SECRETS = {"aws_secret_access_key": "hush-of-the-lake", "aws_region": "eu"}
OTHERS = {"aws_secret_access_key": "hush-of-others", "aws_region": "us"}


@pytest.fixture
def lake(tmp_path: Path, connection: Callable[[str, str], None]) -> Path:
    orders = pa.table({"day": ["2026-01-01"] * 3 + ["2026-01-02"], "user": [1, 2, 3, 1], "price": [1.0, 2.0, 4.0, 8.0]})
    lance_core.write_dataset(orders, str(tmp_path / "orders.lance"))
    lance_core.write_dataset(pa.table({"user": [1, 2]}), str(tmp_path / "users.lance"))
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path), "extra": {"storage_options": SECRETS}}))
    connection("others", json.dumps({"conn_type": "lance", "host": str(tmp_path), "extra": {"storage_options": OTHERS}}))
    return tmp_path


def sql(statement: str = SUMS, **kwargs: Any) -> LanceSqlOperator:
    tables = {
        "orders": "orders.lance",
        "users": {"uri": "users.lance", "lance_conn_id": "others"},
        "daily": "daily.lance",
        **kwargs.pop("tables", {}),
    }
    given = {"execution": "spark-submit", "spark_conn_id": "spark_here", "lance_conn_id": "lake", **kwargs}
    return LanceSqlOperator(task_id="sql", sql=statement, tables=tables, **given)


class Submits:
    """Stands for spark-submit: keeps each spec as the job gets it, and does the work when it is told how."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: Callable[[Any], Any] | None = None) -> None:
        self.specs: list[Any] = []

        def run(_: SparkSubmitRun, spec: Any, *, options: Any, context: Any) -> None:
            self.specs.append((spec, options))
            if work is not None:
                work(api.with_options(spec, options))

        monkeypatch.setattr(SparkSubmitRun, "run", run)
        monkeypatch.setattr("airflow_lance.execution.spark_installed.missing_for_spark", lambda _: "")


class InPlaceOfSpark(LocalRunner):
    """Runs a query of Spark's SQL that is DuckDB's but for its quotes."""

    def open_source(self, spec: SourceSpec, *, table: Any = None) -> LocalSource:
        return super().open_source(replace(spec, sql=str(spec.sql).replace("`", "").replace('"a"', "'a'"), engine=None))


def stage(spec: JobSpec) -> str:
    run_job(spec, runner=InPlaceOfSpark())
    return "job-1"


def test_a_job_gets_each_tables_version_and_its_own_options(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lance_core.dataset(str(lake / "orders.lance")).delete("price > 7")
    submits = Submits(monkeypatch)
    with pytest.raises(Exception, match="is not staged"):
        execute(sql(tables={"orders": {"uri": "orders.lance", "version": 1}}))
    ((spec, _options),) = submits.specs
    assert (spec.kind, spec.source.engine, spec.source.sql) == ("append", "spark", SUMS.split("daily ", 1)[1])
    assert {name: (read.version, read.branch) for name, read in spec.table_reads.items()} == {
        "orders": (1, None),
        "users": (1, None),
    }
    assert reveal_all(spec.table_reads["users"].storage_options) == OTHERS
    assert reveal_all(spec.table_reads["orders"].storage_options) == SECRETS
    assert "hush" not in json.dumps(spec.to_plain(redact=True)) + repr(spec)


@pytest.mark.parametrize("place", ["client", "cluster", "standalone"])
def test_no_secret_of_any_table_is_on_the_command_line(
    lake: Path, monkeypatch: pytest.MonkeyPatch, connection: Callable[[str, str], None], tmp_path: Path, place: str
) -> None:
    submits = Submits(monkeypatch)
    with pytest.raises(Exception, match="is not staged"):
        execute(sql())
    ((spec, options),) = submits.specs
    masters = {"client": "local[1]", "cluster": "yarn", "standalone": "spark://127.0.0.1:7077"}
    extra = {"deploy-mode": "client" if place == "client" else "cluster"}
    connection("spark_here", json.dumps({"conn_type": "spark", "host": masters[place], "extra": extra}))
    arguments = {"options_folder": str(tmp_path)} if place == "standalone" else {}
    run = SparkSubmitRun(SparkSettings("spark_here", {}, arguments), task_id="sql")
    with run._prepared(spec, options) as prepared:
        text, given = decode_argument(prepared.argument), prepared.arguments
        assert "hush" not in text
        if place == "cluster":
            monkeypatch.chdir(Path(given["files"].split(",")[-1]).parent)
        travelled = spec_from_json(text)
        assert reveal_all(travelled.storage_options) == SECRETS
        assert {name: reveal_all(read.storage_options) for name, read in travelled.table_reads.items()} == {  # type: ignore[attr-defined]
            "orders": SECRETS, "users": OTHERS,
        }  # fmt: skip
        assert LanceTables.of(travelled).reads["orders"].version == 1


def test_it_lands_once_whoever_tries_and_says_what_it_read(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submits = Submits(monkeypatch, stage)
    first = execute(sql(), publishes=True)
    assert (first["version"], first["rows_inserted"], first["inputs"]) == (1, 2, {"orders": 1, "users": 1})
    lance_core.dataset(str(lake / "orders.lance")).delete("true")
    again = execute(sql(), publishes=True)
    assert (again["version"], again["inputs"], len(submits.specs)) == (1, {}, 1), "nothing is read again, nothing submitted"
    assert lance.dataset(str(lake / "daily.lance")).count_rows() == 2


def test_a_worker_that_dies_between_staging_and_commit(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submits = Submits(monkeypatch, stage)
    execute(sql())
    assert not (lake / "daily.lance" / "_versions").exists()
    assert execute(sql(), publishes=True)["version"] == 1
    assert len(submits.specs) == 1


def test_a_statement_over_its_own_rows_is_an_edit_of_spark(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submits = Submits(monkeypatch, run_job)
    done = execute(sql('UPDATE orders SET price = price + 1 WHERE day = "2026-01-02"'), publishes=True)
    assert (done["rows_updated"], submits.specs[0][0].kind) == (1, "update")


def test_a_deferred_job_keeps_what_it_reads(
    lake: Path, monkeypatch: pytest.MonkeyPatch, connection: Callable[[str, str], None]
) -> None:
    monkeypatch.setattr("airflow_lance.execution.spark_installed.missing_for_spark", lambda _: "")
    monkeypatch.setattr(SparkSubmitRun, "detach", lambda _, spec, **__: stage(api.with_options(spec, {})))
    operator = sql(deferrable=True, commit="elsewhere")
    context: Any = {"ti": FakeTi("sql", "r"), "outlet_events": {}}
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context)
    kept = deferred.value.kwargs
    assert kept == {"inputs": {"orders": 1, "users": 1}}
    event = asyncio.run(_first(deferred.value.trigger))
    other = sql(deferrable=True, commit="elsewhere")
    reference = other.execute_complete(context, event, **kept)
    assert (reference["operation"], reference["inputs"]) == ("append", kept["inputs"])


async def _first(trigger: Any) -> Any:
    return (await anext(trigger.run())).payload


def test_mistakes(lake: Path) -> None:
    for statement, message in (
        ("SELECT * FROM orders", "a SELECT cannot run as a Spark job"),
        ("DELETE FROM orders WHERE day = 'a\\%'", "holds the escape"),
    ):
        with pytest.raises(InputError, match=message):
            sql(statement).make_spec(uri="/parsed.lance", identity="")


@pytest.mark.slow
@pytest.mark.spark
def test_a_real_spark_submit(lake: Path, connection: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    connection("plain", json.dumps({"conn_type": "lance", "host": str(lake)}))
    connection("spark_here", json.dumps({"conn_type": "spark", "host": "local[1]", "extra": {"deploy-mode": "client"}}))
    conf = {"spark.ui.enabled": "false", "spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "1"}
    small = {"conf": conf, "spark_submit": {"driver_memory": "512m"}, "lance_conn_id": "plain"}
    tables = {"users": "users.lance"}
    done = execute(sql(tables=tables, **small), publishes=True)
    assert (done["rows_inserted"], done["inputs"]) == (2, {"orders": 1, "users": 1})
    merge = """MERGE INTO daily d USING orders o ON d.day = o.day WHEN MATCHED AND o.price > 7 THEN UPDATE
        SET paid = d.paid + o.price WHEN NOT MATCHED THEN INSERT (day, paid) VALUES (o.day, 0)"""
    assert execute(sql(merge, tables=tables, key="2", **small), publishes=True)["rows_updated"] == 1
    table = lance.dataset(str(lake / "daily.lance"))
    table.validate()
    assert sorted((row["day"], row["paid"]) for row in table.to_table().to_pylist()) == [
        ("2026-01-01", 3.0),
        ("2026-01-02", 16.0),
    ]
    with pytest.raises(Exception, match="rejected by Spark"):
        execute(sql("INSERT INTO daily SELECT absent FROM orders", tables=tables, key="3", **small))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_the_options_of_every_kind_of_job_travel(spec: JobSpec) -> None:
    own = replace(spec, storage_options={"key": Secret(value="k")})
    everything = all_options(own.storage_options, getattr(own, "table_reads", {}))
    assert list(everything) == ["key"]
    assert with_references(own, {"key": Secret(env="KEY")}) == replace(spec, storage_options={"key": Secret(env="KEY")})
