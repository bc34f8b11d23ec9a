"""Who wrote a version: the dag, run, task, try and host stand in the table's history."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import lance_core
from airflow_lance.operators.delete import LanceDeleteOperator
from tests.airflow.operator_support import execute, make_table


def test_a_version_says_which_task_wrote_it(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = LanceDeleteOperator(task_id="forget", uri=uri, execution="local", predicate="id < 3")
    result = execute(operator, run_id="2013-01-01", publishes=True)
    transaction = lance_core.dataset(uri).read_transaction(result["version"])
    assert transaction is not None
    note = json.loads(transaction.properties[f"lance_core.identity.{result['identity']}"])
    asked = note["asked"]
    assert {name: asked[name] for name in ("dag_id", "run_id", "task_id", "try_number", "host")} == {
        "dag_id": "d", "run_id": "2013-01-01", "task_id": "forget", "try_number": 1, "host": socket.gethostname(),
    }  # fmt: skip
