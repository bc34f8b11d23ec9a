"""A secret is planted in the connection; afterwards everything that Airflow and the table have kept is searched for it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG

import lance_core
from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.version import LanceVersionSensor
from airflow_lance.triggers.version import LanceVersionTrigger
from bench.object_client import RunningServer, object_server
from lance_core.errors import LanceError, StoreRefusedError
from lance_core.io.resolve import resolve_store
from tests.airflow.operator_support import execute

RunDag = Callable[..., Any]
# Put together here, because Airflow stores this file as the DAG's code.
SECRET = "/".join(["planted", "hunter2+secret=of", "the-store"])
URI = "s3://lake/planted.lance"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


@pytest.fixture
def planted(server: RunningServer, connection: Callable[[str, str], None]) -> dict[str, str]:
    """The connection's options: the secret is the key that requests are signed with."""
    options = {**server.options, "aws_secret_access_key": SECRET}
    connection("planted", json.dumps({"conn_type": "lance", "host": "s3://lake", "extra": {"storage_options": options}}))
    return options


def _found_in(folder: Path) -> list[str]:
    needles = [SECRET.encode(), json.dumps(SECRET)[1:-1].encode(), SECRET.replace("/", "\\/").encode()]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files, folder
    return [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)]


def _found_in_table(options: dict[str, str]) -> list[str]:
    store = resolve_store(URI, options)
    names = [entry.path for entry in store.list("")]
    assert any(name.startswith("_lance_core/") for name in names)
    return [name for name in names if SECRET.encode() in bytes(store.get(name))]


def test_a_secret_of_the_connection_is_nowhere_afterwards(
    server: RunningServer, planted: dict[str, str], run_dag: RunDag, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "rows.parquet")
    common: dict[str, Any] = {"uri": "planted.lance", "lance_conn_id": "planted"}
    with DAG("planted", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        source = {"format": "parquet", "paths": [f"{tmp_path}/rows.parquet"]}
        with LanceTransaction("load", outlets=[create_asset(uri=URI)]) as load:
            LanceAppendOperator(task_id="append", source=source, execution="local", **common)
        wait = LanceVersionSensor(task_id="wait", min_version=1, poke_interval=1, **common)
        delete = LanceDeleteOperator(task_id="delete", predicate="id = 3", execution="local", **common)
        missing = LanceAppendOperator(
            task_id="missing",
            source={**source, "paths": [f"{tmp_path}/none"]},
            execution="local",
            on_missing="fail",
            **common,
        )
        load >> wait >> [delete, missing]
    run = run_dag(dag)
    states = {task: str(run.get_task_instance(task).state) for task in ("load.commit", "wait", "delete", "missing")}
    assert states == {"load.commit": "success", "wait": "success", "delete": "success", "missing": "failed"}
    assert lance_core.dataset(URI, storage_options=planted).count_rows() == 9
    # Logs, the database (rendered fields, XCom, events, serialized DAGs), and all objects of the table.
    out, err = capfd.readouterr()
    assert SECRET not in caplog.text + out + err
    assert _found_in(Path(os.environ["AIRFLOW_HOME"])) == []
    assert _found_in_table(planted) == []


def test_a_store_that_refuses_is_named_without_the_secret(server: RunningServer, planted: dict[str, str]) -> None:
    server.fail({"operation": "", "contains": "lake", "status": 403, "code": "AccessDenied", "times": -1})
    try:
        for engine in ("obstore", "fsspec"):
            with pytest.raises(LanceError) as caught:
                lance_core.dataset(URI, storage_options={**planted, "store_engine": engine})
            assert isinstance(caught.value, StoreRefusedError)
            assert SECRET not in "".join(map(str, [caught.value, caught.value.__cause__, caught.value.__context__]))
        operator = LanceDeleteOperator(
            task_id="d", uri="planted.lance", lance_conn_id="planted", predicate="id = 1", execution="local"
        )
        with pytest.raises(Exception, match="AccessDenied") as raised:
            execute(operator)
        assert SECRET not in str(raised.value)
    finally:
        server.fail()
    trigger = LanceVersionTrigger(uri="planted.lance", lance_conn_id="planted")
    assert SECRET not in json.dumps(trigger.serialize())
