"""A secret among the storage options of a real Spark job: not on its command line, in its event log, or in the table."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lance_core
from airflow_lance.execution.spark_submit import SparkSettings, SparkSubmitRun
from bench.object_client import RunningServer, object_server
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec

SECRET = "/".join(["planted", "hunter2+secret=of", "the-store"])
URI = "s3://lake/spark-planted.lance"
IDENTITY = "00000000-0000-4000-8000-000000000003"


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.airflow
def test_a_secret_is_neither_in_the_event_log_nor_in_what_spark_and_the_table_keep(
    server: RunningServer,
    spark_env: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for name, value in spark_env.items():
        monkeypatch.setenv(name, value)
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.pyspark.python": sys.executable,
        "spark.local.dir": str(tmp_path / "local"),
    }
    connection = {"conn_type": "spark", "host": "local[1]", "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_HERE", json.dumps(connection))
    options = {**server.options, "aws_secret_access_key": SECRET}
    sql = SourceSpec(sql="SELECT id FROM RANGE(0, 10, 1, 2)")
    spec = AppendSpec(uri=URI, identity=IDENTITY, source=sql)
    context: Any = {}
    with api.raising_driver_errors(spec, options=options):
        settings = SparkSettings("spark_here", conf, {"driver_memory": "512m"})
        SparkSubmitRun(settings, task_id="load.append").run(spec, options=options, context=context)
    api.commit(URI, [{"uuid": IDENTITY}], options=options, max_attempts=None)
    assert lance_core.dataset(URI, storage_options=options).count_rows() == 10

    needles = [SECRET, json.dumps(SECRET)[1:-1], SECRET.replace("/", "\\/")]
    logs = [path for path in events.rglob("*") if path.is_file() and path.stat().st_size]
    text = "".join(path.read_text() for path in logs)
    assert "SparkListenerEnvironmentUpdate" in text  # where Spark writes down properties, command line and class path
    assert "SparkListenerJobStart" in text
    out, err = capfd.readouterr()
    for needle in needles:
        assert needle not in text
        assert needle not in caplog.text + out + err
        left = [path for path in tmp_path.rglob("*") if path.is_file() and needle.encode() in path.read_bytes()]
        assert left == []
    store = resolve_store(URI, options)
    assert [entry.path for entry in store.list("") if SECRET.encode() in bytes(store.get(entry.path))] == []
