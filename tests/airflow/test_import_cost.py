"""Importing every operator in a DAG file is light: counted in modules, measured in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
import json, sys, time
import airflow.sdk
from airflow.sdk import DAG, Asset, BaseHook, BaseOperator, BaseSensorOperator, TaskGroup, task
import airflow.triggers.base, airflow.sdk.exceptions, airflow.providers.common.compat.sdk
before = set(sys.modules)
started = time.process_time()
for name in {modules!r}:
    __import__(name)
seconds = time.process_time() - started
print(json.dumps({{"seconds": seconds, "new": sorted(set(sys.modules) - before)}}))
"""


def _probe() -> dict[str, Any]:
    info = get_provider_info()
    rooms = ("operators", "sensors", "hooks", "triggers")
    modules = [module for room in rooms for group in info[room] for module in group["python-modules"]]
    modules += ["airflow_lance.assets", "airflow_lance.pools", "lance_core.jobs.specs.spec"]
    probe = [sys.executable, "-c", _PROBE.format(modules=modules)]
    shown = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=120)
    found: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    return found


def test_the_example_dags_parse_light() -> None:
    folder = Path(__file__).resolve().parents[2] / "dags_examples"
    names = sorted(path.stem for path in folder.glob("*.py"))
    assert names
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + _PROBE.format(modules=names)
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    new = json.loads(shown.stdout.splitlines()[-1])["new"]
    assert [name for name in new if name.startswith(HEAVY)] == []


def test_a_dag_file_pulls_in_nothing_heavy() -> None:
    # Processor time, and the best of a few runs: a busy machine makes any one of them slow, never fast.
    runs = [_probe()]
    while min(run["seconds"] for run in runs) > 0.1 and len(runs) < 5:
        runs.append(_probe())
    new = runs[0]["new"]
    assert [name for name in new if name.startswith(HEAVY)] == []
    assert [name for name in new if name.startswith("airflow.providers")] == []
    assert min(run["seconds"] for run in runs) < 0.1
    # Each operator is a module of its own; what they share stays small.
    assert len([name for name in new if not name.startswith(("airflow_lance.operators", "airflow_lance.sensors"))]) < 36, new
