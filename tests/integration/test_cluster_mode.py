"""Drivers that a standalone cluster starts: a jar that Python runs, lance_core out of it, and how failures come back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lance
import pytest
from spark_cluster import SparkCluster

from airflow_lance.execution import staging
from airflow_lance.execution.spark_submit import SparkSettings, SparkSubmitRun
from lance_core.errors import InputError
from lance_core.jobs.spec import AppendSpec, SourceSpec

CONF = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.pyspark.python": sys.executable}


def _submit(spec: AppendSpec, packaging: str) -> None:
    settings = SparkSettings("standalone", CONF, {"driver_memory": "512m"}, packaging)
    context: Any = {}
    options = {"region": "eu-west-1"}
    with staging.telling_failures(spec, options={}):
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

    staging.commit(uri, [{"uuid": "00000000-0000-4000-8000-000000000001"}], options={}, max_attempts=None)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table().sort_by("id").to_pylist() == [{"id": n, "name": f"row {n}"} for n in range(1000)]
