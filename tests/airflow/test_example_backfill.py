"""The backfill example on real flights: a month that is run anew is the same month, whatever happened to it."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pytest

from tests.airflow.example_dags import FOLDER, dag_of, load_example

JANUARY, FEBRUARY = 27_004, 24_951


def test_months_replace_themselves(tmp_path: Path, connection: Any, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connection("lance_default", json.dumps({"conn_type": "lance"}))
    monkeypatch.syspath_prepend(str(FOLDER))
    uri = tmp_path / "backfill.lance"
    places = {"BACKFILL_TABLE": uri, "BACKFILL_RAW": tmp_path / "raw", "LANCE_EXECUTION": "local"}
    dag = dag_of(load_example("monthly_backfill", monkeypatch, **places), "flights_backfill")

    def run(month: int) -> Any:
        done = run_dag(dag, logical_date=datetime(2013, month, 1, tzinfo=timezone.utc))
        assert done.state == "success"
        return lance.dataset(uri)

    run(1)
    table = run(2)
    rows = table.to_table()
    assert (table.version, table.count_rows("month = 1"), table.count_rows("month = 2")) == (2, JANUARY, FEBRUARY)
    table.delete("month = 1 AND carrier = 'UA'")
    table = run(1)
    assert (table.version, table.count_rows("month = 1")) == (4, JANUARY)
    keys = [(name, "ascending") for name in rows.column_names]
    assert table.to_table().sort_by(keys).equals(rows.sort_by(keys))
