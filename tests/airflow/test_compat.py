"""Airflow's names come through one door; the matrix DAG runs on the Airflow that is installed here."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_lance import compat
from airflow_lance.get_provider_info import get_provider_info

REPOSITORY = Path(__file__).resolve().parents[2]
DAGS = REPOSITORY / "tests" / "matrix" / "dags"
SAME_EVERYWHERE = ("airflow.providers.common.compat.sdk", "airflow.triggers.base", "airflow.plugins_manager")
"""What Airflow 2.11 to 3.3 all have under one name."""


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
    monkeypatch.syspath_prepend(str(DAGS))
    spec = importlib.util.spec_from_file_location("lance_matrix", DAGS / "lance_matrix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lance_matrix", module)
    spec.loader.exec_module(module)
    return module


def test_the_matrix_dag_uses_every_operator_and_sensor(matrix: Any) -> None:
    used = {getattr(task, "operator_class", type(task)).__module__ for task in matrix.dag.tasks}
    info = get_provider_info()
    offered = {name for room in ("operators", "sensors") for name in info[room][0]["python-modules"]}
    # Groups are no tasks; the DAG has both.
    assert offered - used == {"airflow_lance.operators.transaction", "airflow_lance.operators.write_audit_publish"}


@pytest.mark.slow
def test_the_matrix_dag_runs(matrix: Any, run_dag: Callable[..., Any]) -> None:
    assert run_dag(matrix.dag).state == "success"


def test_the_extras_agree_on_one_pyspark() -> None:
    # The Spark provider of `airflow` takes any pyspark-client; only an exact pin of both keeps their shared files equal.
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("spark = ")]
    pins = dict(re.findall(r'"(pyspark(?:-client)?)==([\d.]+)"', line))
    assert {*pins} == {"pyspark", "pyspark-client"}
    assert len({*pins.values()}) == 1
