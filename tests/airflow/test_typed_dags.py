"""mypy reads a DAG as a user writes it: wrong names and types of arguments are found before the DAG is ever parsed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DAG = """
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from airflow_lance import (
    LanceAddColumnsOperator, LanceAppendOperator, LanceCleanupOperator, LanceMergeOperator, LanceOverwriteOperator,
    LanceTransaction, LanceVersionSensor,
)
from airflow_lance.decorators.column import lance_column_task
from airflow_lance.decorators.lance import lance_task
from airflow_lance.maintenance import LanceMaintenance

with DAG("typed", schedule=None):
    LanceAppendOperator(task_id="a", uri=Path("t.lance"), source="a.csv", retries=2, gates=[{"min_rows": 1}], pool="p")
    LanceAppendOperator(task_id="b", uri="t.lance", source="a.csv", craete=True)  # craete
    LanceAppendOperator(task_id="c", uri="t.lance")  # source
    LanceMergeOperator(task_id="d", uri="t.lance", source="a.csv", on="id", when_duplicate="last", commit="later")
    LanceMergeOperator(task_id="e", uri="t.lance", source="a.csv", on="id", when_duplicate="frist")  # when_duplicate
    LanceAddColumnsOperator(task_id="f", uri="t.lance", columns={"b": "a + 1"}, if_exists="fill", execution="local")
    LanceAddColumnsOperator(task_id="g", uri="t.lance", columns={"b": "a + 1"}, execution="locally")  # execution
    LanceCleanupOperator(task_id="h", uri="t.lance", older_than_days=7)
    LanceCleanupOperator(task_id="i", uri="t.lance", older_then_days=7)  # older_then_days
    LanceOverwriteOperator(task_id="j", uri="t.lance", source="a.csv", allow_empty="yes")  # allow_empty
    LanceVersionSensor(task_id="k", uri="t.lance", min_version=3, deferrable=True, timeout=timedelta(hours=1))
    LanceVersionSensor(task_id="l", uri="t.lance", poke_intervall=3)  # poke_intervall
    LanceMaintenance(policy="policy.yaml", tooltip="upkeep")
    LanceMaintenance(policy="policy.yaml", max_concurent=3)  # max_concurent
    with LanceTransaction(group_id="m", uri="t.lance", pool="p"):
        pass

    @lance_task(uri="t.lance", mode="merge", on="id", when_duplicate="last", retries=3)
    def rows() -> list[dict[str, int]]:
        return [{"id": 1}]

    @lance_task(uri="t.lance", mode="merg", on="id")  # mode
    def other() -> list[dict[str, int]]:
        return [{"id": 1}]

    @lance_task(uri="t.lance", schema_drfit="fail")  # schema_drfit
    def third() -> list[dict[str, int]]:
        return [{"id": 1}]

    @lance_column_task(uri="t.lance", column="n", inputs=["a"], version="1", max_rows=10, pool="p")
    def computed(batch: Any, minimum: int) -> Any:
        return batch

    @lance_column_task(uri="t.lance", column="n", inputs=["a"], max_row=10)  # max_row
    def bounded(batch: Any) -> Any:
        return batch

    @lance_column_task(uri="t.lance", column="n", inputs=["a"], execution="spark-submit")  # execution
    def far(batch: Any) -> Any:
        return batch
"""
"""A comment at the end of a line is the argument that is wrong in it."""

CONFIGURATION = """
[mypy]
strict = True
[mypy-airflow.*,lance_core.*,pyarrow.*]
follow_imports = skip
[mypy-airflow_lance.*]
follow_imports = silent
disallow_subclassing_any = False
"""
"""Airflow and the format core are not read: it would take minutes, and the arguments are this package's own."""


def test_each_wrong_argument_is_found_and_no_right_one(tmp_path: Path) -> None:
    file = tmp_path / "typed_dag.py"
    file.write_text(DAG)
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", file.name]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env={"MYPYPATH": str(ROOT), "PATH": ""}
    )
    found: dict[int, str] = {}
    for number, message in re.findall(r"^typed_dag\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found[int(number)] = found.get(int(number), "") + message
    wrong = {
        number: line.rpartition("# ")[2] for number, line in enumerate(DAG.splitlines(), 1) if re.search(r"\)  # \w+$", line)
    }
    assert len(wrong) == 12
    assert sorted(found) == sorted(wrong), done.stdout + done.stderr
    assert [message for number, message in found.items() if f'"{wrong[number]}"' not in message] == []
