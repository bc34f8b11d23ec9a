"""Who wrote a version: the dag, run, task, try and host stand in the table's history."""

from __future__ import annotations

import json
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.cli.main import cli
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


def _log(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.output)
    return found


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_blame_and_log_name_the_task(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(10), "value": [0] * 10}), uri, enable_stable_row_ids=stable)
    change = LanceUpdateOperator(task_id="mend", uri=uri, execution="local", updates={"value": "1"}, where="id < 3")
    version = execute(change, run_id="2013-01-02", publishes=True)["version"]
    found = _log("blame", uri)
    asked = {"dag": "d", "run": "2013-01-02", "task": "mend", "try": "1"}
    assert [(item["version"], item["rows"], item["exact"]) for item in found] == [(version, 3, True), (1, 7, True)]
    assert found[0] == {**found[0], **asked}
    assert found[1] == {**found[1], **dict.fromkeys(asked)}
    assert _log("log", uri)[0] == {**_log("log", uri)[0], **asked}
    assert [item["version"] for item in _log("blame", uri, "--where", "id = 7")] == [1]
    lance_core.dataset(uri).cleanup_old_versions(older_than=timedelta(0))
    remains = _log("blame", uri, "--where", "id = 7")
    assert [(item["version"], item["exact"]) for item in remains] == [(1, True) if stable else (version, False)]


def test_the_list_of_staged_work_names_the_task(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 10)
    operator = LanceDeleteOperator(task_id="forget", uri=uri, execution="local", predicate="id < 3", commit="elsewhere")
    execute(operator, run_id="2013-01-03")
    (line,) = _log("staged", "list", uri)
    assert (line["dag"], line["run"], line["task"]) == ("d", "2013-01-03", "forget")
