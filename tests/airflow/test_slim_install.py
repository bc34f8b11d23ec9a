"""Installed without its dependencies the provider parses DAGs; a task that runs there says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from airflow_lance.get_provider_info import get_provider_info

ROOT = Path(__file__).resolve().parents[2]

SLIM = """
import importlib, importlib.abc, sys
LACKING = {"pyarrow", "numpy", "numba", "llvmlite", "pandas", "pyroaring", "zstandard", "lz4", "obstore", "sqlglot",
           "snowballstemmer", "regex"}

class Lacking(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Lacking())
for name in sys.argv[1:]:
    importlib.import_module(name)

from datetime import datetime, timezone
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.sql import LanceSqlOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.sensors.rows import LanceRowsSensor

with DAG("slim", start_date=datetime(2013, 1, 1, tzinfo=timezone.utc), schedule=None) as dag:
    with LanceTransaction("load", uri="/nowhere/t.lance"):
        append = LanceAppendOperator(task_id="append", uri="/nowhere/t.lance", source={"format": "csv", "paths": ["/x.csv"]},
                                     execution="local")
    LanceSqlOperator(task_id="sql", sql="DELETE FROM t WHERE id = 1", tables={"t": "/nowhere/t.lance"})
    LanceRowsSensor(task_id="wait", uri="/nowhere/t.lance", min_rows=1)
for task in dag.tasks:
    task.resolve_template_files()

class Ti:
    dag_id, run_id, task_id, map_index, try_number = "slim", "r", "load.append", -1, 1

try:
    append.execute({"ti": Ti(), "outlet_events": {}})
except AirflowFailException as error:
    assert "InputError: " in str(error) and "is not installed here" in str(error) and "pip install" in str(error), error
    print("TOLD")
"""


def test_every_module_imports_and_a_task_says_what_is_missing() -> None:
    info = get_provider_info()
    groups = [group for room in ("operators", "sensors", "hooks", "triggers") for group in info[room]]
    names = [name for group in groups for name in group["python-modules"]]
    names += ["airflow_lance.assets", "airflow_lance.pools", "airflow_lance.lineage", "airflow_lance.links"]
    names += ["airflow_lance.decorators.lance", "airflow_lance.checks", "airflow_lance.ui.plugin"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SLIM, *names], env=env, cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "TOLD" in done.stdout
