"""The GDPR example on real flights: the proof passes after the clean-up, and finds what is still there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow.parquet as pq
import pytest

from tests.airflow.example_dags import dag_of, load_example


@pytest.fixture
def january(tmp_path: Path, connection: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    connection("lance_default", json.dumps({"conn_type": "lance"}))
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "dags_examples"))
    import flights_data

    flights = pq.read_table(flights_data.write_month(str(tmp_path / "raw"), 1))
    lance.write_dataset(flights, tmp_path / "gdpr.lance", max_rows_per_file=5_000)
    return tmp_path / "gdpr.lance"


def test_nothing_is_left(january: Path, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_example("gdpr_delete", monkeypatch, GDPR_TABLE=january)
    person = "N14228"
    rows = lance.dataset(january).count_rows()
    mine = lance.dataset(january).count_rows(f"tailnum = '{person}'")
    assert mine > 0
    with pytest.raises(ValueError, match="still there"):
        module.prove.function(str(january), "tailnum", person)
    run = run_dag(dag_of(module, "lance_gdpr_delete"), run_conf={"tail_number": person})
    assert run.state == "success"
    table = lance.dataset(january)
    table.validate()
    assert (table.count_rows(), len(table.versions())) == (rows - mine, 1)
    proof = run.get_task_instance("prove").xcom_pull(task_ids="prove")
    assert (proof["rows"], proof["searched_for"]) == (0, person)
    assert table.to_table(filter=f"tailnum = '{person}'").num_rows == 0
