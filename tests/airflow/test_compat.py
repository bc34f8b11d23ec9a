"""Airflow's names come through one door; the matrix DAG runs on the Airflow that is installed here."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airflow_lance
from airflow_lance import compat
from airflow_lance.compat import BaseOperator, TaskGroup
from airflow_lance.decorators.column import _KeepsAColumn
from airflow_lance.decorators.lance import _WritesWhatAFunctionReturns
from airflow_lance.get_provider_info import get_provider_info
from airflow_lance.operators.immediate import LanceImmediateOperator
from airflow_lance.operators.job import LanceJobOperator
from airflow_lance.operators.stage import LanceStageOperator
from airflow_lance.operators.table import LanceTableOperator
from airflow_lance.operators.write import LanceWriteOperator
from airflow_lance.sensors.base import LanceSensor

REPOSITORY = Path(__file__).resolve().parents[2]
DAGS = REPOSITORY / "tests" / "matrix" / "dags"
SAME_EVERYWHERE = (
    "airflow.providers.common.compat.sdk",
    "airflow.triggers.base",
    "airflow.configuration",
    "airflow.plugins_manager",
    "airflow.listeners",
)
"""What Airflow 2.11 to 3.3 all have under one name."""
BASES = (LanceStageOperator, LanceTableOperator, LanceJobOperator, LanceImmediateOperator, LanceWriteOperator, LanceSensor)
"""What the others share; no class for DAG files."""


def test_modules_import_only_names_that_every_airflow_has() -> None:
    found = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in (REPOSITORY / "airflow_lance").rglob("*.py")
        for name in _imported_at_once(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] == "airflow" and name not in SAME_EVERYWHERE
    }
    assert found == set()


def _imported_at_once(tree: ast.Module) -> Iterator[str]:
    """Modules imported when a module is imported; not what only type checkers see."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.Try) else [node]
        for item in inside:
            if isinstance(item, ast.ImportFrom):
                yield item.module or ""
            elif isinstance(item, ast.Import):
                yield from (alias.name for alias in item.names)


def test_masking_works_with_a_common_compat_that_does_not_know_it() -> None:
    compat.mask_secret("a secret of this test")


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("LANCE_MATRIX_PLACE", str(tmp_path))
    monkeypatch.setenv(
        "AIRFLOW_CONN_LANCE_DEFAULT", json.dumps({"conn_type": "lance", "extra": {"base_uri": str(tmp_path)}})
    )
    monkeypatch.syspath_prepend(str(DAGS))
    spec = importlib.util.spec_from_file_location("lance_matrix", DAGS / "lance_matrix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lance_matrix", module)
    spec.loader.exec_module(module)
    return module


def test_the_matrix_dag_uses_every_operator_and_sensor(matrix: Any) -> None:
    used = {_class_of(task) for task in matrix.dag.tasks} | {type(group) for group in _groups(matrix.dag.task_group)}
    missing = {kind for kind in _offered() if not any(issubclass(one, kind) for one in used)}
    assert missing == set()
    assert any(issubclass(kind, _WritesWhatAFunctionReturns) for kind in used), "@task.lance"
    assert any(issubclass(kind, _KeepsAColumn) for kind in used), "@task.lance_column"


def test_the_modules_that_airflow_knows_are_those_on_disk() -> None:
    info = get_provider_info()
    for room in ("operators", "sensors"):
        listed = {name for group in info[room] for name in group["python-modules"]}
        assert {kind.__module__ for kind in _offered() if kind.__module__.startswith(f"airflow_lance.{room}.")} == listed


def _class_of(task: Any) -> type[Any]:
    """Also of a mapped task, whose operator is made when it runs."""
    kind: type[Any] = getattr(task, "operator_class", None) or type(task)
    return kind


def _groups(group: Any) -> Iterator[Any]:
    for child in group.children.values():
        if hasattr(child, "children"):
            yield child
            yield from _groups(child)


def _offered() -> set[type[Any]]:
    """Every class of the whole package that stands for a task or a group; bases of others are held by those."""
    found = {
        kind
        for module in pkgutil.walk_packages(airflow_lance.__path__, "airflow_lance.")
        if not module.name.startswith("airflow_lance.ui")
        for kind in vars(importlib.import_module(module.name)).values()
        if isinstance(kind, type) and kind.__module__ == module.name and issubclass(kind, (BaseOperator, TaskGroup))
    }
    return {kind for kind in found if kind.__name__.startswith("Lance")} - {*BASES}


@pytest.mark.slow
def test_the_matrix_dag_runs(matrix: Any, run_dag: Callable[..., Any]) -> None:
    assert run_dag(matrix.dag, run_conf=matrix.CONF).state == "success"


def test_the_extras_agree_on_one_pyspark() -> None:
    # The Spark provider of `airflow` takes any pyspark-client; only an exact pin of both keeps their shared files equal.
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("spark = ")]
    pins = dict(re.findall(r'"(pyspark(?:-client)?)==([\d.]+)"', line))
    assert {*pins} == {"pyspark", "pyspark-client"}
    assert len({*pins.values()}) == 1
