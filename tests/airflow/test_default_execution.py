"""Where a job runs without a choice, and what a worker says that cannot submit: decided in the task, no part of the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_lance.execution import spark_installed
from airflow_lance.execution.spark_settings import SparkSettings
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from tests.airflow.operator_support import execute

Connection = Callable[[str, str], None]
CURES = ("pip install", "Java 17", 'execution="local"', "[lance] default_execution = local")


@pytest.fixture
def worker(tmp_path: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker with a Spark connection, a spark-submit and a Java that must not be started; its folder of programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("spark-submit", "java"):
        (programs / name).write_text("#!/bin/sh\nexit 77\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    connection("lance_default", json.dumps({"conn_type": "lance"}))
    connection("spark_default", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "raw.parquet")
    return programs


def _without(what: str, worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if what == "packages":
        monkeypatch.setattr(spark_installed, "_NEEDED", {"no_such_module": "no-such-package"})
    elif what == "connection":
        monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    else:
        (worker / what).unlink()


LACKING = {
    "packages": "no-such-package is not installed on this worker",
    "connection": "there is no Spark connection 'spark_default'",
    "spark-submit": "spark-submit is not on the PATH of this worker",
    "java": "this worker has no Java",
}


def _append(tmp_path: Path, **more: Any) -> LanceAppendOperator:
    source = {"format": "parquet", "paths": [str(tmp_path / "raw.parquet")]}
    return LanceAppendOperator(task_id="append", uri=str(tmp_path / "t.lance"), source=source, **more)


@pytest.mark.parametrize("what", LACKING)
def test_without_spark_the_worker_does_it_and_says_why(
    what: str, worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _without(what, worker, monkeypatch)
    task = _append(tmp_path)
    done = execute(task, publishes=True)
    said = capfd.readouterr().out
    assert lance.dataset(tmp_path / "t.lance").to_table()["id"].to_pylist() == [1, 2]
    assert "Running with execution='local'" in said
    assert LACKING[what] in said
    (staged,) = [line for line in said.splitlines() if "] Staged " in line]
    assert "2 rows added, 0 deleted" in staged
    for internal in ("digest", "table_id", "_transactions", "planned_at", "{"):
        assert internal not in staged
    # Another worker decides otherwise, and finds that the work has landed: the choice is no part of it.
    again = execute(_append(tmp_path, execution="local"), publishes=True)
    assert again["identity"] == done["identity"]
    assert lance.dataset(tmp_path / "t.lance").version == 1


@pytest.mark.parametrize("what", LACKING)
@pytest.mark.parametrize("asked", [{"execution": "spark-submit"}, {"spark_conn_id": "spark_default"}])
def test_spark_that_is_requested_and_missing_is_one_sentence_with_the_cures(
    asked: dict[str, str], what: str, worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without(what, worker, monkeypatch)
    with pytest.raises(AirflowFailException) as caught:
        execute(_append(tmp_path, **asked), publishes=True)
    text = str(caught.value)
    for part in ("append", LACKING[what], *CURES):
        assert part in text
    assert len(text) < 500
    assert not (tmp_path / "t.lance").exists()


def test_what_only_spark_can_do_is_not_run_elsewhere(worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    (worker / "java").unlink()
    task = LanceAddColumnsOperator(
        task_id="add", uri=str(tmp_path / "t.lance"), columns={"h": "sha2(string(id), 256)"}, engine="spark"
    )
    with pytest.raises(AirflowFailException, match="this worker has no Java"):
        execute(task, publishes=True)


def test_where_all_is_there_it_is_spark(worker: Path) -> None:
    settings = SparkSettings("spark_default")
    assert spark_installed.missing_for_spark(settings) == ""
    assert spark_installed.decided(settings, needs_spark="")[0] == "spark-submit"


def test_a_java_that_spark_would_find_counts(worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SparkSettings("spark_default")
    (worker / "java").unlink()
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "jdk" / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert spark_installed.missing_for_spark(settings) == ""
    monkeypatch.delenv("JAVA_HOME")
    (tmp_path / "spark-env.sh").write_text("export JAVA_HOME=/opt/java\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_installed.missing_for_spark(settings) == ""


def test_the_deployment_may_choose(worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _append(tmp_path).execution == "auto"
    monkeypatch.setenv("AIRFLOW__LANCE__DEFAULT_EXECUTION", "spark-submit")
    assert _append(tmp_path).execution == "spark-submit"
