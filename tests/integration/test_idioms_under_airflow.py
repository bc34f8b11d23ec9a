"""The idioms of DAG files under a real scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow_stack import AirflowStack

DAG = "lance_idioms"


@pytest.mark.slow
def test_idioms(stack: AirflowStack, place: Path) -> None:
    folder = place / "idioms"
    folder.mkdir()
    pq.write_table(pa.table({"id": [50, 51], "value": [2, 2]}), folder / "more.parquet")
    stack.wait_for_dag(DAG)
    stack.unpause(DAG)
    run_id = stack.trigger(DAG)
    stack.wait_for_runs(DAG, num_runs=1, timeout=900)
    table = lance.dataset(folder / "t.lance")
    table.validate()
    rows = {row["id"]: (row["value"], row["name"]) for row in table.to_table().to_pylist()}
    noted = table.to_table(columns=["id", "value", "name", "note", "length"], filter="note IS NOT NULL").to_pylist()
    assert noted == [{"id": 60, "value": None, "name": None, "note": "new", "length": -1}]
    expected: dict[int, Any] = {**dict.fromkeys(range(2, 8), (0, None)), 8: (1, None), 9: (1, None)}
    assert rows == {**expected, 0: (7, "a"), 10: (1, "b"), 50: (2, None), 51: (2, None), 60: (None, None)}
    assert set(table.to_table(filter="length <> -1")["length"].to_pylist()) == {1}
    told = stack.xcom(DAG, run_id, "length")["columns"]["length"]
    assert (told["new"], told["failed_now"]) == (len(rows), 0)
    assert table.version == 8, "one version for each write, the branch's two rows and the declaration included"
    assert lance.dataset(folder / "t.lance").branches.list() == {}
    assert sorted(lance.dataset(folder / "copy.lance").to_table()["id"].to_pylist()) == sorted(rows)
    assert stack.xcom(DAG, run_id, "write_by_hook") == 2
    assert stack.xcom(DAG, run_id, "whole")["value_counts"]["51"] == 1
