"""Importing every operator in a DAG file is light: counted in modules, in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from airflow_lance.get_provider_info import get_provider_info

HEAVY = (
    "pyarrow",
    "numpy",
    "numba",
    "pyspark",
    "google.protobuf",
    "pandas",
    "fsspec",
    "lance_core.dataset",
    "lance_core.wire",
)

_PROBE = """
import json, sys
import airflow.sdk
from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, TaskGroup, task
import airflow.triggers.base, airflow.sdk.exceptions, airflow.providers.common.compat.sdk
before = set(sys.modules)
for name in {modules!r}:
    __import__(name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _probe() -> list[str]:
    info = get_provider_info()
    rooms = ("operators", "sensors", "hooks", "triggers")
    modules = [module for room in rooms for group in info[room] for module in group["python-modules"]]
    modules += ["airflow_lance.assets", "airflow_lance.pools", "lance_core.jobs.specs.spec"]
    probe = [sys.executable, "-c", _PROBE.format(modules=modules)]
    shown = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=120)
    found: list[str] = json.loads(shown.stdout.splitlines()[-1])
    return found


def test_the_example_dags_parse_light() -> None:
    folder = Path(__file__).resolve().parents[2] / "dags_examples"
    names = sorted(path.stem for path in folder.glob("*.py"))
    assert names
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + _PROBE.format(modules=names)
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    new = json.loads(shown.stdout.splitlines()[-1])
    assert [name for name in new if name.startswith(HEAVY)] == []


def test_a_dag_file_pulls_in_nothing_heavy() -> None:
    new = _probe()
    assert [name for name in new if name.startswith(HEAVY)] == []
    assert [name for name in new if name.startswith("airflow.providers")] == []
    # Each operator is a module of its own; what they share stays small, and so does the time, which no test decides by.
    assert len([name for name in new if not name.startswith(("airflow_lance.operators", "airflow_lance.sensors"))]) < 36, new
