"""OpenLineage for real: a DAG under Airflow's openlineage provider, its events in a file, the table's version in them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("airflow.providers.openlineage", reason="apache-airflow-providers-openlineage is not installed")

DAG_FILE = """
from datetime import datetime, timezone
from airflow.sdk import DAG
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.transaction import LanceTransaction

with DAG("traced", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
    with LanceTransaction("load", uri="{place}/t.lance") as load:
        LanceAppendOperator(
            task_id="append", uri="{place}/t.lance", execution="local",
            source={{"format": "parquet", "paths": ["{place}/rows.parquet"]}},
        )
    load >> LanceTagOperator(task_id="tag", uri="{place}/t.lance", tag="gold")

if __name__ == "__main__":
    assert dag.test().state == "success"
"""


@pytest.mark.slow
def test_events_of_a_run(tmp_path: Path, airflow_database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "rows.parquet")
    (tmp_path / "traced.py").write_text(DAG_FILE.format(place=tmp_path))
    events = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path))
    shown = run([sys.executable, str(tmp_path / "traced.py")], capture_output=True, text=True, timeout=180, check=False)
    assert shown.returncode == 0, shown.stdout[-3000:] + shown.stderr[-3000:]
    told = [json.loads(line) for line in events.read_text().splitlines()]
    complete = {event["job"]["name"]: event for event in told if event["eventType"] == "COMPLETE"}
    append, commit, tag = (complete[f"traced.{name}"] for name in ("load.append", "load.commit", "tag"))
    table, rows = ("file", f"{tmp_path}/t.lance"), ("file", f"{tmp_path}/rows.parquet")
    assert [_named(item) for item in append["inputs"]] == [rows]
    assert [(_named(item), _version(item)) for item in append["outputs"]] == [(table, None)]
    assert [(_named(item), _version(item)) for item in commit["outputs"]] == [(table, "1")]
    assert [field["name"] for field in commit["outputs"][0]["facets"]["schema"]["fields"]] == ["id"]
    assert commit["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert [(_named(item), _version(item)) for item in tag["outputs"]] == [(table, "1")]


def _named(dataset: dict[str, Any]) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


def _version(dataset: dict[str, Any]) -> str | None:
    facet = dataset["facets"].get("version")
    return None if facet is None else facet["datasetVersion"]
