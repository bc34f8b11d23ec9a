"""Drivers that a standalone cluster starts: a jar that Python runs, lance_core out of it, and how failures come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from spark_cluster import SparkCluster

from airflow_lance.execution.spark_submit import SparkSettings, SparkSubmitRun
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.publish.attempts import list_staged

SOURCES = Path(__file__).parent / "sources"
REPOSITORY = Path(__file__).resolve().parents[2]
CONF = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.pyspark.python": sys.executable}


def _submit(spec: AppendSpec, packaging: str) -> None:
    settings = SparkSettings("standalone", CONF, {"driver_memory": "512m"}, packaging)
    context: Any = {}
    options = {"region": "eu-west-1"}
    with api.raising_driver_errors(spec, options={}):
        SparkSubmitRun(settings, task_id="load.append").run(spec, options=options, context=context)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.airflow
def test_a_driver_on_the_cluster(
    cluster: SparkCluster, spark_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in spark_env.items():
        monkeypatch.setenv(name, value)
    extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port}
    connection = {"conn_type": "spark", "host": cluster.master, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_STANDALONE", json.dumps(connection))
    uri = str(tmp_path / "t.lance")
    sql = SourceSpec(sql="SELECT id, CONCAT('row ', id) AS name FROM RANGE(0, 1000, 1, 4)")

    _submit(AppendSpec(uri=uri, identity="00000000-0000-4000-8000-000000000001", source=sql), "archive")
    missing = AppendSpec(
        uri=uri,
        identity="00000000-0000-4000-8000-000000000002",
        source=SourceSpec(format="parquet", paths=(str(tmp_path / "not-there"),)),
    )
    with pytest.raises(InputError, match="does not exist"):
        _submit(missing, "installed")

    api.commit(uri, [{"uuid": "00000000-0000-4000-8000-000000000001"}], options={}, max_attempts=None)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table().sort_by("id").to_pylist() == [{"id": n, "name": f"row {n}"} for n in range(1000)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.airflow
def test_the_next_try_finds_the_job_of_a_worker_that_died(
    cluster: SparkCluster, spark_env: dict[str, str], place: Path, tmp_path: Path
) -> None:
    uri, states = str(tmp_path / "t.lance"), tmp_path / "states.json"
    extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port}
    environment = {
        **os.environ,
        **spark_env,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(SOURCES)]),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW_CONN_STANDALONE": json.dumps({"conn_type": "spark", "host": cluster.master, "extra": extra}),
    }
    command = [sys.executable, str(SOURCES / "reattach_task.py"), uri, str(states)]
    before = _drivers(place)

    def attempts() -> list[str]:
        return [entry.attempt for entry in list_staged(resolve_store(uri))]

    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(lambda: bool(states.exists() and json.loads(states.read_text())) and bool(attempts()), first, log.name)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    job, attempt = json.loads(states.read_text())["spark_job_id"], attempts()
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert second.returncode == 0, second.stderr[-3000:]
    reference = json.loads(second.stdout.splitlines()[-1])
    assert (json.loads(states.read_text())["spark_job_id"], attempts()) == (job, attempt), "the very same job"
    assert len(_drivers(place) - before) == 1, "no second driver was submitted"
    api.commit(uri, [reference], options={}, max_attempts=None)
    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table()["id"].to_pylist()) == [*range(1000)]


def _drivers(place: Path) -> set[str]:
    return {path.name for path in (place / "cluster" / "work").glob("driver-*")}


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: str) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, Path(log).read_text()
        assert time.monotonic() < until, Path(log).read_text()
        time.sleep(0.1)
