"""Maintenance by policy as a DAG: tables are looked after, evidence remains, alarms fail the run and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from airflow_lance.maintenance import maintenance_dags
from lance_core.errors import InputError

POLICY = """
base_uri: {base}
levels: {{min_fragments: 8, target_rows_per_fragment: 1000, max_versions: 5, keep_versions: 2, keep_seconds: 0}}
budget: {{backoff_seconds: 0, max_concurrent: 2}}
"""


@pytest.fixture
def lake(tmp_path: Path, connection: Callable[[str, str], None]) -> Path:
    connection("lance_default", json.dumps({"conn_type": "lance"}))
    for name in ("orders.lance", "items.lance"):
        for number in range(9):
            data = pa.table({"id": range(number * 20, number * 20 + 20)})
            lance_core.write_dataset(data, str(tmp_path / name), mode="append" if number else "create")
    (tmp_path / "lance_policy.yaml").write_text(POLICY.format(base=tmp_path))
    return tmp_path


def test_the_dag_looks_after_all_tables(lake: Path, run_dag: Any) -> None:
    (dag,) = maintenance_dags(lake / "lance_policy.yaml", schedule=None).values()
    assert run_dag(dag).state == "success"
    for name in ("orders.lance", "items.lance"):
        table = lance_core.dataset(str(lake / name))
        assert (len(table.get_fragments()), table.count_rows(), len(table.versions())) == (1, 180, 2)
    evidence = lance_core.dataset(str(lake / "_maintenance")).to_table(filter="outcome = 'done'").to_pylist()
    assert sorted(row["action"] for row in evidence) == ["cleanup", "cleanup", "compact", "compact"]
    assert {row["run"].partition("/")[0] for row in evidence} == {"lance_maintenance"}


def test_a_table_that_cannot_be_observed_fails_the_alarm_and_nothing_else(lake: Path, run_dag: Any) -> None:
    for manifest in (lake / "items.lance" / "_versions").iterdir():
        manifest.write_bytes(b"damaged")
    (dag,) = maintenance_dags(lake / "lance_policy.yaml", schedule=None).values()
    run = run_dag(dag)
    assert run.state == "failed"
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert states["maintenance.alarms"] == "failed"
    assert states["maintenance.look_after"] == "success"
    assert len(lance_core.dataset(str(lake / "orders.lance")).get_fragments()) == 1


def test_a_mistake_in_the_policy_is_an_import_error_with_its_line(lake: Path) -> None:
    (lake / "lance_policy.yaml").write_text("base_uri: /t\nbudget: {max_concurrent: none}\n")
    with pytest.raises(InputError, match=r"lance_policy.yaml:2: .*max_concurrent"):
        maintenance_dags(lake / "lance_policy.yaml")
